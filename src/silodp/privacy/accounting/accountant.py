"""How much privacy a transcript gives: ε at δ, from below and from above (proofs: docs/accounting.md).

Guarantee: (ε, δ)-DP under replacing one record of one silo, against an adversary who sees every release and knows all
other records (adaptive composition). Records are drawn afresh and in secret for every release; that silos are drawn
earns no credit. Noise is treated as exact real Gaussian noise. `upper` holds for every silo, data set and loss with
clipped gradients; two neighbouring silos that can be written down reach `lower`.
"""

import math
from typing import NamedTuple

import numpy as np
from dp_accounting import dp_event

from silodp.privacy.accounting.adaptive import adaptive_lower_epsilon
from silodp.privacy.accounting.certificate import certified_epsilon
from silodp.privacy.accounting.composition import Composition, chernoff_order, epsilon_at
from silodp.privacy.accounting.extremes import drawn_epsilon, moment_epsilon
from silodp.privacy.accounting.losses import LossPmf, pair_losses, replace_one_losses
from silodp.privacy.accounting.mechanisms import check_delta, gaussian_epsilon
from silodp.privacy.accounting.profiles import (
    Occurrences,
    at_most_once,
    gaussian_occurrences,
    replace_one_profile,
    with_replacement,
)
from silodp.privacy.plan import PrivacyPlan

_ACCURACY = 1e-4  # relative error of ε that the lattice may cost
_NEGLIGIBLE = 1e-6  # share of δ spent on cut tails, each
_POINTS = 1 << 20  # of a transform, at most, whatever accuracy that leaves
_SMALL, _ROUNDING = 1e-10, 4e-16  # a profile below which its rounding, at most this, is looked at
_SMALL_EPSILON = 0.05  # below this the error is relative to it
_DOTS = 1 << 20  # of a profile times its occurrences, at most
_ADAPTIVE_WORK = 1 << 27  # lattice points times releases of the adaptive lower bound, at most,
_ADAPTIVE_RUN = 1 << 24  # and with its whole range, as ln 1/p_0 can be many steps where ε is tiny
_MULTIPLIERS = 1e-6, 1e12  # noise multipliers that sampled releases are accounted for,
_PLAIN_MULTIPLIERS = 1e-100, 1e100  # and Gaussian ones on all records
_REACH = 1e4  # standard deviations beyond which no lattice is looked at, nor above this many releases,
_RESOLVED = 1 << 30  # as each release's rounding (1e-16) counts once for each of them
_MANY = 1_000_000  # releases above which moments may be closer than a lattice
_APART = 1.1  # the upper end over the lower one, above which counted draws may be closer than a lattice
_OVERDRAWN = 64  # K/n with replacement, at most
_ADAPTIVE_RELEASES = 200  # the adaptive lower bound takes time for each release,
_ADAPTIVE_RATIO = 1.02  # and is worth it only where the two ends are apart


class DeliveredEpsilon(NamedTuple):
    """ε at δ: `lower` is reached by some neighbours, `upper` holds for all; `estimate` lies half-way between."""

    lower: float
    estimate: float
    upper: float
    method: str


class _Release(NamedTuple):
    """One kind of release: how its records are drawn ("all", "with", "without", "poisson") and its noise."""

    sampling: str
    records: int
    records_drawn: float
    noise_multiplier: float


_NAMES = {
    "with": "drawn with replacement",
    "without": "drawn without replacement",
    "poisson": "Poisson-sampled",
    "all": "all records",
}


def delivered_epsilon(event: dp_event.DpEvent | PrivacyPlan, delta: float) -> DeliveredEpsilon:
    """ε that the composed releases of an event or plan give at δ: (lower, estimate, upper, method); ∞ without noise.

    Supported: Gaussian, Gaussian on records drawn with or without replacement, Poisson-sampled Gaussian, their
    compositions, no-op and non-private. A noise multiplier is σ over the replace-one sensitivity of one occurrence
    (2L/K for a clipped mean), over the add/remove sensitivity for Poisson sampling. ValueError for anything else, and
    for values out of range.
    """
    counts = _releases(event, delta)
    if counts is None:
        return DeliveredEpsilon(math.inf, math.inf, math.inf, "not private")
    if not counts:
        return DeliveredEpsilon(0.0, 0.0, 0.0, "nothing is released")
    samplings = {release.sampling for release in counts}
    if samplings == {"all"}:
        epsilon = gaussian_epsilon(delta, _gaussian_mu(counts))
        return DeliveredEpsilon(epsilon, epsilon, epsilon, "Gaussian composition, closed form")
    lower, upper = _bracket(counts, delta).both()
    if isinstance(event, PrivacyPlan) and event.event_below != event.event:
        lower = min(lower, delivered_epsilon(event.event_below, delta).lower)
    adjacency = "add/remove" if "poisson" in samplings else "replace-one"
    method = f"privacy loss distribution, {adjacency}, {', '.join(_NAMES[name] for name in sorted(samplings))}"
    return DeliveredEpsilon(lower, (lower + upper) / 2, upper, method)


