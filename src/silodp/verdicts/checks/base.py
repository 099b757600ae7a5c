"""The base of every check: its rows, its verdicts, how large it is, and the theorems that it holds runs against."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from silodp.streams import Streams
from silodp.theory import THEOREMS, Result, Theorem
from silodp.verdicts.checks.bound_columns import BOUNDS_COLUMNS
from silodp.verdicts.checks.stack import NULLS, current_null, replace_algorithms
from silodp.verdicts.statistics import Interval, mean_interval, slope, slope_interval
from silodp.verdicts.words import Verdict

Scale = Literal["smoke", "default", "paper"]
Row = dict[str, Any]
Array = NDArray[np.float64]

# Confidence of intervals that are held against a bound: a run has some hundred of them, and each could fail by chance.
CONFIDENT = 0.999
# An exponent is told from its neighbours, half a power away, half-way.
HALF_WAY = 0.25
# A risk of less is a rounding error.
ROUNDING = 1e-20
# Trials of the default scale are multiplied by these.
FACTORS: dict[Scale, float] = {"smoke": 0.1, "default": 1.0, "paper": 10.0}


@dataclass(frozen=True)
class Context:
    """What a check is given: `streams`, the `scale` of its trials, and `theorems`; a test plants wrong ones there."""

    streams: Streams
    scale: Scale = "default"
    theorems: Mapping[str, Theorem] = field(default_factory=lambda: THEOREMS)

    def trials(self, default: int) -> int:
        """Trials at this scale; at least 8, or an interval means nothing."""
        return max(8, round(default * FACTORS[self.scale]))

    def child(self, *names: object) -> "Context":
        return Context(self.streams.child(*names), self.scale, self.theorems)

    def evaluate(self, theorem: str, **known: Any) -> Result:
        """A theorem at those of the `known` numbers that it takes."""
        taken = self.theorems[theorem].parameters
        return self.theorems[theorem](**{name: value for name, value in known.items() if name in taken})


def row(
    theorem: str,
    parameter: str,
    value: float,
    measured: Interval | None,
    verdict: Verdict | None,
    *,
    rivals: Sequence[float] = (),
    **columns: Any,
) -> Row:
    """One row of a bounds table, without the name of its check.

    `value` is that of `parameter`, or the stated exponent of a slope; `rivals` are exponents that a slope is told from.
    No run stands behind a row with `measured` None, and `verdict` None decides nothing. `columns`: `lower`, `upper`:
    what the statement allows; `form`: `as printed` or `corrected` (docs/errata.md); `reach`: the largest value that can
    be reached; `formula`: slope of the theorem's formula over the same points; `detail`.
    """
    value_low_high = measured or Interval(math.nan, math.nan, math.nan)
    blank: Row = dict.fromkeys(("lower", "upper", "reach", "formula"), math.nan)
    blank |= dict.fromkeys(("form", "null", "detail"), "")
    return blank | {
        "theorem": theorem,
        "parameter": parameter,
        "value": value,
        **dict(zip(("measured", "measured_low", "measured_high"), value_low_high, strict=True)),
        "verdict": "" if verdict is None else str(verdict),
        "rivals": " ".join(f"{rival:.4g}" for rival in rivals),
        **columns,
    }


def table(check: str, rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows).assign(check=check)[BOUNDS_COLUMNS]


class NeverReached(RuntimeError):
    """A check that waits for a risk waits in vain."""


def against_nulls(check: Callable[[Context], list[Row]], context: Context) -> list[Row]:
    """Rows of a check, with what algorithms that do nothing come to on the same rows in the column `null`.

    A row that such an algorithm passes says nothing of the papers' algorithms. A confirmed bound is then vacuous here;
    a confirmed slope or equality is a derivation, of the instance or of the noise put in. The mean plus noise is a
    good algorithm: it is held against slopes and equalities, not against upper bounds.
    """
    rows = check(context)
    speaks = any(row["verdict"] in (Verdict.CONFIRMED, Verdict.ORDER_AGREES) for row in rows)
    for null in NULLS if speaks else ():
        with replace_algorithms(null), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                others = check(context)
            except NeverReached:
                others = [row | {"measured": math.nan, "verdict": ""} for row in rows]
        for row, other in zip(rows, others, strict=True):
            exponent = row["parameter"].startswith("slope in") or row["lower"] == row["upper"]
            if not row["verdict"] or math.isnan(row["measured"]) or (null == NULLS[-1] and not exponent):
                continue
            passes = other["verdict"] in (Verdict.CONFIRMED, Verdict.ORDER_AGREES, Verdict.VACUOUS)
            row["null"] += f"{'; ' if row['null'] else ''}{null} {other['measured']:.3g}{' passes' if passes else ''}"
            if passes and row["verdict"] == Verdict.CONFIRMED:
                word = Verdict.DERIVATION if exponent else Verdict.VACUOUS
                row |= {"verdict": str(word), "detail": f"{null} passes as well"}
    return rows


def judge_interval(measured: Interval, lower: float, upper: float) -> Verdict:
    """Confirmed if the interval is in [lower, upper], refuted if none of it is, else open; NaN is no bound."""
    low = -math.inf if math.isnan(lower) else lower
    high = math.inf if math.isnan(upper) else upper
    if low <= measured.low and measured.high <= high:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if measured.high < low or measured.low > high else Verdict.OPEN


def bounded(
    theorem: str, parameter: str, value: float, samples: Array, *, upper: float, reach: float, form: str = ""
) -> Row:
    """A mean over trials against an upper bound, which is vacuous unless below `reach`, the largest possible value."""
    measured = mean_interval(samples, CONFIDENT)
    verdict, detail = judge_interval(measured, math.nan, upper), ""
    if verdict == Verdict.CONFIRMED and upper >= reach:
        verdict, detail = Verdict.VACUOUS, f"at most {reach:.3g} can be reached"
    return row(theorem, parameter, value, measured, verdict, upper=upper, form=form, reach=reach, detail=detail)


def contains(theorem: str, parameter: str, value: float, measured: Interval, exact: float, form: str = "") -> Row:
    """A row that holds an interval against an equality: the interval has to contain the exact number."""
    verdict = Verdict.CONFIRMED if measured.low <= exact <= measured.high else Verdict.REFUTED
    return row(theorem, parameter, value, measured, verdict, lower=exact, upper=exact, form=form)


def equals(theorem: str, parameter: str, value: float, samples: Array, exact: float, form: str = "") -> Row:
    """A row that holds a mean over trials against an equality."""
    return contains(theorem, parameter, value, mean_interval(samples, CONFIDENT), exact, form)


def derived(
    theorem: str, parameter: str, stated: float, fitted: float, source: str, holds: bool = True, **columns: Any
) -> Row:
    """An exponent fitted from `source`, without a run, against the stated one; `holds`: whether all else does."""
    verdict = Verdict.DERIVATION if holds and abs(fitted - stated) < HALF_WAY else Verdict.REFUTED
    shown = {"lower": fitted, "upper": fitted, "formula": fitted, "detail": f"{fitted:.3f} {source}"} | columns
    rivals = (stated - 2 * HALF_WAY, stated + 2 * HALF_WAY)
    return row(theorem, parameter, stated, None, verdict, rivals=rivals, **shown)


def formula_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Log–log slope of exact numbers, without the last digits, which are those of logarithms."""
    return round(float(slope(x, np.array(y, dtype=float))), 12) + 0.0


