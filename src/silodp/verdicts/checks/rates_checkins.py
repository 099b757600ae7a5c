"""Check 3, check-ins paper: dummy updates against exact expectations, and the exponents of Theorems 3.5 and 4.2.

The simulated loss is linear with constant records, so that the risk is all noise and empty slots. Where an algorithm
that does nothing stands in, nobody checks in.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silodp.verdicts.checks.base import Array, Claim, Context, Row, Sweep, bounded, equals, sweep_rows, sweeps
from silodp.verdicts.checks.stack import current_null


def checked_in(n: int, m: int, p0: float, trials: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Clients in each of m slots, (trials, m): each of n clients picks a slot with probability p0."""
    return generator.multinomial(n, [*[p0 / m] * m, 1 - p0], size=trials)[:, :m]


def empty_fixed(n: int, m: int, p0: float, trials: int, generator: np.random.Generator) -> Array:
    """Empty slots of A_fix, (trials,): dummy updates."""
    if current_null():
        return np.full(trials, float(m))
    return (checked_in(n, m, p0, trials, generator) == 0).sum(axis=1).astype(float)


def empty_sliding(n: int, m: int, trials: int, generator: np.random.Generator) -> Array:
    """Empty slots of A_sldw among slots m … n, (trials,): client j picks one of the slots j … j + m − 1."""
    empty = np.full(trials, n - m + 1.0)
    for trial in range(0 if current_null() else trials):
        slots = np.arange(1, n + 1) + generator.integers(0, m, n)
        empty[trial] = np.count_nonzero(np.bincount(slots, minlength=n + 1)[m : n + 1] == 0)
    return empty


def slotted_risk(
    counts: NDArray[np.int64],
    step: float,
    *,
    p: int,
    sigma: float,
    average: bool,
    generator: np.random.Generator,
    mean_iterate: bool = False,
    constant_step: bool = False,
) -> Array:
    """Excess risk of projected SGD over the slots, (trials,), on the unit ball of R^p, L = 1; `counts` is (trials, m).

    Slot i has the step `step`/√i, or `step` with `constant_step`; `sigma` is the noise of a gradient's coordinate. With
    `average` a slot averages its clients and is skipped without any (A_avg); else it takes one, or noise alone (A_fix).
    `mean_iterate`: the risk is the mean iterate's, not the last one's.
    """
    null = current_null()
    if null == "mean + noise":
        counts = (counts if average else np.minimum(counts, 1)).sum(axis=1, keepdims=True)
        step, average = 1.0, True
    elif null:
        return np.full(len(counts), 1.0 if null == "w_0" else 1 + 1 / np.sqrt(p))
    trials, m = counts.shape
    w, total = np.zeros((trials, p)), np.zeros((trials, p))
    for i in range(m):
        some = counts[:, i] > 0
        noise = generator.standard_normal((trials, p)) * sigma
        if average:
            noise *= (some / np.sqrt(np.maximum(counts[:, i], 1)))[:, None]
        noise[:, 0] -= some
        w = w - (step if constant_step else step / np.sqrt(i + 1)) * noise
        norms = np.linalg.norm(w, axis=1, keepdims=True)
        w = np.where(norms > 1, w / np.maximum(norms, 1), w)
        total += w
    return 1 - (total / m if mean_iterate else w)[:, 0]


WIDTH = 2.0
ONE, HALF = (1.0, (0.5, 1.5)), (0.5, (0.0, 1.0))
MINUS_HALF = (-0.5, (0.0, -1.0))
FLAT = (0.0, (-0.5, 0.5))
SIZES = [5, 10, 20, 40, 80]


def rates_checkins(context: Context) -> list[Row]:
    """Rows of all sweeps, then the dummy updates at single points."""
    rates = [*_dummies(context), *_fixed_sweeps(context), *_averaged(context), *_smooth(context), _compared(context)]
    return [row for sweep in rates for row in sweep_rows(sweep, context.streams)] + _expectations(context)


def _dummies(context: Context) -> list[Sweep]:
    trials, streams = context.trials(200), context.streams
    claim: Claim = (*ONE, [100, 200, 400, 800, 1600])

    def sample_fixed(_: Context, m: int) -> Array:
        return empty_fixed(2 * m, m, 0.5, trials, streams.generator("fixed", m))

    def sample_sliding(_: Context, n: int) -> Array:
        return empty_sliding(n, n // 4, trials, streams.generator("sliding", n))

    def short_bound(m: int) -> float:
        return context.evaluate("checkins-3.4-short", n=2 * m, m=m, c=1.0).value

    def bound(n: int) -> float:
        return context.evaluate("checkins-4.4", n=n, m=n // 4).value

    rates = sweeps(context, "checkins-3.4-short", "n = 2m, c = 1", {"m": claim}, {}, sample_fixed, short_bound)
    return rates + sweeps(context, "checkins-4.4", "m = n/4", {"n": claim}, {}, sample_sliding, bound)


def _risk(part: Context, theorem: str, n: int, m: int, p0: float, p: int, sigma: float, **options: Any) -> Array:
    """Excess risk at the theorem's step, (trials,); `options` of `slotted_risk`."""
    step = part.evaluate(theorem, n=n, m=m, p0=p0, p=p, sigma=sigma, L=1.0, beta=1e-6, width=WIDTH).terms["step"]
    counts = checked_in(n, m, p0, part.trials(100), part.streams.generator("check-ins"))
    return slotted_risk(counts, step, p=p, sigma=sigma, generator=part.streams.generator("noise"), **options)


def _slotted(
    context: Context, theorem: str, names: tuple[str, ...], claims: dict[str, Claim], base: dict[str, float], **options
) -> list[Sweep]:
    """Sweeps of an excess risk, where the noise leads. The linear loss is β-smooth for every β: β near 0 says most."""

    def whole_point(n: int = 0, p0: float = 1.0, **point: Any) -> dict[str, Any]:
        # Of A_fix half of 4m clients check in.
        return {"n": n or 4 * point["m"], "p0": p0 if n else 0.5, **point}

    def sample(part: Context, **point: Any) -> Array:
        return _risk(part, theorem, **whole_point(**point), **options)

    def formula(**point: Any) -> float:
        return context.evaluate(theorem, **whole_point(**point), L=1.0, beta=1e-6, width=WIDTH).value

    return sweeps(context, theorem, "noise", claims, base, sample, formula, names=names)


def _fixed_sweeps(context: Context) -> list[Sweep]:
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
    """Risk of A_avg over A_fix at one central ε, where noise leads: √(n/m), so that A_fix is ahead for m ≪ n."""
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