def end_of_round_epsilon(steps: int, rounds: int, n: int, noise_multiplier: float, delta: float) -> DeliveredEpsilon:
    """Bracket for local SGD when only the model after each round's K `steps` is seen; σ/(2L) is one step's multiplier.

    Upper: as if all KR steps were seen. Lower: a linear loss shows each round the sum of its K noisy gradients, one
    message of K records drawn with replacement, of noise multiplier √K times a step's.
    """
    upper = upper_epsilon(summed_steps(1, steps * rounds, n, noise_multiplier), delta)
    lower = delivered_epsilon(summed_steps(steps, rounds, n, noise_multiplier), delta).lower
    return DeliveredEpsilon(lower, (lower + upper) / 2, upper, "end of round: linear losses below, all steps above")


def summed_steps(steps: int, rounds: int, n: int, noise_multiplier: float) -> dp_event.DpEvent:
    """What local SGD shows of a linear loss: the sum of each round's K noisy gradients."""
    summed = dp_event.GaussianDpEvent(noise_multiplier * math.sqrt(steps))
    return dp_event.SelfComposedDpEvent(dp_event.SampledWithReplacementDpEvent(n, steps, summed), rounds)


def upper_epsilon(event: dp_event.DpEvent | PrivacyPlan, delta: float) -> float:
    """The upper end of `delivered_epsilon` alone, which is what a guarantee needs and takes less time."""
    counts = _releases(event, delta)
    if counts is None:
        return math.inf
    if {release.sampling for release in counts} <= {"all"}:
        return gaussian_epsilon(delta, _gaussian_mu(counts))
    return _bracket(counts, delta).upper()


def _releases(event: dp_event.DpEvent | PrivacyPlan, delta: float) -> dict[_Release, int] | None:
    """How many releases of each kind an event holds; None if one of them is not private."""
    check_delta(delta)
    counts: dict[_Release, int] = {}
    if not _collect(event if isinstance(event, dp_event.DpEvent) else event.event, 1, counts):
        return None
    samplings = {release.sampling for release in counts}
    if "poisson" in samplings and len(samplings - {"all"}) > 1:
        raise ValueError("Poisson sampling is accounted for add/remove neighbours and cannot join replace-one sampling")
    return counts


def _collect(event: dp_event.DpEvent, count: int, counts: dict[_Release, int]) -> bool:
    """Adds the event's releases to `counts`; False if one of them is not private."""
    if isinstance(event, dp_event.NoOpDpEvent) or count == 0:
        return True
    if isinstance(event, dp_event.NonPrivateDpEvent):
        return False
    if isinstance(event, dp_event.SelfComposedDpEvent):
        if event.count < 0 or event.count != int(event.count):
            raise ValueError(f"composition count = {event.count}: must be a whole number, at least 0")
        return _collect(event.event, count * int(event.count), counts)
    if isinstance(event, dp_event.ComposedDpEvent):
        private = [_collect(part, count, counts) for part in event.events]  # every part is to be checked
        return all(private)
    release = _release(event)
    if release.noise_multiplier == 0 and release.records_drawn > 0:
        return False
    if math.isfinite(release.noise_multiplier) and release.records_drawn > 0:
        counts[release] = counts.get(release, 0) + count
    return True


def _release(event: dp_event.DpEvent) -> _Release:
    inner = getattr(event, "event", event)
    if not isinstance(inner, dp_event.GaussianDpEvent):
        raise ValueError(f"event {type(event).__name__}({type(inner).__name__}): only Gaussian releases are supported")
    z = float(inner.noise_multiplier)
    if not z >= 0:
        raise ValueError(f"noise multiplier = {z}: must not be negative")
    if isinstance(event, dp_event.GaussianDpEvent):
        _check_multiplier(z, _PLAIN_MULTIPLIERS)
        return _Release("all", 1, 1, z)
    if isinstance(event, dp_event.PoissonSampledDpEvent):
        if not 0 <= event.sampling_probability <= 1:
            raise ValueError(f"sampling probability = {event.sampling_probability}: must lie in [0, 1]")
        _check_multiplier(z)
        return _Release("poisson", 1, float(event.sampling_probability), z)
    if isinstance(event, dp_event.SampledWithReplacementDpEvent | dp_event.SampledWithoutReplacementDpEvent):
        n, drawn = event.source_dataset_size, event.sample_size
        replaced = isinstance(event, dp_event.SampledWithReplacementDpEvent)
        if n < 1 or drawn < 0 or (drawn > n and not replaced):
            raise ValueError(f"sample of {drawn} out of {n} records: needs 0 ≤ K ≤ n and n ≥ 1 (K > n only replaced)")
        if drawn > _OVERDRAWN * n:
            raise ValueError(f"sample of {drawn} out of {n} records: must be at most {_OVERDRAWN} n with replacement")
        _check_multiplier(z)
        if n == 1 and drawn > 0:
            return _Release("all", 1, 1, z / drawn)
        if drawn == n and not replaced:
            return _Release("all", 1, 1, z)
        return _Release("with" if replaced and drawn > 1 else "without", n, drawn, z)
    raise ValueError(f"event {type(event).__name__}: not supported")


