"""Privacy losses on a lattice, of one release and composed: from above by connecting dots, from below by merging.

A `LossPmf` stands for a pair of distributions by the law of its privacy loss ln(dP/dQ) under P. Losses compose exactly
to a controlled error at any δ: by Fourier transforms of laws tilted by e^λℓ, λ such that the losses that decide about ε
at δ are the likely ones. So rounding errors are small relative to δ, however small it is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy import fft
from scipy.optimize import minimize_scalar
from scipy.signal import lfilter
from scipy.special import log_ndtr

from silodp.privacy.message_counts import Occurrences, replace_one_profile, where_sum_is

_OUTSIDE = 1e-10  # tilted mass allowed beyond the window, charged to δ
_LOST = 1e-4  # relative error of δ that rounding may cost all releases together
_LARGEST = 1 << 22  # points of a transform; more than that are not worth their memory

Numbers = TypeVar("Numbers", float, np.ndarray)


@dataclass(frozen=True)
class LossPmf:
    """`masses` (N,) at the losses offset + (first + i)·step, and the mass at an infinite loss.

    They may miss 1 from below (lower) or by rounding (upper).
    """

    step: float
    first: int
    masses: np.ndarray
    infinite: float = 0.0
    offset: float = 0.0

    @cached_property
    def losses(self) -> np.ndarray:
        return self.offset + (self.first + np.arange(len(self.masses))) * self.step

    @cached_property
    def log_masses(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.masses)

    def log_moment(self, order: float) -> float:
        """ln E e^(order·loss) over the finite losses."""
        exponent = self.log_masses + order * self.losses
        top = exponent.max()
        return float(top + np.log(np.sum(np.exp(exponent - top))))

    def tilted(self, order: float) -> np.ndarray:
        """(N,) the masses weighted by e^(order·loss), summing to 1."""
        return np.exp(self.log_masses + order * self.losses - self.log_moment(order))

    def tilted_variance(self, order: float) -> float:
        """Variance of the loss under the tilted law."""
        weight = self.tilted(order)
        return float(weight @ (self.losses - weight @ self.losses) ** 2)


def replace_one_losses(occurrences: Occurrences, step: float, top: float) -> LossPmf:
    """Pessimistic losses of one release under replace-one: a pair that dominates both orders of any neighbours.

    The profile at the multiples of `step` in [−top, top] is interpolated linearly in e^ε ("Connect the Dots",
    Doroshenko et al. 2022, Algorithm 1); dropping negative masses only raises it. A loss of −ℓ weighs e^−ℓ times a loss
    of ℓ.
    """
    count = int(np.ceil(top / step)) + 1
    return connected_losses(np.minimum.accumulate(replace_one_profile(occurrences, np.arange(count + 1) * step)), step)


def connected_losses(profile: np.ndarray, step: float) -> LossPmf:
    """Losses of a pair whose profile is at least the given one, not increasing, at 0, step, 2·step, … (see above)."""
    count = len(profile) - 1
    gaps = np.diff(profile)
    # Second differences in e^ε, in units that do not overflow.
    shrink = math.exp(-step)
    inner = (gaps[1:] * shrink - gaps[:-1]) / (-math.expm1(-step))
    positive = np.maximum(np.append(inner, -gaps[-1] / (-math.expm1(-step))), 0.0)
    losses = np.arange(1, count + 1) * step
    at_zero = (2 * shrink * profile[1] - (1 + shrink) * profile[0]) / (-math.expm1(-step)) + 1
    masses = np.concatenate([(positive * np.exp(-losses))[::-1], [max(at_zero, 0.0)], positive])
    return LossPmf(step, -count, masses, float(profile[-1]))


def pair_losses(
    occurrences: Occurrences, step: float, top: float, *, upper: bool, reverse: bool = False, aligned: bool = False
) -> LossPmf:
    """Losses of the pair P = Σ_j p_j N(js, 1) against Q = N(0, 1), or of Q against P (`reverse`).

    `upper`: pieces of the line go to their two ends, keeping their mass under P and Q (connect the dots), which
    dominates. Otherwise each piece is merged into one outcome and these are mixed into outcomes on the lattice:
    post-processing, hence dominated. Either errs by O(step²) a release. `aligned`: the lower lattice contains ln p_0.
    """
    floor = float(occurrences.log_weights[0])
    floor = floor if floor > -top else -math.inf
    if upper:
        cuts = np.arange(math.floor(max(floor, -top) / step), math.ceil(top / step) + 1) * step
    else:
        cuts, anchor = _lower_cuts(occurrences, step, top, floor, aligned)
    x = np.concatenate([[-np.inf], _outcome_at(occurrences, cuts), [np.inf]])
    log_p, log_q = _log_masses(occurrences, x)
    if reverse:
        log_p = _with_tail(occurrences, x, log_p)
        log_p, log_q, cuts = log_q[::-1], log_p[::-1], -cuts[::-1]
    if upper:
        return _connect(log_p, log_q, cuts, step, round(cuts[0] / step))
    return _mix(log_p, log_q, step, -anchor if reverse else anchor)


def _lower_cuts(
    occurrences: Occurrences, step: float, top: float, floor: float, aligned: bool
) -> tuple[np.ndarray, float]:
    """(cuts, one lattice loss): half-way between lattice losses, but the lowest piece, which may hold most of the mass
    just above the infimum ln p_0, ends where its loss is on the lattice.
    """
    if not math.isfinite(floor):
        return (np.arange(math.floor(-top / step), math.ceil(top / step) + 1) + 0.5) * step, 0.0
    reach = np.arange(1, 301) / 50
    x = np.concatenate([[-np.inf], _outcome_at(occurrences, floor + reach * step)])
    log_p, log_q = (np.logaddexp.accumulate(log_mass) for log_mass in _log_masses(occurrences, x))
    with np.errstate(invalid="ignore"):
        merged = np.nan_to_num((log_p - log_q - floor) / step, nan=0.0)  # the piece's loss, in steps
    if aligned:
        k = int(np.argmax(merged >= 1)) if merged[99] >= 1 else 24
        anchor, centre = floor, floor + (step if merged[99] >= 1 else 0.0)
    else:
        k = int(np.argmax(reach - 0.5 >= merged))
        anchor = centre = floor + float(merged[k]) * step
    rest = centre + (np.arange(math.ceil((top - centre) / step) + 1) + 0.5) * step
    end = floor + float(reach[k]) * step
    return np.concatenate([[end], rest[rest > end + 0.25 * step]]), anchor


def _outcome_at(occurrences: Occurrences, losses: np.ndarray) -> np.ndarray:
    """Where ln(P/Q) takes the given increasing values; −∞ where these lie below its infimum ln p_0."""
    log_p, s = occurrences.log_weights, occurrences.shift
    x = np.full(len(losses), -np.inf)
    reached = np.flatnonzero(losses > log_p[0])
    goal = losses[reached]
    # ln(e^goal − p_0) is what the terms j ≥ 1 have to make.
    rest = goal + np.log(-np.expm1(log_p[0] - goal)) if occurrences.weights[0] > 0 else goal
    x[reached] = where_sum_is(log_p[1:], np.arange(1, len(log_p)) * s, rest)
    return np.maximum.accumulate(x)


def _log_masses(occurrences: Occurrences, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln of the masses under P and Q of the pieces between consecutive x, to small relative error in both tails."""
    under_p = np.full(len(x) - 1, -np.inf)
    for j, log_weight in enumerate(occurrences.log_weights):
        under_p = np.logaddexp(under_p, log_weight + _log_normal_masses(x - j * occurrences.shift))
    return under_p, _log_normal_masses(x)


