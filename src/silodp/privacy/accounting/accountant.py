"""Both ends of ε at δ of counted messages, from below and from above (proofs: docs/accounting.md)."""

import math
from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import binom

from silodp.privacy.accounting.certificate import certified_epsilon
from silodp.privacy.accounting.losses import (
    Composition,
    LossPmf,
    chernoff_order,
    epsilon_at,
    pair_losses,
    replace_one_losses,
)
from silodp.privacy.accounting.mechanisms import check_delta, gaussian_epsilon
from silodp.privacy.message_counts import Counts, Occurrences, draws, gaussian_mu_of, laws_of, replace_one_profile

_ACCURACY = 1e-4  # relative error of ε that the lattice may cost
_NEGLIGIBLE = 1e-6  # share of δ spent on cut tails, each
_POINTS = 1 << 20  # of a transform, at most, whatever accuracy that leaves
_SMALL, _ROUNDING = 1e-10, 4e-16  # a profile below which its rounding, at most this, is looked at
_SMALL_EPSILON = 0.05  # below this the error is relative to it
_DOTS = 1 << 20  # of a profile times its occurrences, at most
_ADAPTIVE_WORK = 1 << 27  # lattice points times releases of the adaptive lower bound, at most,
_ADAPTIVE_RUN = 1 << 24  # and with its whole range, as ln 1/p_0 can be many steps where ε is tiny
_ADAPTIVE_RELEASES = 200  # the adaptive lower bound takes time for each release,
_ADAPTIVE_RATIO = 1.02  # and is worth it only where the two ends are apart
_NAMES = {"all": "all records", "with": "drawn with replacement", "without": "drawn without replacement"}
_TILTS = np.geomspace(1e-16, 1e3, 600)
_LEVELS = -np.log1p(-np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9]))
_MOST_DRAWS, _EPSILON = 40, 2.0**-52
_EXACT_COUNTS = 1 << 50  # of releases: above it binomial tails lose their digits


class DeliveredEpsilon(NamedTuple):
    """ε at δ: `lower` is reached by some neighbours, `upper` holds for all; `estimate` lies half-way between."""

    lower: float
    estimate: float
    upper: float
    method: str

    @classmethod
    def between(cls, lower: float, upper: float, method: str) -> "DeliveredEpsilon":
        return cls(lower, (lower + upper) / 2, upper, method)


NOT_PRIVATE = DeliveredEpsilon(math.inf, math.inf, math.inf, "not private")


def ends_of(counts: Counts | None, delta: float) -> DeliveredEpsilon:
    """Both ends of counted messages at δ; infinite without noise."""
    check_delta(delta)
    if counts is None:
        return NOT_PRIVATE
    if not counts:
        return DeliveredEpsilon(0.0, 0.0, 0.0, "nothing is released")
    kinds = sorted({one.how for one in counts})
    if kinds == ["all"]:
        epsilon = gaussian_epsilon(delta, gaussian_mu_of(counts))
        return DeliveredEpsilon(epsilon, epsilon, epsilon, "Gaussian composition, closed form")
    names = ", ".join(_NAMES[how] for how in kinds)
    both = Bracket(laws_of(counts, delta), delta).both()
    return DeliveredEpsilon.between(*both, f"privacy loss distribution, replace-one, {names}")


def upper_of(counts: Counts | None, delta: float, silos: int = 0) -> float:
    """The upper one of `ends_of` alone; `silos` as in `laws_of`."""
    check_delta(delta)
    if counts is None:
        return math.inf
    if {one.how for one in counts} <= {"all"}:
        return gaussian_epsilon(delta, gaussian_mu_of(counts))
    return Bracket(laws_of(counts, delta, silos), delta).upper()


