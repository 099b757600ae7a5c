"""Random check-ins simulated: how many slots stay empty, and the risk of SGD whose slots the check-ins fill.

The loss is the linear one with constant records (its gradient is −L in one direction), so that the risk is all noise
and empty slots. Clients check in once, with probability p0, at a slot drawn uniformly (A_fix, A_avg; check-ins paper,
Sections 3 and 4.1), or at one of the m slots that follow their own number (A_sldw, Section 4.2).

Where an algorithm that does nothing stands in, nobody checks in and all slots are empty; the mean plus noise has all
that were heard in a single slot.
"""

import numpy as np
from numpy.typing import NDArray

from silodp.verdicts.checks.stack import standing_in

Array = NDArray[np.float64]


def checked_in(n: int, m: int, p0: float, trials: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Clients in each of m slots, (trials, m): each of n clients picks a slot with probability p0."""
    return generator.multinomial(n, [*[p0 / m] * m, 1 - p0], size=trials)[:, :m]


def empty_fixed(n: int, m: int, p0: float, trials: int, generator: np.random.Generator) -> Array:
    """Empty slots of A_fix, (trials,): dummy updates."""
    if standing_in():
        return np.full(trials, float(m))
    return (checked_in(n, m, p0, trials, generator) == 0).sum(axis=1).astype(float)


def empty_sliding(n: int, m: int, trials: int, generator: np.random.Generator) -> Array:
    """Empty slots of A_sldw among slots m … n, (trials,): client j picks one of the slots j … j + m − 1."""
    empty = np.full(trials, n - m + 1.0)
    for trial in range(0 if standing_in() else trials):
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
    null = standing_in()
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