@dataclass(frozen=True)
class Sweep:
    """A rate of a theorem along one axis, in the `regime` where one of its terms leads.

    `exponent` is stated, and has to be told from its `neighbours`. `sample` maps a value to one number a trial,
    `formula` to the theorem's number, with logarithms and lower-order terms; `form` is printed or corrected.
    """

    theorem: str
    axis: str
    regime: str
    exponent: float
    neighbours: tuple[float, float]
    values: Sequence[float]
    sample: Callable[[float], Array]
    formula: Callable[[float], float]
    form: str = ""


# Stated exponent, the exponents on both sides that it must be told from, and where it is measured.
Claim = tuple[float, tuple[float, float], Sequence[float]]


def sweeps(
    context: Context,
    theorem: str,
    regime: str,
    claims: Mapping[str, Claim],
    base: Mapping[str, float],
    sample: Callable[..., Array],
    formula: Callable[..., float],
    *,
    names: Sequence[str] = (),
    form: str = "",
) -> list[Sweep]:
    """A sweep for each axis of `claims`, in which the other parameters stay at `base`.

    `sample` takes (context with streams called `names`, axis, value) and the point's parameters, `formula` these alone.
    """

    def sweep(axis: str, exponent: float, neighbours: tuple[float, float], values: Sequence[float]) -> Sweep:
        def point(value: float) -> dict[str, Any]:
            # Theorems and generators take whole numbers as int.
            return {name: int(x) if x == int(x) else x for name, x in {**base, axis: value}.items()}

        def measured(value: float) -> Array:
            return sample(context.child(*names, axis, value), **point(value))

        return Sweep(
            theorem, axis, regime, exponent, neighbours, values, measured, lambda value: formula(**point(value)), form
        )

    return [sweep(axis, *claim) for axis, claim in claims.items()]


