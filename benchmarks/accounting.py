"""Both ends of a delivered ε over random events, beside a composition of its own; the table of benchmarks/PRIVACY.md.

`python benchmarks/accounting.py` takes some minutes of one core. What is here uses nothing of
`silodp.privacy.accounting` but the function under test: two neighbours that can be written down, the replaced record
pulling against all others, are composed by a tilted Fourier transform on a fine lattice, in either order. What they
reach no upper end may lie below.
"""

import argparse
import math
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dp_accounting import dp_event
from scipy.fft import irfft, rfft
from scipy.stats import binom

from marked import write_between
from silodp.privacy.accounting import delivered_epsilon

CASES, EXTREMES, SEED = 500, 300, 2023
LIMIT = 2.0  # seconds an answer may take
POINTS = 1 << 18
# What either lattice may cost of an ε, below which nothing is called a violation.
ACCURACY = 1e-3
FAMILIES = ("with replacement", "without replacement", "two kinds", "one record a step")
BEGIN, END = "<!-- written by benchmarks/accounting.py -->", "<!-- end -->"


class Kind(NamedTuple):
    """`count` releases of `drawn` of `n` records; `sampling` as in dp-accounting's events, z their noise multiplier."""

    sampling: str
    n: int
    records_drawn: int
    z: float
    count: int

    @property
    def event(self) -> dp_event.DpEvent:
        gaussian = dp_event.GaussianDpEvent(self.z)
        kinds = {"with": dp_event.SampledWithReplacementDpEvent, "without": dp_event.SampledWithoutReplacementDpEvent}
        return dp_event.SelfComposedDpEvent(kinds[self.sampling](self.n, self.records_drawn, gaussian), self.count)


class Case(NamedTuple):
    """An event of one or two kinds of releases, asked at δ."""

    family: str
    kinds: tuple[Kind, ...]
    delta: float

    @property
    def event(self) -> dp_event.DpEvent:
        return dp_event.ComposedDpEvent([kind.event for kind in self.kinds])


class Found(NamedTuple):
    """Ends of ε, seconds of CPU that they took, and what the written-down neighbours reach (NaN: not asked)."""

    case: Case
    lower: float
    upper: float
    seconds: float
    reached: float


def _between(low: float, high: float, generator: np.random.Generator) -> float:
    """Uniform in the logarithm."""
    return math.exp(generator.uniform(math.log(low), math.log(high)))


def case(number: int) -> Case:
    """A random event whose ε is neither lost in δ nor beyond what anybody would call private."""
    between = partial(_between, generator=np.random.default_rng([SEED, number]))
    family = FAMILIES[number % len(FAMILIES)]
    n = round(between(20, 100_000))
    delta, kinds = between(1e-9, 1e-2), []
    for _ in range(2 if family == "two kinds" else 1):
        single = family == "one record a step"
        drawn = 1 if single else math.ceil(n * between(0.002, 0.5))
        count = round(between(100, 100_000) if single else between(1, 500))
        # About the shift between two Gaussians that all of them together come to.
        z = max(math.sqrt(count) * drawn / n / between(0.03, 5), 0.25)
        sampling = "without" if family == "without replacement" else "with"
        kinds.append(Kind(sampling, n, drawn, z, count))
    return Case(family, tuple(kinds), delta)


def extreme(number: int) -> Case:
    """Any event that the accountant says it takes."""
    generator = np.random.default_rng([SEED, 1, number])
    between = partial(_between, generator=generator)
    n = round(between(2, 1e6))
    sampling = str(generator.choice(["with", "without"]))
    drawn = min(round(between(1, 64 * n)), 64 * n if sampling == "with" else n)
    kind = Kind(sampling, n, drawn, between(1e-6, 1e12), round(between(1, 1e7)))
    return Case("extremes", (kind,), min(between(1e-30, 1), 0.99))


