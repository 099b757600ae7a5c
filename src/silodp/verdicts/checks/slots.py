"""Random check-ins simulated: how many slots stay empty, and the risk of SGD whose slots the check-ins fill.

The loss is the linear one with constant records (its gradient is −L in one direction), so that the risk is all noise
and empty slots. Clients check in once, with probability p0, at a slot drawn uniformly (A_fix, A_avg; check-ins paper,
Sections 3 and 4.1), or at one of the m slots that follow their own number (A_sldw, Section 4.2).
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def checked_in(n: int, m: int, p0: float, trials: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Clients in each of m slots, (trials, m): each of n clients picks a slot with probability p0."""
    return generator.multinomial(n, [*[p0 / m] * m, 1 - p0], size=trials)[:, :m]


def empty_fixed(n: int, m: int, p0: float, trials: int, generator: np.random.Generator) -> Array:
    """Empty slots of A_fix, (trials,): dummy updates."""
    return (checked_in(n, m, p0, trials, generator) == 0).sum(axis=1).astype(float)


def empty_sliding(n: int, m: int, trials: int, generator: np.random.Generator) -> Array:
    """Empty slots of A_sldw among slots m … n, (trials,): client j picks one of the slots j … j + m − 1."""
    found = np.empty(trials)
    for trial in range(trials):
        slots = np.arange(1, n + 1) + generator.integers(0, m, n)
        found[trial] = np.count_nonzero(np.bincount(slots, minlength=n + 1)[m : n + 1] == 0)
    return found


def slotted_risk(
    counts: NDArray[np.int64], step: float, *, p: int, sigma: float, average: bool, generator: np.random.Generator,
    mean_iterate: bool = False, constant_step: bool = False,
) -> Array:  # fmt: skip
    """Excess risk of projected SGD over the slots, (trials,), on the unit ball with L = 1.

    Args:
        counts: clients of each slot, (trials, m).
        step: c of the steps c/√i of slots i = 1, 2, …; or the step itself with `constant_step`.
        p: parameters.
        sigma: noise of one client's gradient, per coordinate.
        average: a slot averages all its clients (A_avg), and one without clients changes nothing; else one of them is
            taken (A_fix), and a slot without clients is an update of noise alone.
        mean_iterate: the risk of the mean iterate instead of the last.
    """
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