def _check_multiplier(z: float, limits: tuple[float, float] = _MULTIPLIERS) -> None:
    least, most = limits
    if 0 < z < least or most < z < math.inf:
        raise ValueError(f"noise multiplier = {z}: must be 0, infinite or in [{least:g}, {most:g}]")


def _gaussian_mu(counts: dict[_Release, int]) -> float:
    """μ of all releases on all records together: √Σ 1/z²."""
    plain = (count / release.noise_multiplier**2 for release, count in counts.items() if release.sampling == "all")
    return math.sqrt(sum(plain))


def _bracket(counts: dict[_Release, int], delta: float) -> "Bracket":
    """The bracket of releases as laws of occurrences; plain Gaussians are pooled, which is exact."""
    total = sum(counts.values())
    mu = _gaussian_mu(counts)
    kinds = [(gaussian_occurrences(mu), 1)] if mu > 0 else []
    for (sampling, n, drawn, z), count in counts.items():
        if sampling == "with":
            kinds.append((with_replacement(n, int(drawn), z, _NEGLIGIBLE * delta / total), count))
        elif sampling in ("without", "poisson"):
            kinds.append((at_most_once(drawn / n, z), count))
    return Bracket(kinds, delta, poisson=any(release.sampling == "poisson" for release in counts))


class Bracket:
    """Lower and upper ε at δ of composed releases, on lattices of one step.

    `kinds` are (law of occurrences, how many releases); `poisson` says that neighbours add or remove a record.
    """

    def __init__(self, kinds: list[tuple[Occurrences, int]], delta: float, poisson: bool = False) -> None:
        self.kinds, self.delta, self.poisson = kinds, delta, poisson
        self.total = sum(count for _, count in self.kinds)
        # By the union bound over releases. At a δ that this reaches ε is 0, and no lattice would find that.
        first = [(count, float(replace_one_profile(law, np.zeros(1))[0])) for law, count in self.kinds]
        self.nothing = sum(count * (one if one > _SMALL else one + _ROUNDING) for count, one in first) <= delta
        self.far = max(law.times[-1] * law.shift for law, _ in self.kinds) > _REACH or self.total > _RESOLVED
        if not self.nothing and not self.far:
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
        if upper == 0 or self.far:
            return min(drawn_epsilon(self.kinds, self.delta), upper), upper
        lower = max(self._pair(reverse, upper=False) for reverse in ((False, True) if self.poisson else (False,)))
        (first, count), top = self.kinds[0], self.tops[0]
        single = not self.poisson and len(self.kinds) == 1 and first.weights[0] > 1e-3
        quick = count <= _ADAPTIVE_RELEASES and count * count * top / self.step <= _ADAPTIVE_WORK
        if single and quick and upper > _ADAPTIVE_RATIO * lower:
            points = 3 * (upper + 15 / self.order - 5 * math.log(first.weights[0])) / self.step
            if points * count <= _ADAPTIVE_RUN:
                reached = adaptive_lower_epsilon(
                    first, count, self.delta, order=self.order, step=self.step / 3, top=top, upper=upper
                )
                lower = max(lower, reached)
        if upper > _APART * lower:
            lower = max(lower, drawn_epsilon(self.kinds, self.delta))
        return lower, upper

    def upper(self) -> float:
        """Upper ε: the dominating pairs', the certificate's or the moments', whichever is smallest."""
        if self.nothing:
            return 0.0
        moments = moment_epsilon(self.kinds, self.delta) if self.far or self.total > _MANY else math.inf
        if self.far:
            return moments
        if self.poisson:
            return min(max(self._pair(reverse, upper=True) for reverse in (False, True)), moments)
        upper = min(epsilon_at(Composition(self.parts()), self.delta, upper=True), moments)
        if upper > 0 and all(len(occurrences.weights) == 2 for occurrences, _ in self.kinds):
            upper = min(upper, certified_epsilon(self.kinds, self.delta, self.step))
        return upper

    def parts(self) -> list[tuple[LossPmf, int]]:
        """Losses of a pair that dominates every neighbours', of each kind, and how many releases."""
        return [
            (replace_one_losses(occurrences, self.step, top), count)
            for (occurrences, count), top in zip(self.kinds, self.tops, strict=True)
        ]

    def _pair(self, reverse: bool, upper: bool) -> float:
        """ε of the explicit pairs, from below or above."""
        parts = [
            (pair_losses(occurrences, self.step, top, upper=upper, reverse=reverse), count)
            for (occurrences, count), top in zip(self.kinds, self.tops, strict=True)
        ]
        return epsilon_at(Composition(parts), self.delta, upper=upper)


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