class Bracket:
    """Lower and upper ε at δ of composed messages on lattices of one step; `kinds` are (law, how many messages)."""

    def __init__(self, kinds: list[tuple[Occurrences, int]], delta: float) -> None:
        self.kinds, self.delta = kinds, delta
        self.total = sum(count for _, count in self.kinds)
        # By the union bound over releases. At a δ that this reaches ε is 0, and no lattice would find that.
        first = [(count, float(replace_one_profile(law, np.zeros(1))[0])) for law, count in self.kinds]
        self.nothing = sum(count * (one if one > _SMALL else one + _ROUNDING) for count, one in first) <= delta
        if not self.nothing:
            self.lattice()

    def lattice(self) -> "Bracket":
        """Choose the step, and how far the losses of each kind reach; returns itself."""
        self.order, self.step = _resolution(self.kinds, self.delta)
        self.tops = [_top(occurrences, 2 * _NEGLIGIBLE * self.delta / self.total) for occurrences, _ in self.kinds]
        # A coarser lattice stays on its side, and loses some of its accuracy.
        widths = [top * len(one.weights) for top, (one, _) in zip(self.tops, self.kinds, strict=True)]
        self.step = max(self.step, max(widths) / _DOTS)
        return self

    def both(self) -> tuple[float, float]:
        upper = self.upper()
        if upper == 0:
            return 0.0, upper
        plain = epsilon_at(Composition(self._pairs()), self.delta, upper=False)
        lower = max(plain, drawn_epsilon(self.kinds, self.delta))
        (first, count), top = self.kinds[0], self.tops[0]
        single = len(self.kinds) == 1 and first.weights[0] > 1e-3
        quick = count <= _ADAPTIVE_RELEASES and count * count * top / self.step <= _ADAPTIVE_WORK
        # Its lattice contains ln p_0.
        quick = quick and top <= _ADAPTIVE_RUN * -first.log_weights[0]
        if single and quick and upper > _ADAPTIVE_RATIO * lower:
            points = 3 * (upper + 15 / self.order - 5 * math.log(first.weights[0])) / self.step
            if points * count <= _ADAPTIVE_RUN:
                reached = adaptive_lower_epsilon(
                    first, count, self.delta, order=self.order, step=self.step / 3, top=top, upper=upper
                )
                lower = max(lower, reached)
        return lower, upper

    def upper(self) -> float:
        """Upper ε: the dominating pairs' or the certificate's, whichever is smaller."""
        if self.nothing:
            return 0.0
        upper = epsilon_at(Composition(self.parts()), self.delta, upper=True)
        if upper > 0 and all(len(occurrences.weights) == 2 for occurrences, _ in self.kinds):
            upper = min(upper, certified_epsilon(self.kinds, self.delta, self.step))
        return upper

    def parts(self) -> list[tuple[LossPmf, int]]:
        """Losses of a pair that dominates every neighbours', of each kind, and how many releases."""
        return [
            (replace_one_losses(occurrences, self.step, top), count)
            for (occurrences, count), top in zip(self.kinds, self.tops, strict=True)
        ]

    def _pairs(self) -> list[tuple[LossPmf, int]]:
        """Losses of the explicit pairs, from below."""
        return [
            (pair_losses(occurrences, self.step, top, upper=False), count)
            for (occurrences, count), top in zip(self.kinds, self.tops, strict=True)
        ]


def _top(occurrences: Occurrences, level: float) -> float:
    """A loss beyond which one release's profile is at most `level`."""
    reach = occurrences.times[-1] * occurrences.shift
    low, high = 0.0, reach * reach / 2 + reach * math.sqrt(-2 * math.log(level))
    for _ in range(2):
        grid = np.linspace(low, high, 40)[1:]
        fits = np.flatnonzero(replace_one_profile(occurrences, grid) <= level)
        if len(fits) == 0:
            return high
        high = float(grid[fits[0]])
        low = float(grid[fits[0] - 1]) if fits[0] else low
    return high


def _resolution(kinds: list[tuple[Occurrences, int]], delta: float) -> tuple[float, float]:
    """(λ, step): the order at which losses matter, and a lattice step that costs about `_ACCURACY` of ε.

    From single points of the explicit pair's loss; nothing here has to be sound.
    """
    points = [(*_loss_points(occurrences), count) for occurrences, count in kinds]

    def moment(order: float) -> float:
        return sum(count * np.logaddexp.reduce(log_p + order * losses) for losses, log_p, count in points)

    order, epsilon = chernoff_order(moment, delta, accuracy=0.01)
    tilted = [
        (np.exp(log_p + order * losses - np.logaddexp.reduce(log_p + order * losses)), losses, count)
        for losses, log_p, count in points
    ]
    variance = sum(count * float(weight @ (losses - weight @ losses) ** 2) for weight, losses, count in tilted)

    def cost(step: float) -> float:
        """About how much ε grows: splitting a loss over lattice neighbours adds up to step²/6 of variance."""
        total = 0.0
        for weight, losses, count in tilted:
            total += count * float(weight @ np.minimum(np.abs(losses) * step, step * step / 6))
        return (order + 1) / 2 * total

    step = math.sqrt(variance) / 10
    while cost(step) > _ACCURACY * max(epsilon, _SMALL_EPSILON):
        step *= 0.8
    return order, max(step, 40 * math.sqrt(variance) / _POINTS)


def _loss_points(occurrences: Occurrences) -> tuple[np.ndarray, np.ndarray]:
    """(losses, ln masses) of P = Σ p_j N(js, 1) against N(0, 1) at evenly spaced outcomes."""
    j = np.arange(len(occurrences.weights))
    means = j * occurrences.shift
    x = np.linspace(-8, means[-1] + 8, 1000)[:, None]
    losses = np.logaddexp.reduce(occurrences.log_weights + means * x - means**2 / 2, axis=1)
    log_p = np.logaddexp.reduce(occurrences.log_weights - (x - means) ** 2 / 2, axis=1)
    return losses, log_p - np.logaddexp.reduce(log_p)


