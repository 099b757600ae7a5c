"""Check 3, check-ins paper: dummy updates against exact expectations, and the exponents of Theorems 3.5 and 4.2."""

import math
from collections.abc import Sequence

import numpy as np

from silodp.theory.registry import Result
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, bounded, equals, sweep_rows
from silodp.verdicts.checks.slots import checked_in, empty_fixed, empty_sliding, slotted_risk

WIDTH = 2.0
ONE, HALF = (1.0, (0.5, 1.5)), (0.5, (0.0, 1.0))
MINUS_HALF = (-0.5, (0.0, -1.0))
FLAT = (0.0, (-0.5, 0.5))


def rates_checkins(context: Context) -> list[Row]:
    """Rows of all sweeps, then the dummy updates at single points."""
    rows: list[Row] = []
    for sweep in [*_dummies(context), *_fixed(context), *_averaged(context), *_smooth(context), _compared(context)]:
        rows += sweep_rows(sweep, context.streams)
    return rows + _expectations(context)


def _dummies(context: Context) -> list[Sweep]:
    slots, trials = [100, 200, 400, 800, 1600], context.trials(200)

    def generator(*names: object) -> np.random.Generator:
        return context.streams.generator(*names)

    return [
        Sweep("checkins-3.4-short", "m", "n = 2m, c = 1", *ONE, slots,
              lambda m: empty_fixed(2 * int(m), int(m), 0.5, trials, generator("fixed", m)),
              lambda m: context.theorems["checkins-3.4-short"](n=2 * int(m), m=int(m), c=1.0).value),
        Sweep("checkins-4.4", "n", "m = n/4", *ONE, slots,
              lambda n: empty_sliding(int(n), int(n) // 4, trials, generator("sliding", n)),
              lambda n: context.theorems["checkins-4.4"](n=int(n), m=int(n) // 4).value),
    ]  # fmt: skip


def _fixed(context: Context) -> list[Sweep]:
    """Last iterate of A_fix, where the noise leads: √p σ/√m."""
    base = {"m": 2000, "p": 10, "sigma": 2.0}

    def sweep(axis: str, claim: tuple[float, tuple[float, float]], values: Sequence[float]) -> Sweep:
        def theorem(value: float) -> Result:
            point = base | {axis: value}
            m = int(point["m"])
            return context.theorems["checkins-3.5"](
                n=4 * m, m=m, p0=0.5, p=int(point["p"]), sigma=point["sigma"], L=1.0, width=WIDTH
            )

        def sample(value: float) -> Array:
            point, part, trials = base | {axis: value}, context.child("fixed", axis, value), context.trials(100)
            m = int(point["m"])
            counts = checked_in(4 * m, m, 0.5, trials, part.streams.generator("check-ins"))
            return slotted_risk(counts, theorem(value).terms["step"], p=int(point["p"]), sigma=point["sigma"],
                                average=False, generator=part.streams.generator("noise"))  # fmt: skip

        return Sweep("checkins-3.5", axis, "noise", *claim, values, sample, lambda value: theorem(value).value)

    return [
        sweep("m", MINUS_HALF, [500, 1000, 2000, 4000, 8000]),
        sweep("p", HALF, [5, 10, 20, 40, 80]),
        sweep("sigma", ONE, [1, 1.4, 2, 2.8, 4]),
    ]


def _averaged(context: Context) -> list[Sweep]:
    """Last iterate of A_avg at fixed m: √p σ/√n, whatever m, as m clients more a slot lessen its noise."""
    base = {"m": 1000, "n": 16000, "p": 10, "sigma": 16.0}

    def sweep(axis: str, claim: tuple[float, tuple[float, float]], values: Sequence[float], regime: str) -> Sweep:
        noise = base | ({"sigma": 0.1} if regime == "statistical" else {})

        def theorem(value: float) -> Result:
            point = noise | {axis: value}
            return context.theorems["checkins-4.2"](
                n=int(point["n"]), m=int(point["m"]), p=int(point["p"]), sigma=point["sigma"], L=1.0, width=WIDTH
            )

        def sample(value: float) -> Array:
            point, part = noise | {axis: value}, context.child("averaged", regime, axis, value)
            counts = checked_in(
                int(point["n"]), int(point["m"]), 1.0, context.trials(100), part.streams.generator("check-ins")
            )
            return slotted_risk(counts, theorem(value).terms["step"], p=int(point["p"]), sigma=point["sigma"],
                                average=True, generator=part.streams.generator("noise"))  # fmt: skip

        return Sweep("checkins-4.2", axis, regime, *claim, values, sample, lambda value: theorem(value).value)

    return [
        sweep("n", MINUS_HALF, [4000, 8000, 16000, 32000, 64000], "noise"),
        sweep("m", FLAT, [250, 500, 1000, 2000, 4000], "noise"),
        sweep("p", HALF, [5, 10, 20, 40, 80], "noise"),
    ]


def _smooth(context: Context) -> list[Sweep]:
    """Mean iterate of A_avg under a constant step, where the noise leads: √p σ/√n, whatever m, without a logarithm."""
    # The linear loss is β-smooth for every β > 0: the theorem says most near 0.
    base = {"m": 500, "n": 512_000, "p": 10, "sigma": 16.0}

    def sweep(axis: str, claim: tuple[float, tuple[float, float]], values: Sequence[float]) -> Sweep:
        def theorem(value: float) -> Result:
            point = base | {axis: value}
            return context.theorems["checkins-4.2-smooth"](
                n=int(point["n"]), m=int(point["m"]), p=int(point["p"]), sigma=point["sigma"], L=1.0, beta=1e-6,
                width=WIDTH,
            )  # fmt: skip

        def sample(value: float) -> Array:
            point, part = base | {axis: value}, context.child("smooth", axis, value)
            counts = checked_in(
                int(point["n"]), int(point["m"]), 1.0, context.trials(100), part.streams.generator("check-ins")
            )
            return slotted_risk(counts, theorem(value).terms["step"], p=int(point["p"]), sigma=point["sigma"],
                                average=True, generator=part.streams.generator("noise"), mean_iterate=True,
                                constant_step=True)  # fmt: skip

        return Sweep("checkins-4.2-smooth", axis, "noise", *claim, values, sample, lambda value: theorem(value).value)

    return [
        sweep("n", MINUS_HALF, [128_000, 256_000, 512_000, 1_024_000, 2_048_000]),
        sweep("m", FLAT, [250, 500, 1000, 2000, 4000]),
        sweep("p", HALF, [5, 10, 20, 40, 80]),
    ]


def _compared(context: Context) -> Sweep:
    """Risk of A_avg over A_fix at one central ε, where noise leads: √(n/m), so that A_fix is ahead for m ≪ n.

    As the paper compares them after Theorem 4.2: A_fix with p0 = m/n and σ = p0/(ε√m), A_avg with σ = 1/(ε√m), up to
    logarithms and the factor e^(3ε0/2) of its privacy.
    """
    n, p, trials, sizes = 16_000, 10, context.trials(100), [250, 500, 1000, 2000, 4000]
    # ε so small that both risks are of the noise.
    epsilon = 0.002

    def risk(m: int, average: bool) -> Array:
        p0, theorem = (1.0, "checkins-4.2") if average else (m / n, "checkins-3.5")
        sigma = p0 / (epsilon * math.sqrt(m))
        part = context.child("compared", average, m)
        point = {"n": n, "m": m, "p": p, "sigma": sigma, "L": 1.0, "width": WIDTH} | ({} if average else {"p0": p0})
        step = context.theorems[theorem](**point).terms["step"]
        counts = checked_in(n, m, p0, trials, part.streams.generator("check-ins"))
        return slotted_risk(counts, step, p=p, sigma=sigma, average=average, generator=part.streams.generator("noise"))

    def sample(m: float) -> Array:
        averaged, fixed = risk(int(m), True), risk(int(m), False)
        # Values whose mean is the ratio of means, with the spread of both to first order.
        return averaged.mean() / fixed.mean() * (1 + averaged / averaged.mean() - fixed / fixed.mean())

    return Sweep("checkins-4.2", "m", "risk of A_avg over A_fix at one central epsilon", *MINUS_HALF, sizes, sample,
                 lambda m: math.sqrt(n / m))  # fmt: skip


def _expectations(context: Context) -> list[Row]:
    """Simulated dummy updates against the propositions' bounds, and against the exact expectations."""
    rows, trials = [], context.trials(10_000)
    for n, m, c in ((40, 20, 1.0), (50, 10, 2.0), (100, 100, 0.5), (30, 10, 3.0)):
        p0 = c * m / n
        found = empty_fixed(n, m, p0, trials, context.streams.generator("expected", n, m))
        exact = context.theorems["checkins-3.4"](n=n, m=m, p0=p0).value
        short = context.theorems["checkins-3.4-short"](n=n, m=m, c=c).value
        name = f"dummy updates at n = {n}; c ="
        rows.append(equals("checkins-3.4", name, c, found, exact))
        rows.append(bounded("checkins-3.4-short", name, c, found, upper=short, reach=m))
    for n, m in ((400, 20), (1000, 40)):
        found = empty_sliding(n, m, trials, context.streams.generator("expected sliding", n, m))
        result = context.theorems["checkins-4.4"](n=n, m=m)
        name = f"dummy updates at n = {n}; m ="
        rows.append(equals("checkins-4.4 (exact)", name, m, found, result.terms["exact"]))
        rows.append(bounded("checkins-4.4", name, m, found, upper=result.value, reach=n - m + 1))
    return rows
