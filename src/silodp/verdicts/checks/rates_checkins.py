"""Check 3, check-ins paper: dummy updates against exact expectations, and the exponents of Theorems 3.5 and 4.2."""

import math
from typing import Any

from silodp.verdicts.checks.base import Array, Claim, Context, Row, Sweep, bounded, equals, sweep_rows, sweeps
from silodp.verdicts.checks.slots import checked_in, empty_fixed, empty_sliding, slotted_risk

WIDTH = 2.0
ONE, HALF = (1.0, (0.5, 1.5)), (0.5, (0.0, 1.0))
MINUS_HALF = (-0.5, (0.0, -1.0))
FLAT = (0.0, (-0.5, 0.5))
SIZES = [5, 10, 20, 40, 80]


def rates_checkins(context: Context) -> list[Row]:
    """Rows of all sweeps, then the dummy updates at single points."""
    rates = [*_dummies(context), *_fixed(context), *_averaged(context), *_smooth(context), _compared(context)]
    return [row for sweep in rates for row in sweep_rows(sweep, context.streams)] + _expectations(context)


def _dummies(context: Context) -> list[Sweep]:
    trials, streams = context.trials(200), context.streams
    claim: Claim = (*ONE, [100, 200, 400, 800, 1600])

    def fixed(_: Context, m: int) -> Array:
        return empty_fixed(2 * m, m, 0.5, trials, streams.generator("fixed", m))

    def sliding(_: Context, n: int) -> Array:
        return empty_sliding(n, n // 4, trials, streams.generator("sliding", n))

    def short(m: int) -> float:
        return context.evaluate("checkins-3.4-short", n=2 * m, m=m, c=1.0).value

    def bound(n: int) -> float:
        return context.evaluate("checkins-4.4", n=n, m=n // 4).value

    rates = sweeps(context, "checkins-3.4-short", "n = 2m, c = 1", {"m": claim}, {}, fixed, short)
    return rates + sweeps(context, "checkins-4.4", "m = n/4", {"n": claim}, {}, sliding, bound)


def _risk(part: Context, theorem: str, n: int, m: int, p0: float, p: int, sigma: float, **options: Any) -> Array:
    """Excess risk at the theorem's step, (trials,); `options` of `slotted_risk`."""
    step = part.evaluate(theorem, n=n, m=m, p0=p0, p=p, sigma=sigma, L=1.0, beta=1e-6, width=WIDTH).terms["step"]
    counts = checked_in(n, m, p0, part.trials(100), part.streams.generator("check-ins"))
    return slotted_risk(counts, step, p=p, sigma=sigma, generator=part.streams.generator("noise"), **options)


def _slotted(
    context: Context, theorem: str, names: tuple[str, ...], claims: dict[str, Claim], base: dict[str, float], **options
) -> list[Sweep]:
    """Sweeps of an excess risk, where the noise leads. The linear loss is β-smooth for every β: β near 0 says most."""

    def whole(n: int = 0, p0: float = 1.0, **point: Any) -> dict[str, Any]:
        # Of A_fix half of 4m clients check in.
        return {"n": n or 4 * point["m"], "p0": p0 if n else 0.5, **point}

    def sample(part: Context, **point: Any) -> Array:
        return _risk(part, theorem, **whole(**point), **options)

    def formula(**point: Any) -> float:
        return context.evaluate(theorem, **whole(**point), L=1.0, beta=1e-6, width=WIDTH).value

    return sweeps(context, theorem, "noise", claims, base, sample, formula, names=names)


def _fixed(context: Context) -> list[Sweep]:
    """Last iterate of A_fix, where the noise leads: √p σ/√m."""
    claims: dict[str, Claim] = {
        "m": (*MINUS_HALF, [500, 1000, 2000, 4000, 8000]),
        "p": (*HALF, SIZES),
        "sigma": (*ONE, [1, 1.4, 2, 2.8, 4]),
    }
    base = {"m": 2000, "p": 10, "sigma": 2.0}
    return _slotted(context, "checkins-3.5", ("fixed",), claims, base, average=False)


def _averaged(context: Context) -> list[Sweep]:
    """Last iterate of A_avg at fixed m: √p σ/√n, whatever m, as m clients more a slot lessen its noise."""
    claims: dict[str, Claim] = {
        "n": (*MINUS_HALF, [4000, 8000, 16000, 32000, 64000]),
        "m": (*FLAT, [250, 500, 1000, 2000, 4000]),
        "p": (*HALF, SIZES),
    }
    base = {"m": 1000, "n": 16000, "p": 10, "sigma": 16.0}
    return _slotted(context, "checkins-4.2", ("averaged", "noise"), claims, base, average=True)


def _smooth(context: Context) -> list[Sweep]:
    """Mean iterate of A_avg under a constant step, where the noise leads: √p σ/√n, whatever m, without a logarithm."""
    claims: dict[str, Claim] = {
        "n": (*MINUS_HALF, [128_000, 256_000, 512_000, 1_024_000, 2_048_000]),
        "m": (*FLAT, [250, 500, 1000, 2000, 4000]),
        "p": (*HALF, SIZES),
    }
    base = {"m": 500, "n": 512_000, "p": 10, "sigma": 16.0}
    options = {"average": True, "mean_iterate": True, "constant_step": True}
    return _slotted(context, "checkins-4.2-smooth", ("smooth",), claims, base, **options)


def _compared(context: Context) -> Sweep:
    """Risk of A_avg over A_fix at one central ε, where noise leads: √(n/m), so that A_fix is ahead for m ≪ n.

    As the paper compares them after Theorem 4.2: A_fix with p0 = m/n and σ = p0/(ε√m), A_avg with σ = 1/(ε√m), up to
    logarithms and the factor e^(3ε0/2) of its privacy.
    """
    n, p, sizes = 16_000, 10, [250, 500, 1000, 2000, 4000]
    # ε so small that both risks are of the noise.
    epsilon = 0.002

    def risk(m: int, average: bool) -> Array:
        p0, theorem = (1.0, "checkins-4.2") if average else (m / n, "checkins-3.5")
        sigma = p0 / (epsilon * math.sqrt(m))
        return _risk(context.child("compared", average, m), theorem, n, m, p0, p, sigma, average=average)

    def sample(m: float) -> Array:
        averaged, fixed = risk(int(m), True), risk(int(m), False)
        # Values whose mean is the ratio of means, with the spread of both to first order.
        return averaged.mean() / fixed.mean() * (1 + averaged / averaged.mean() - fixed / fixed.mean())

    regime = "risk of A_avg over A_fix at one central epsilon"
    return Sweep("checkins-4.2", "m", regime, *MINUS_HALF, sizes, sample, lambda m: math.sqrt(n / m))


def _expectations(context: Context) -> list[Row]:
    """Simulated dummy updates against the propositions' bounds, and against the exact expectations."""
    rows, trials = [], context.trials(10_000)
    for n, m, c in ((40, 20, 1.0), (50, 10, 2.0), (100, 100, 0.5), (30, 10, 3.0)):
        p0 = c * m / n
        empty = empty_fixed(n, m, p0, trials, context.streams.generator("expected", n, m))
        exact, short = (context.evaluate(key, n=n, m=m, p0=p0, c=c) for key in ("checkins-3.4", "checkins-3.4-short"))
        name = f"dummy updates at n = {n}; c ="
        rows.append(equals("checkins-3.4", name, c, empty, exact.value))
        rows.append(bounded("checkins-3.4-short", name, c, empty, upper=short.value, reach=m))
    for n, m in ((400, 20), (1000, 40)):
        empty = empty_sliding(n, m, trials, context.streams.generator("expected sliding", n, m))
        result = context.evaluate("checkins-4.4", n=n, m=m)
        name = f"dummy updates at n = {n}; m ="
        rows.append(equals("checkins-4.4 (exact)", name, m, empty, result.terms["exact"]))
        rows.append(bounded("checkins-4.4", name, m, empty, upper=result.value, reach=n - m + 1))
    return rows
