"""What all checks share: their rows, their verdicts, how large they are, and the theorems they hold runs against."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from silodp.results import BOUNDS_COLUMNS
from silodp.rng import Streams
from silodp.statistics import Interval, mean_interval, slope, slope_interval
from silodp.theory import THEOREMS, Theorem

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
    verdict: str,
    *,
    lower: float = math.nan,
    upper: float = math.nan,
) -> Row:
    """One row of a bounds table, without the name of its check."""
    found = measured or Interval(math.nan, math.nan, math.nan)
    return {"theorem": theorem, "parameter": parameter, "value": value, "lower": lower, "measured": found.value,
            "measured_low": found.low, "measured_high": found.high, "upper": upper, "verdict": verdict}  # fmt: skip


def table(check: str, rows: Sequence[Row]) -> pd.DataFrame:
    """Rows of one check as the table that its CSV file holds."""
    return pd.DataFrame(rows).assign(check=check)[BOUNDS_COLUMNS]


def within(measured: Interval, lower: float, upper: float) -> str:
    """`holds` when the whole interval lies in [lower, upper], `fails` when none of it does, else `inconclusive`.

    A missing bound (NaN) is no bound.
    """
    low = -math.inf if math.isnan(lower) else lower
    high = math.inf if math.isnan(upper) else upper
    if low <= measured.low and measured.high <= high:
        return "holds"
    return "fails" if measured.high < low or measured.low > high else "inconclusive"


def bounded(
    theorem: str, parameter: str, value: float, samples: Array, *, lower: float = math.nan, upper: float = math.nan,
    printed: bool = False,
) -> Row:  # fmt: skip
    """A row that holds a mean over trials against its bounds.

    With `printed` the bound is the paper's printed form where that is known to differ from what holds (docs/errata.md);
    the theorem's name and the verdict say so.
    """
    measured = mean_interval(samples, CONFIDENT)
    verdict = within(measured, lower, upper) + (" as printed" if printed else "")
    return row(theorem + (" (printed)" if printed else ""), parameter, value, measured, verdict, lower=lower,
               upper=upper)  # fmt: skip


def equals(theorem: str, parameter: str, value: float, samples: Array, exact: float) -> Row:
    """A row that holds a mean over trials against an equality: the interval has to contain it."""
    measured = mean_interval(samples, CONFIDENT)
    verdict = "holds" if measured.low <= exact <= measured.high else "fails"
    return row(theorem, parameter, value, measured, verdict, lower=exact, upper=exact)


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
        formula: value → the theorem's own number, whose slope must be the claimed exponent as well; logarithms may bend
            it, not beyond half-way to a neighbour.
    """

    theorem: str
    axis: str
    regime: str
    exponent: float
    neighbours: tuple[float, float]
    values: Sequence[float]
    sample: Callable[[float], Array]
    formula: Callable[[float], float]


def sweep_rows(sweep: Sweep, streams: Streams) -> list[Row]:
    """Rows of one rate: a row a value, then the slope with half-way marks to the neighbours as its bounds.

    Verdicts of the slope: `confirmed` when the interval lies between the marks, `refuted` when it lies outside,
    `inconclusive` when it crosses one; `formula differs` when the theorem's own number has another slope.
    """
    lower, upper = sorted((sweep.exponent + neighbour) / 2 for neighbour in sweep.neighbours)
    name = f"{sweep.axis} ({sweep.regime})"
    samples = [sweep.sample(value) for value in sweep.values]
    rows = [
        row(sweep.theorem, name, float(value), mean_interval(sample), "")
        for value, sample in zip(sweep.values, samples, strict=True)
    ]
    measured = slope_interval(sweep.values, samples, streams.generator("bootstrap", sweep.theorem, name))
    own = float(slope(sweep.values, np.array([sweep.formula(value) for value in sweep.values])))
    verdict = {"holds": "confirmed", "fails": "refuted"}.get(found := within(measured, lower, upper), found)
    if not lower < own < upper:
        verdict = f"formula differs: its slope is {own:.3f}"
    rows.append(row(sweep.theorem, f"slope in {name}", sweep.exponent, measured, verdict, lower=lower, upper=upper))
    return rows
