"""What all checks share: their rows, their verdicts, how large they are, and the theorems they hold runs against."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from silodp.federation.rng import Streams
from silodp.files import BOUNDS_COLUMNS
from silodp.theory import THEOREMS, Theorem
from silodp.verdicts.statistics import Interval, mean_interval, slope, slope_interval
from silodp.verdicts.words import Verdict

Scale = Literal["smoke", "default", "paper"]
Row = dict[str, Any]
Array = NDArray[np.float64]

# Of intervals that are held against a bound: a run has some hundred of them, and each could fail by chance.
CONFIDENT = 0.999
# Trials of the default scale are multiplied by these.
FACTORS: dict[Scale, float] = {"smoke": 0.1, "default": 1.0, "paper": 10.0}


@dataclass(frozen=True)
class Context:
    """What a check is given.

    Attributes:
        streams: the tree that its draws come from.
        scale: how many trials it takes.
        theorems: what is held against the runs; a test plants wrong ones.
    """

    streams: Streams
    scale: Scale = "default"
    theorems: Mapping[str, Theorem] = field(default_factory=lambda: THEOREMS)

    def trials(self, default: int) -> int:
        """Trials at this scale; at least 8, or an interval means nothing."""
        return max(8, round(default * FACTORS[self.scale]))

    def child(self, *names: object) -> "Context":
        """The same check's part called `names`."""
        return Context(self.streams.child(*names), self.scale, self.theorems)


def row(
    theorem: str,
    parameter: str,
    value: float,
    measured: Interval | None,
    verdict: Verdict | None,
    *,
    lower: float = math.nan,
    upper: float = math.nan,
    form: str = "",
    reach: float = math.nan,
    formula: float = math.nan,
    rivals: Sequence[float] = (),
    detail: str = "",
) -> Row:
    """One row of a bounds table, without the name of its check.

    Args:
        theorem: key of the theorem.
        parameter: what is varied, and on what; `value` is its value, or the stated exponent of a slope.
        measured: mean, ratio or slope with its interval; None where no run stands behind the row.
        verdict: None for a row that is shown and decides nothing.
        lower, upper: what the statement allows.
        form: `as printed` or `corrected`, where these differ (docs/errata.md).
        reach: the largest value that can be reached.
        formula: slope of the theorem's own formula over the same points.
        rivals: exponents that a slope is told from.
        detail: what else there is to say.
    """
    found = measured or Interval(math.nan, math.nan, math.nan)
    return {"theorem": theorem, "parameter": parameter, "value": value, "lower": lower, "measured": found.value,
            "measured_low": found.low, "measured_high": found.high, "upper": upper,
            "verdict": "" if verdict is None else str(verdict), "form": form, "reach": reach, "formula": formula,
            "rivals": " ".join(f"{one:.4g}" for one in rivals), "detail": detail}  # fmt: skip


def table(check: str, rows: Sequence[Row]) -> pd.DataFrame:
    """Rows of one check as the table that its CSV file holds."""
    return pd.DataFrame(rows).assign(check=check)[BOUNDS_COLUMNS]


def within(measured: Interval, lower: float, upper: float) -> Verdict:
    """Confirmed when the whole interval lies in [lower, upper], refuted when none of it does, else inconclusive.

    A missing bound (NaN) is no bound.
    """
    low = -math.inf if math.isnan(lower) else lower
    high = math.inf if math.isnan(upper) else upper
    if low <= measured.low and measured.high <= high:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if measured.high < low or measured.low > high else Verdict.INCONCLUSIVE


def bounded(
    theorem: str, parameter: str, value: float, samples: Array, *, upper: float, reach: float, form: str = "",
) -> Row:  # fmt: skip
    """A row that holds a mean over trials against an upper bound.

    Args:
        reach: the largest value that the quantity can take: a bound that is not below it cannot fail, and is vacuous.
    """
    measured = mean_interval(samples, CONFIDENT)
    verdict, detail = within(measured, math.nan, upper), ""
    if verdict == Verdict.CONFIRMED and upper >= reach:
        verdict, detail = Verdict.VACUOUS, f"at most {reach:.3g} can be reached"
    return row(theorem, parameter, value, measured, verdict, upper=upper, form=form, reach=reach, detail=detail)


def equals(theorem: str, parameter: str, value: float, samples: Array, exact: float, form: str = "") -> Row:
    """A row that holds a mean over trials against an equality: the interval has to contain it."""
    measured = mean_interval(samples, CONFIDENT)
    verdict = Verdict.CONFIRMED if measured.low <= exact <= measured.high else Verdict.REFUTED
    return row(theorem, parameter, value, measured, verdict, lower=exact, upper=exact, form=form)


@dataclass(frozen=True)
class Sweep:
    """A rate along one axis.

    Attributes:
        theorem: key of the theorem that states it.
        axis: the parameter that is swept.
        regime: which term of the theorem leads there.
        exponent: what the theorem states.
        neighbours: the exponents on both sides that it must be told from.
        values: where it is measured.
        sample: value → one number a trial.
        formula: value → the theorem's own number, logarithms and lower-order terms included, whose slope over the same
            values is what a run should show.
        form: which statement it is, where the printed one and the corrected one differ.
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


def sweep_rows(sweep: Sweep, streams: Streams) -> list[Row]:
    """Rows of one rate: a row a value, then the slope with half-way marks to its rivals as its bounds."""
    lower, upper = sorted((sweep.exponent + neighbour) / 2 for neighbour in sweep.neighbours)
    name = f"{sweep.axis} ({sweep.regime})"
    samples = [sweep.sample(value) for value in sweep.values]
    rows = [
        row(sweep.theorem, name, float(value), mean_interval(sample), None, form=sweep.form)
        for value, sample in zip(sweep.values, samples, strict=True)
    ]
    measured = slope_interval(sweep.values, samples, streams.generator("bootstrap", sweep.theorem, name))
    own = float(slope(sweep.values, np.array([sweep.formula(value) for value in sweep.values])))
    verdict, detail = judged(measured, sweep.exponent, own, sweep.neighbours)
    rows.append(row(sweep.theorem, f"slope in {name}", sweep.exponent, measured, verdict, lower=lower, upper=upper,
                    form=sweep.form, formula=own, rivals=sorted(sweep.neighbours), detail=detail))  # fmt: skip
    return rows


def judged(measured: Interval, exponent: float, own: float, rivals: Sequence[float]) -> tuple[Verdict, str]:
    """Verdict of a slope, and why.

    Refuted where the formula itself has another slope than is stated for it, or where the whole interval lies nearer to
    a rival. Confirmed where the interval leaves the rivals out and contains the stated exponent or the formula's slope;
    order agrees where it contains neither, but lies nearer to the stated exponent than to any rival throughout.
    """
    lower, upper = sorted((exponent + rival) / 2 for rival in rivals)
    if not lower < own < upper:
        return Verdict.REFUTED, f"the formula's own slope is {own:.3f}"
    found = within(measured, lower, upper)
    if found != Verdict.CONFIRMED:
        return found, ""
    for wanted, name in ((exponent, "the stated exponent"), (own, "the formula's own slope")):
        if measured.low <= wanted <= measured.high:
            return Verdict.CONFIRMED, f"contains {name}"
    return Verdict.ORDER_AGREES, f"leaves out {exponent:.3g} and the formula's {own:.3f}"