class Pair:
    """ln(P/Q) of one release of the neighbours, under P: P = Σ p_j N(j/z, 1) and Q = N(0, 1), or the other way round.

    Moments are sums over evenly spaced outcomes, which for Gaussian mixtures are as good as exact.
    """

    def __init__(self, kind: Kind, delta: float, mirrored: bool):
        share = kind.records_drawn / kind.n
        if kind.sampling == "with":
            most = int(binom.isf(1e-6 * delta / kind.count, kind.records_drawn, 1 / kind.n)) + 1
            weights = binom.pmf(np.arange(most + 1), kind.records_drawn, 1 / kind.n)
        else:
            weights = np.array([1 - share, share])
        self.log_weights, self.mirrored, self.count = np.log(weights[weights > 0]), mirrored, kind.count
        self.means = np.flatnonzero(weights > 0) / kind.z

    def outcomes(self, order: float, most: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
        """(losses, ln masses) wherever the law matters after tilting by e^(order·loss), at `most` outcomes."""
        far = 0.0 if self.mirrored else (1 + order) * self.means[-1]
        x = np.arange(-14, 14 + far, max(0.01, (28 + far) / most))
        normal = -(x**2) / 2 - math.log(2 * math.pi) / 2
        ratio = np.full(x.shape, -np.inf)
        for log_weight, mean in zip(self.log_weights, self.means, strict=True):
            ratio = np.logaddexp(ratio, log_weight + mean * x - mean**2 / 2)
        width = math.log(x[1] - x[0])
        return (-ratio, normal + width) if self.mirrored else (ratio, normal + ratio + width)

    def moment(self, order: float) -> float:
        """ln E e^(order·loss) of all releases, well enough to choose an order by."""
        losses, log_masses = self.outcomes(order, 2000)
        return self.count * float(np.logaddexp.reduce(log_masses + order * losses))


def reached(kinds: tuple[Kind, ...], delta: float, mirrored: bool) -> float:
    """ε at δ of the composed pairs, by a transform of losses that are tilted to where they decide about it."""
    pairs = [Pair(kind, delta, mirrored) for kind in kinds]
    orders = np.geomspace(1e-3, 1e3, 61)
    bounds = [(sum(pair.moment(order) for pair in pairs) - math.log(delta)) / order for order in orders]
    order = float(orders[int(np.argmin(bounds))])
    tilted = []
    mean = variance = log_total = reach = 0.0
    for pair in pairs:
        losses, log_masses = pair.outcomes(order)
        log_masses = log_masses + order * losses
        one = float(np.logaddexp.reduce(log_masses))
        masses = np.exp(log_masses - one)
        kept = masses > 1e-18
        losses, masses = losses[kept], masses[kept]
        centre = float(masses @ losses)
        mean += pair.count * centre
        variance += pair.count * float(masses @ (losses - centre) ** 2)
        log_total += pair.count * one
        reach = max(reach, float(np.ptp(losses)))
        tilted.append((losses, masses, pair.count))
    step = (30 * math.sqrt(variance) + 2.1 * reach) / POINTS
    transform = np.ones(POINTS // 2 + 1, dtype=complex)
    for losses, masses, count in tilted:
        place = losses / step
        below = np.floor(place).astype(np.int64)
        lattice = np.bincount(below % POINTS, masses * (1 - (place - below)), POINTS)
        lattice += np.bincount((below + 1) % POINTS, masses * (place - below), POINTS)
        transform *= rfft(lattice) ** count
    composed = np.maximum(irfft(transform, POINTS), 0.0)
    first = round(mean / step) - POINTS // 2
    losses = (first + np.arange(POINTS)) * step
    log_masses = np.log(np.maximum(np.roll(composed, -first), 1e-300)) - order * losses + log_total
    low, high = 0.0, max(float(losses[-1]), 0.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = losses > middle
        got = float(np.exp(log_masses[above]) @ -np.expm1(middle - losses[above]))
        low, high = (middle, high) if got > delta else (low, middle)
    return low


def measure(job: tuple[str, int]) -> Found:
    """One case: its ends, their time, and what is held against them."""
    design, number = job
    asked = case(number) if design == "random" else extreme(number)
    began = time.process_time()
    ends = delivered_epsilon(asked.event, asked.delta)
    seconds = time.process_time() - began
    if design == "extreme":
        return Found(asked, ends.lower, ends.upper, seconds, math.nan)
    found = max(reached(asked.kinds, asked.delta, mirrored) for mirrored in (False, True))
    return Found(asked, ends.lower, ends.upper, seconds, found)


def violations(found: list[Found]) -> list[Found]:
    """Cases whose upper end is below what neighbours reach, or below the lower end, or that took too long."""
    return [
        one
        for one in found
        if one.upper < one.reached * (1 - ACCURACY) - 1e-6 or one.lower > one.upper or one.seconds > LIMIT
    ]


def _quantiles(values: list[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in np.quantile(values, (0.5, 0.9, 1.0))) if values else "–"


def table(found: list[Found], extremes: list[Found]) -> str:
    """The table in Markdown."""
    lines = [
        f"{len(found)} random events: n from 20 to 100,000, up to 500 rounds, or 100,000 steps of one record,",
        "δ from 1e-9 to 1e-2. Ratios where ε > 0.01: median / 90 % / largest. Reached: ε of the lower end's two,",
        "by a composition written in the benchmark. Seconds of CPU for both ends; last row:",
        f"{len(extremes)} events of any size that the accountant takes.",
        "",
        "| events | cases | ε from – to | upper/lower | upper/reached | reached/lower | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for family in ("all", *FAMILIES):
        of = [one for one in found if family in ("all", one.case.family)]
        told = [one for one in of if one.lower > 0.01]
        ends = [one.upper for one in told]
        ratios = (
            [one.upper / one.lower for one in told],
            [one.upper / one.reached for one in told],
            [one.reached / one.lower for one in told],
        )
        cells = " | ".join(_quantiles(ratio) for ratio in ratios)
        seconds = _quantiles([one.seconds for one in of])
        lines.append(
            f"| {family} | {len(told)} of {len(of)} | {min(ends):.2g} – {max(ends):.2g} | {cells} | {seconds} |"
        )
    seconds = _quantiles([one.seconds for one in extremes])
    lines.append(f"| any size | {len(extremes)} | | | | | {seconds} |")
    below = sum(one.upper < one.reached * (1 - ACCURACY) - 1e-6 for one in found)
    slow = sum(one.seconds > LIMIT for one in [*found, *extremes])
    lines += [
        "",
        f"Upper ends below what is reached: {below}. Answers of more than {LIMIT:g} s: {slow}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table between its marks in a page; exit code 1 where an end is wrong or late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/PRIVACY.md"))
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--extremes", type=int, default=EXTREMES)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    jobs = [("random", k) for k in range(options.cases)] + [("extreme", k) for k in range(options.extremes)]
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(measure, jobs, chunksize=5))
    write_between(options.output, BEGIN, END, table(found[: options.cases], found[options.cases :]))
    wrong = violations(found)
    for one in wrong:
        print(one)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
