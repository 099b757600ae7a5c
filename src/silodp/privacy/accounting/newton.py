"""Where a sum of shifted Gaussian likelihood ratios takes a value: Newton's method in logarithms."""

import numpy as np

_STEPS = 50
# Relative to what is found: the last step is far below, as they shrink quadratically.
_CLOSE = 1e-12


def where_sum_is(log_weights: np.ndarray, jumps: np.ndarray, log_goal: np.ndarray) -> np.ndarray:
    """(E,) t with Σ_j w_j e^{c_j t − c_j²/2} = B for each B.

    From the right: ln of the sum is convex and increasing in t, so that no step overshoots.

    Args:
        log_weights: (J,) ln w_j; −∞ for some, not all.
        jumps: (J,) c_j > 0.
        log_goal: (E,) ln B.
    """
    with np.errstate(invalid="ignore"):
        t = np.min((log_goal[:, None] - log_weights) / jumps + jumps / 2, axis=1)
    if len(jumps) == 1:
        return t
    constant = log_weights - jumps**2 / 2
    for _ in range(_STEPS):
        terms = constant + jumps * t[:, None]
        largest = terms.max(1, keepdims=True)
        shares = np.exp(terms - largest)
        total = shares.sum(1)
        step = (largest[:, 0] + np.log(total) - log_goal) * total / (shares @ jumps)
        t -= step
        if np.max(np.abs(step), initial=0.0) < _CLOSE * (1 + np.max(np.abs(t), initial=0.0)):
            break
    return t
