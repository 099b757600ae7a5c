"""A better lower bound on ε for a few releases: neighbours whose other records react to what was released before.

Two silos differ in one record, whose gradient always points one way in the first and the other way in the second. The
other records share one gradient: against the first silo's record ("plain" pair) or with it (mirrored pair), as the
transcript so far suggests. Losses are rounded so that the result errs downwards.
"""

import math

import numpy as np
from scipy import fft

from silodp.privacy.accounting.losses import LossPmf, pair_losses
from silodp.privacy.accounting.profiles import Occurrences


@np.errstate(over="ignore", invalid="ignore")  # what overflows is not reached
def adaptive_lower_epsilon(
    occurrences: Occurrences, count: int, delta: float, *, order: float, step: float, top: float, upper: float
) -> float:
    """ε that `count` releases reach at δ when the other records' direction is chosen best after every release.

    With x = ε less the loss so far, the divergence still to come obeys V_0(x) = (1 − e^x)₊ and V_{r+1}(x) = max over
    the two pairs of E V_r(x − ℓ); it runs on e^{λx}V(x), λ the `order`. p_0 must be positive; losses above `top` are
    merged; `upper` is an upper bound on ε.
    """
    floor = -math.log(occurrences.weights[0])
    step = floor / max(round(floor / step), 1)
    pair = [pair_losses(occurrences, step, top, upper=False, reverse=way, aligned=True) for way in (False, True)]
    # The recursion has to see where V_0 counts, and some way above ε; what it does not see counts as 0.
    margin = 4 * math.sqrt(count * pair[0].tilted_variance(order)) + 2 * floor
    x = np.arange(math.floor(-(15 / order + margin) / step), math.ceil((upper + margin) / step)) * step
    kernels = [_kernel(pmf, order) for pmf in pair]
    size = fft.next_fast_len(len(x) + max(len(masses) for _, masses in kernels), real=True)
    spectra = [fft.rfft(masses, size) for _, masses in kernels]
    gain, norm = (max(measure(masses) for _, masses in kernels) for measure in (np.sum, np.linalg.norm))
    unit = 8 * np.finfo(float).eps * math.log2(size)
    value = np.exp(np.minimum(order * x, 0.0)) * -np.expm1(np.minimum(x, 0.0))
    log_scale = error = 0.0
    for _ in range(count):
        spectrum = fft.rfft(value, size)
        ahead = [
            _shifted(fft.irfft(spectrum * kernel, size), first, len(x))
            for kernel, (first, _) in zip(spectra, kernels, strict=True)
        ]
        error = error * gain + unit * float(np.linalg.norm(value)) * norm
        value = np.maximum(np.maximum(*ahead), 0.0)
        peak = float(value.max())
        value, error, log_scale = value / peak, error / peak, log_scale + math.log(peak)
    with np.errstate(divide="ignore"):
        log_divergence = np.log(np.maximum(value - error, 0.0)) + log_scale - order * x
    reached = np.flatnonzero(log_divergence >= math.log(delta))
    return max(float(x[reached[-1]]), 0.0) if len(reached) else 0.0


def _kernel(pmf: LossPmf, order: float) -> tuple[int, np.ndarray]:
    """(lattice index of the first mass, masses times e^(order·ℓ)) without masses too small to matter."""
    first = pmf.first + round(pmf.offset / pmf.step)
    log_tilted = pmf.log_masses + order * ((first + np.arange(len(pmf.masses))) * pmf.step)
    kept = np.flatnonzero(log_tilted > log_tilted.max() - 45)
    return first + int(kept[0]), np.exp(log_tilted[kept[0] : kept[-1] + 1])


def _shifted(values: np.ndarray, first: int, size: int) -> np.ndarray:
    """(size,) values[k − first], 0 where there is none."""
    shifted = np.zeros(size)
    start, end = min(max(first, 0), size), min(max(first + len(values), 0), size)
    shifted[start:end] = values[start - first : end - first]
    return shifted