def end_of_round_epsilon(steps: int, rounds: int, n: int, noise_multiplier: float, delta: float) -> DeliveredEpsilon:
    """Bracket for local SGD when only the model after each round's K `steps` is seen; σ/(2L) is one step's multiplier.

    Upper: as if all KR steps were seen. Lower: a linear loss shows each round the sum of its K noisy gradients, one
    message of K records drawn with replacement, of noise multiplier √K times a step's.
    """
    upper = upper_of(summed_steps(1, steps * rounds, n, noise_multiplier), delta)
    lower = ends_of(summed_steps(steps, rounds, n, noise_multiplier), delta).lower
    return DeliveredEpsilon.between(lower, upper, "end of round: linear losses below, all steps above")


def summed_steps(steps: int, rounds: int, n: int, noise_multiplier: float) -> Counts:
    """What local SGD shows of a linear loss: the sum of each round's K noisy gradients."""
    return {draws("with", n, steps, noise_multiplier * math.sqrt(steps)): rounds}


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


def drawn_epsilon(kinds: list[tuple[Occurrences, int]], delta: float) -> float:
    """Lower ε at δ of the plain pair: from the sum of all releases, or from how many of them are large.

    With probability π the record is drawn k times or more, and then the sum is a Gaussian release. It grows as δ falls.
    """
    best = max(_of_sum(kinds, delta), 0.0)
    for law, count in kinds:
        if law.weights[0] > 0 and count <= _EXACT_COUNTS:
            best = max(best, _of_large(law, count, delta))
    return best


def _of_sum(kinds: list[tuple[Occurrences, int]], delta: float) -> float:
    squares, sampled = 0.0, []
    for law, count in kinds:
        if law.weights[0] == 0 and len(law.weights) == 2:
            squares += count * law.shift**2
        else:
            sampled.append((law, count))
    # ln P(J_1 + … + J_R < k) ≤ R ln E e^(−tJ) + tk for every t.
    fewest = []
    for law, count in sampled:
        times = np.arange(len(law.weights))
        # Of a record that is always drawn, no smaller than what floats tell from 0.
        gain = -count * np.log1p(np.maximum(np.expm1(-_TILTS[:, None] * times) @ law.weights, -1 + _EPSILON))
        least = np.max((gain[:, None] - _LEVELS) / _TILTS[:, None], axis=0)
        chances = -np.expm1(-_LEVELS)
        none = -np.expm1(count * np.log1p(-min(np.sum(law.weights[1:]), 1 - _EPSILON)))
        fewest.append((np.append(least, 1.0), np.append(chances, none), law.shift, count))
    best = gaussian_epsilon(delta, math.sqrt(squares)) if squares else 0.0
    for level in range(len(_LEVELS) + 1 if sampled else 0):
        chance, square = 1.0, squares
        for least, chances, shift, count in fewest:
            if least[level] > 0:
                chance *= float(chances[level])
                square += (shift * float(least[level])) ** 2 / count
        if delta < chance and square > 0:
            best = max(best, math.log(chance) + gaussian_epsilon(delta / chance, math.sqrt(square)))
    return best


def _of_large(law: Occurrences, count: int, delta: float) -> float:
    """From the event that c releases or more lie above t standard deviations: e^ε ≥ (P(event) − δ)/Q(event)."""
    reach = float(law.shift) * np.arange(1, min(len(law.weights), _MOST_DRAWS))
    near = np.concatenate([reach + gap for gap in (-6.0, -3.0, -2.0, -1.0, 0.0)])
    t = np.unique(np.concatenate([np.linspace(0.0, 40.0, 161), near[near > 0]]))
    means = np.arange(len(law.weights))[:, None] * law.shift
    log_p = logsumexp(log_ndtr(means - t), b=law.weights[:, None], axis=0)
    c = np.arange(1, min(count, _MOST_DRAWS) + 1)[:, None]
    hit = binom.sf(c - 1, count, np.exp(log_p)) * (1 - 1e-9)
    log_ways = gammaln(count + 1) - gammaln(c + 1) - gammaln(count - c + 1) if count < 1e6 else c * math.log(count)
    log_miss = log_ways + c * log_ndtr(-t)
    with np.errstate(divide="ignore"):
        exact = np.log(binom.sf(c - 1, count, np.exp(log_ndtr(-t))))
        log_miss = np.where(exact > -600, np.minimum(exact, log_miss), np.minimum(log_miss, 0.0))
        return float(np.max(np.log(np.maximum(hit - delta, 0.0)) - log_miss))
