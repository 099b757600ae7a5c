"""Composition of discrete privacy losses, exact to a controlled error at any δ.

The convolution is a product of Fourier transforms of laws tilted by e^λℓ, λ such that the losses that decide about ε at
δ are the likely ones: rounding errors are then small relative to δ itself, however small δ is.

A better lower bound for a few releases is `adaptive_lower_epsilon`: neighbours whose other records react to what was
released before.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import fft
from scipy.optimize import minimize_scalar
from scipy.signal import lfilter

from silodp.privacy.accounting.losses import LossPmf, pair_losses
from silodp.privacy.message_counts import Occurrences

_OUTSIDE = 1e-10  # tilted mass allowed beyond the window, charged to δ
_LOST = 1e-4  # relative error of δ that rounding may cost all releases together
_LARGEST = 1 << 22  # points of a transform; more than that are not worth their memory

Numbers = TypeVar("Numbers", float, np.ndarray)


@dataclass(frozen=True)
class Composition:
    """Independent releases, each kind `count` times, all on lattices of one step."""

    parts: Sequence[tuple[LossPmf, int]]

    def __post_init__(self) -> None:
        if len({part.step for part, _ in self.parts}) != 1:
            raise ValueError("the releases of a composition need losses on lattices of one step")

    @property
    def infinite(self) -> float:
        return -math.expm1(sum(count * math.log1p(-min(part.infinite, 1 - 1e-16)) for part, count in self.parts))

    def log_moment(self, order: float) -> float:
        """ln E e^(order·loss) over the finite losses."""
        return sum(count * part.log_moment(order) for part, count in self.parts)


def chernoff_order(log_moment: Callable[[float], float], delta: float, accuracy: float = 1e-3) -> tuple[float, float]:
    """(λ, ε): ε = min_λ [ln E e^λℓ − ln δ + λ ln λ − (1+λ) ln(1+λ)]/λ, an upper bound on ε at δ.

    From (1 − e^(ε−ℓ))₊ ≤ e^λ(ℓ−ε)·λ^λ/(1+λ)^(1+λ), as in the conversion from Rényi DP. `accuracy` is that of ln λ.
    """

    def bound(log_order: float) -> float:
        order = math.exp(log_order)
        return float(epsilon_of_moments(log_moment(order), order, delta))

    grid = np.linspace(-25, 25, 51)
    start = grid[int(np.argmin([bound(point) for point in grid]))]
    best = minimize_scalar(bound, bounds=(start - 1, start + 1), method="bounded", options={"xatol": accuracy})
    return math.exp(best.x), float(best.fun)


def epsilon_of_moments(log_moments: Numbers, orders: Numbers, delta: float) -> Numbers:
    """Upper ε at δ from ln E_P e^(λ·loss), at each order λ > 0: the conversion from Rényi DP, of order λ + 1."""
    return (log_moments - math.log(delta) + slack(orders)) / orders


def epsilon_at(composition: Composition, delta: float, *, upper: bool) -> float:
    """ε ≥ 0 at which the composed losses have hockey-stick divergence δ; all numerical error makes it err up or down.

    Infinite only if an upper composition has an infinite loss with probability δ or more. ArithmeticError where
    rounding has lost so much of an upper composition that a bound at or below 0 would prove nothing.
    """
    if upper:
        delta -= composition.infinite
        lost = sum(count * (1 - part.infinite - math.fsum(part.masses)) for part, count in composition.parts)
        if lost > _LOST:
            raise ArithmeticError(f"ε at delta = {delta:g}: the releases' rounding adds up to {lost:.1g} of their mass")
    if delta <= 0:
        return math.inf
    order, crude = chernoff_order(composition.log_moment, delta)
    law = tilted_law(composition, order) if crude > 0 or not upper else None
    if law is None:
        return max(crude, 0.0) if upper else 0.0
    log_divergence = law.log_divergence(upper)
    below = np.flatnonzero(log_divergence <= math.log(delta))
    above = np.flatnonzero(log_divergence > math.log(delta))
    if upper:
        if len(below) == 0 or below[0] == 0:
            return max(min(crude, float(law.losses[0])) if len(below) else crude, 0.0)
        k = int(below[0])
    else:  # far below ε the errors drown the lower estimate, so the last place counts
        if len(above) == 0 or above[-1] == len(law.losses) - 1:
            return 0.0 if len(above) == 0 else max(float(law.losses[-1]), 0.0)
        k = int(above[-1]) + 1
    # Between two lattice losses the divergence is linear in e^ε.
    excess, lack = np.expm1(np.minimum(log_divergence[k - 1 : k + 1] - math.log(delta), 700.0))
    gap, share = float(law.losses[k] - law.losses[k - 1]), float(excess / (excess - lack))
    if gap > 700:  # whose exponential overflows
        epsilon = law.losses[k - 1] + (np.logaddexp(0.0, math.log(share) + gap) if share > 0 else 0.0)
    else:
        epsilon = law.losses[k - 1] + math.log1p(share * math.expm1(gap))
    return max(min(float(epsilon), crude) if upper else float(epsilon), 0.0)


@dataclass(frozen=True)
class TiltedLaw:
    """Law of the total loss, tilted by e^λℓ, over a window of lattice losses.

    `masses` (N,) are tilted, `order` is λ, `log_scale` ln E e^λℓ; `outside` is the tilted mass that may lie beyond the
    window or be folded into it, `rounding` a bound on the rounding error of each mass.
    """

    losses: np.ndarray
    masses: np.ndarray
    order: float
    log_scale: float
    outside: float
    rounding: float

    def discounted(self, rate: float) -> np.ndarray:
        """(N,) Σ_{i≥k} mass_i e^(−rate(ℓ_i − ℓ_k)) for every k, with negative masses, mere rounding, as they are."""
        return lfilter([1.0], [1.0, -math.exp(-rate * (self.losses[1] - self.losses[0]))], self.masses[::-1])[::-1]

    def log_divergence(self, upper: bool) -> np.ndarray:
        """(N,) ln δ(ε) at ε = losses, erring upwards or downwards: δ(ε) = Σ_{ℓ>ε} (1 − e^(ε−ℓ))·e^(κ−λℓ)·mass(ℓ)."""
        step = self.losses[1] - self.losses[0]
        mass = self.discounted(self.order) - self.discounted(self.order + 1)
        # What lies outside counts as if at the worst loss; rounding as if it hit every mass.
        error = self.outside * math.exp(slack(self.order))
        error += self.rounding * (1 / -math.expm1(-self.order * step) - 1 / -math.expm1(-(self.order + 1) * step))
        total = np.maximum(mass, 0.0) + error if upper else mass - error
        with np.errstate(divide="ignore"):
            return self.log_scale - self.order * self.losses + np.log(np.maximum(total, 0.0))


def slack(orders: Numbers) -> Numbers:
    """ln max_y e^(−λy)(1 − e^−y) = λ ln λ − (1+λ) ln(1+λ)."""
    log, log1p = (math.log, math.log1p) if isinstance(orders, float) else (np.log, np.log1p)
    return orders * log(orders) - (1 + orders) * log1p(orders)


def tilted_law(composition: Composition, order: float) -> TiltedLaw | None:
    """The total loss's law tilted by e^(order·ℓ), over a window with all but negligible mass; None where it is too
    large.
    """
    step = composition.parts[0][0].step
    log_scale = composition.log_moment(order)
    bottom, top = _window(composition, order, log_scale)
    if not top - bottom < _LARGEST * step:
        return None
    offset = sum(count * part.offset for part, count in composition.parts)
    first = math.floor((bottom - offset) / step)
    size = fft.next_fast_len(math.ceil((top - bottom) / step) + 2, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    sensitivity = np.zeros(size // 2 + 1)  # how much an error in the single spectra matters in the product
    for part, count in composition.parts:
        tilted = part.tilted(order)
        where = (part.first + np.arange(len(tilted))) % size
        single = fft.rfft(np.bincount(where, weights=tilted, minlength=size))
        power = single ** (count - 1)
        sensitivity = sensitivity * np.abs(power * single) + count * np.abs(spectrum * power)
        spectrum = spectrum * power * single
    masses = np.roll(fft.irfft(spectrum, size), -(first % size))
    unit = 4 * np.finfo(float).eps * math.log2(size)
    rounding = unit * (2 * float(np.mean(sensitivity)) + float(np.linalg.norm(masses)))
    losses = offset + (first + np.arange(size)) * step
    return TiltedLaw(losses, masses, order, log_scale, 2 * _OUTSIDE, rounding)


def _window(composition: Composition, order: float, log_scale: float) -> tuple[float, float]:
    """Losses between which all but 2·_OUTSIDE of the tilted mass lies, by Chernoff bounds on either side."""
    # At least a thousandth of a lattice step.
    variances = ((max(part.tilted_variance(order), 1e-6 * part.step**2), count) for part, count in composition.parts)
    deviation = math.sqrt(sum(count * variance for variance, count in variances))
    bottom, top = -math.inf, math.inf
    for scale in np.geomspace(1, 20, 10):
        tilt = scale / deviation
        rise = composition.log_moment(order + tilt) - log_scale - math.log(_OUTSIDE)
        top = min(top, rise / tilt)
        fall = composition.log_moment(order - tilt) - log_scale - math.log(_OUTSIDE)
        bottom = max(bottom, -fall / tilt)
    return bottom, top


@np.errstate(over="ignore", invalid="ignore")  # what overflows is not reached
def adaptive_lower_epsilon(
    occurrences: Occurrences, count: int, delta: float, *, order: float, step: float, top: float, upper: float
) -> float:
    """ε that `count` releases reach at δ when the other records' direction is chosen best after every release.

    Two silos differ in one record, whose gradient always points one way in the first and the other way in the second.
    The other records share one gradient: against the first silo's record ("plain" pair) or with it (mirrored pair), as
    the transcript so far suggests. Losses are rounded so that the result errs downwards.
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
