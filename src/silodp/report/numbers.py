"""Numbers as the page and the figures show them."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import pandas as pd


def exact(value: Any) -> str:
    """A parameter as it was set, to 4 significant digits: 0.75, 10000, 1.7×10⁻⁵, ∞; a dash where there is none."""
    return _number(value, 4, ROUND_HALF_EVEN, pad=False)


def measured(value: Any) -> str:
    """A measured value to 3 significant digits, zeros kept: 0.500, 12.3, 1235."""
    return _number(value, 3, ROUND_HALF_EVEN, pad=True)


def bounded(value: Any) -> str:
    """An upper bound to 3 significant digits, rounded up so that it stays one."""
    return _number(value, 3, ROUND_CEILING, pad=True)


def lower_bound_text(value: Any) -> str:
    """A lower bound to 3 significant digits, rounded down so that it stays one."""
    return _number(value, 3, ROUND_FLOOR, pad=True)


def interval(lower: Any, upper: Any) -> str:
    """Proven bounds as [lower, upper], each rounded to its safe side; from 0 where no lower end is proven."""
    return f"[{'0' if pd.isna(lower) else lower_bound_text(lower)}, {bounded(upper)}]"


def tick_text(value: float) -> str:
    """A tick's number in few characters: 0.02, 5000, and 10⁶ where it would be long."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:g}"
    mantissa, power = f"{value:.1e}".replace(".0e", "e").split("e")
    return f"10{_raised(int(power))}" if mantissa == "1" else f"{mantissa}×10{_raised(int(power))}"


def count(value: float) -> str:
    """A tick's number where there is little room: 16.4k, 1.6M, 0.5."""
    for least, size, letter in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            return f"{value / size:.3g}{letter}"
    return f"{value:,.4g}"


def slope_text(value: float) -> str:
    """A slope to 3 significant digits: −0.5."""
    return f"{value:.3g}".replace("-", "−")


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _number(value: Any, digits: int, rounding: str, *, pad: bool) -> str:
    if value is None or pd.isna(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    number = Decimal(repr(float(value)))
    for _ in range(2):  # again, for 9.999 that became 10.00
        last = number.adjusted() - digits + 1
        # Whole numbers keep all their digits before the point: a rounded count would be wrong.
        last = min(last, 0) if number.adjusted() < 7 else last
        number = number.quantize(Decimal(1).scaleb(last), rounding=rounding) if number else Decimal(0)
    if number and not -4 <= number.adjusted() < 7:
        power = number.adjusted()
        mantissa = number.scaleb(-power).normalize()
        return f"{mantissa:f}×10{_raised(power)}".replace("-", "−")
    text = f"{number:f}"
    if not pad and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")