def _log_normal_masses(x: np.ndarray) -> np.ndarray:
    """ln of a standard normal's masses between consecutive x."""
    near = np.where(x[:-1] > 0, -x[:-1], x[1:])  # the end of the piece on the side of the mean
    far = np.where(x[:-1] > 0, -x[1:], x[:-1])
    log_near = log_ndtr(near)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(near > far, log_near + np.log(-np.expm1(log_ndtr(far) - log_near)), -np.inf)


def _with_tail(occurrences: Occurrences, x: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """ln of the masses under P and an upper bound on what was cut from it, for comparisons against P.

    Left of the first component that was cut, none of those has more mass in a piece than the first. A piece where the
    bound outweighs the rest is given up: −∞.
    """
    if occurrences.tail == 0:
        return log_p
    mean = len(occurrences.weights) * occurrences.shift
    beyond = math.log(occurrences.tail) + np.where(x[1:] <= mean, _log_normal_masses(x - mean), 0.0)
    return np.where(beyond < log_p, np.logaddexp(log_p, beyond), -np.inf)


def _connect(log_p: np.ndarray, log_q: np.ndarray, cuts: np.ndarray, step: float, first: int) -> LossPmf:
    """Splits each inner piece over its two ends; what lies below the cuts moves up, what lies above to infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        share = -np.expm1(log_q[1:-1] - log_p[1:-1] + cuts[:-1]) / -math.expm1(-step)
    inner = np.exp(log_p[1:-1])
    up = inner * np.clip(np.nan_to_num(share, nan=1.0, neginf=0.0), 0.0, 1.0)
    masses = np.zeros(len(cuts))
    masses[1:] += up
    masses[:-1] += inner - up
    masses[0] += math.exp(log_p[0])
    return LossPmf(step, first, masses, math.exp(log_p[-1]))


def _mix(log_p: np.ndarray, log_q: np.ndarray, step: float, anchor: float) -> LossPmf:
    """Merges each piece and mixes neighbouring ones so that every outcome's loss is at least its lattice loss.

    A piece is near a lattice loss g_i, on which it has p − q·e^(g_i) to spare, or lacks it. Where it lacks, the next
    piece sends down the share that has as much to spare at g_i; where it spares, the piece below sends a share up.
    """
    some = np.isfinite(log_p) & np.isfinite(log_q)
    place = np.round((log_p[some] - log_q[some] - anchor) / step).astype(int)
    first = int(place.min()) - 1
    joint = np.full((2, int(place.max()) - first + 2), -np.inf)
    for row, log_mass in zip(joint, (log_p, log_q), strict=True):
        np.logaddexp.at(row, place - first, log_mass[some])
    lattice = anchor + (first + np.arange(joint.shape[1])) * step
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        p = np.exp(joint[0])
        rise = np.where(p > 0, joint[0] - joint[1] - lattice, 0.0)
        here = p * -np.expm1(-rise)  # to spare at the own lattice loss, negative where it lacks
        below = p * -np.expm1(-rise - step)  # to spare one lattice loss below, by the whole piece
        above = p * np.expm1(np.minimum(step - rise, 600.0))  # lacking one lattice loss above
        # Shares sent down solve down_{i+1} = (1 − down_i)·lack_i/below_{i+1}; the third iterate from 0 errs upwards.
        ratio = np.nan_to_num(np.maximum(-here[:-1], 0.0) / below[1:], nan=0.0, posinf=1e300)
        down = np.zeros(len(p))
        for _ in range(3):
            down[1:] = np.minimum((1 - down[:-1]) * ratio, 1.0)
        spare = (1 - down) * here + np.append((down * below)[1:], 0.0)
        # Shares sent up use what is spared above them, less what that piece may itself send up.
        most = np.nan_to_num(np.append(np.maximum(spare, 0.0)[1:], 0.0) / above, nan=0.0, posinf=0.0)
        left = np.maximum(spare - most * np.maximum(here, 0.0), 0.0)
        up = np.nan_to_num(np.append(left[1:], 0.0) / above, nan=0.0, posinf=0.0)
    up = np.minimum(up, (1 - down) / 2)
    # Where the next piece has too little to spare, what is left of a piece goes down a whole step.
    with np.errstate(invalid="ignore"):  # on a lattice so coarse that exponentials of a step overflow
        short = (1 - down - up) * here + np.append((down * below)[1:], 0.0) - np.append(0.0, (up * above)[:-1])
        fall = ~(short >= -1e-15 * p)  # a loss that is the lattice's but for rounding stays
    up[:-1][fall[1:]] = 0.0
    down = np.where(fall, 1.0, down)
    up = np.where(fall, 0.0, up)
    masses = p * (1 - down - up)
    masses[:-1] += (p * down)[1:]
    masses[1:] += (p * up)[:-1]
    return LossPmf(step, first, masses, 0.0, anchor)


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