def sweep_rows(sweep: Sweep, streams: Streams) -> list[Row]:
    """Rows of one rate: a row a value, then the slope."""
    name = f"{sweep.axis} ({sweep.regime})"
    samples = [sweep.sample(value) for value in sweep.values]
    rows = [
        row(sweep.theorem, name, float(value), mean_interval(sample), None, form=sweep.form)
        for value, sample in zip(sweep.values, samples, strict=True)
    ]
    measured = Interval(math.nan, math.nan, math.nan)
    # What does nothing may have no risk at all, up to rounding: it has no slope.
    if current_null() is None or all(sample.mean() >= ROUNDING for sample in samples):
        measured = slope_interval(sweep.values, samples, streams.generator("bootstrap", sweep.theorem, name))
    formula = float(slope(sweep.values, np.array([sweep.formula(value) for value in sweep.values])))
    claim = (sweep.exponent, formula, sorted(sweep.neighbours))
    return [*rows, slope_row(sweep.theorem, f"slope in {name}", measured, *claim, form=sweep.form)]


def slope_row(
    theorem: str,
    parameter: str,
    measured: Interval,
    exponent: float,
    formula: float,
    rivals: Sequence[float],
    form: str = "",
) -> Row:
    """A row that holds a slope against the stated exponent, with half-way marks to the rivals as its bounds."""
    lower, upper = sorted((exponent + rival) / 2 for rival in rivals)
    verdict, detail = judge_slope(measured, exponent, formula, rivals)
    columns = {"lower": lower, "upper": upper, "form": form, "formula": formula, "detail": detail}
    return row(theorem, parameter, exponent, measured, verdict, rivals=rivals, **columns)


def judge_slope(measured: Interval, exponent: float, formula: float, rivals: Sequence[float]) -> tuple[Verdict, str]:
    """Verdict of a slope, and why.

    Refuted where the formula itself has another slope than is stated for it, or where the whole interval lies nearer to
    a rival. Confirmed where the interval leaves the rivals out and contains the stated exponent or the formula's slope;
    order agrees where it contains neither, but lies nearer to the stated exponent than to any rival throughout.
    """
    lower, upper = sorted((exponent + rival) / 2 for rival in rivals)
    if not lower < formula < upper:
        return Verdict.REFUTED, f"the formula's own slope is {formula:.3f}"
    verdict = judge_interval(measured, lower, upper)
    if verdict != Verdict.CONFIRMED:
        return verdict, ""
    for wanted, name in ((exponent, "the stated exponent"), (formula, "the formula's own slope")):
        if measured.low <= wanted <= measured.high:
            return Verdict.CONFIRMED, f"contains {name}"
    return Verdict.ORDER_AGREES, f"leaves out {exponent:.3g} and the formula's {formula:.3f}"
