"""What every part of the report page shares: numbers as they are shown, and a run's files read."""

import json
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
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


def reached(value: Any) -> str:
    """A lower bound to 3 significant digits, rounded down so that it stays one."""
    return _number(value, 3, ROUND_FLOOR, pad=True)


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
        return f"{mantissa:f}×10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}".replace("-", "−")
    text = f"{number:f}"
    if not pad and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: a JSON {type(found).__name__}, allowed: an object")
    return found


def read_table(path: Path, columns: list[str]) -> pd.DataFrame:
    """A CSV file that has `columns`."""
    try:
        table = pd.read_csv(path, float_precision="round_trip")  # the comparison of ε must not hang on parsing
    except ValueError as error:
        raise ValueError(f"{path}: not a table ({error})") from error
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"{path}: lacks the columns {', '.join(missing)}")
    for name in ("private", "holds", "converged"):
        if name in columns and len(table) and table[name].dtype != bool:
            raise ValueError(f"{path}: column {name} holds {table[name].iloc[0]!r}, allowed: True, False")
    return table
