"""Both ends of the true ε of a silo's transcript at δ, from below and from above (proofs: docs/accounting.md).

Guarantee: (ε, δ)-DP under replacing one record of one silo, against an adversary who sees every release and knows all
other records (adaptive composition). Records are drawn afresh and in secret for every release; that silos are drawn
earns no credit. Noise is treated as exact real Gaussian noise. The upper end holds for every silo, data set and loss
with clipped gradients; two neighbouring silos that can be written down reach the lower one.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from silodp.privacy.accounting.certificate import certified_epsilon
from silodp.privacy.accounting.composition import (
    Composition,
    adaptive_lower_epsilon,
    chernoff_order,
    epsilon_at,
)
from silodp.privacy.accounting.few_draws import drawn_epsilon
from silodp.privacy.accounting.last_iterate import last_iterate_epsilon
from silodp.privacy.accounting.losses import LossPmf, pair_losses, replace_one_losses
from silodp.privacy.accounting.mechanisms import check_delta, gaussian_epsilon, replace_one_profile
from silodp.privacy.message_counts import RECORD, Counts, Occurrences, Whom, counts_of, draws, gaussian_mu_of, laws_of
from silodp.privacy.plan import PrivacyPlan

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


def ends(plans: Sequence[PrivacyPlan], whom: Whom = RECORD) -> DeliveredEpsilon:
    """Both ends at the plans' largest δ for what the adversary of their claim sees of one silo's runs by all of them.

    A single plan may be one that a shuffler or P_vec hides, or whose last local iterates alone are seen.
    """
    (first, *more), delta = plans, max(plan.budget.delta for plan in plans)
    if first.is_shuffled:
        # Loads dp-accounting, which most plans do without.
        from silodp.privacy.shuffling.shuffled_gaussian import delivered_shuffled
        from silodp.privacy.shuffling.shuffled_plan import delivered_shuffled_sums

        return delivered_shuffled_sums(first) if first.shuffler is None else delivered_shuffled(first)
    if not more and whom == RECORD and first.sees_last_iterates:
        (step,) = first.releases
        arguments = step.steps, step.count // step.steps, first.budget.n, step.noise_multiplier, delta
        bracket = end_of_round_epsilon(*arguments)
        upper = min(bracket.upper, last_iterate_epsilon(*arguments))
        return DeliveredEpsilon.between(bracket.lower, upper, "last local iterate of contracted steps")
    counts, below = counts_of(plans, whom), counts_of(plans, whom, math.floor)
    found = ends_of(counts, delta)
    if below != counts:
        found = found._replace(lower=min(found.lower, ends_of(below, delta).lower))
    if first.trusted_sum is None:
        return found
    return found._replace(method=f"seen by the server: Gaussian sums over {first.trusted_sum} silos; {found.method}")


def upper_end(plans: Sequence[PrivacyPlan], whom: Whom = RECORD) -> float:
    """The upper one of `ends` alone, which is what a promise needs and takes less time.

    NaN for more than a record behind a shuffler or with shuffled sums: of that nothing is proven.
    """
    (first, *more), delta = plans, max(plan.budget.delta for plan in plans)
    if first.is_shuffled and whom != RECORD:
        return math.nan
    if first.is_shuffled or (not more and whom == RECORD and first.sees_last_iterates):
        return ends(plans).upper
    silos = 1 if first.trusted_sum is not None else whom.silos
    return upper_of(counts_of(plans, whom), delta, 0 if whom == RECORD else silos)


def refuting_epsilon(plan: PrivacyPlan, result: DeliveredEpsilon, everyone: bool) -> float:
    """ε that some neighbouring silos reach at the claim's δ: the lower end that refutes a claim; NaN if none is proven.

    Args:
        result: what `ends` gives for the plan.
        everyone: whether all silos take part in every round. Where M < N, `result` counts a silo that is drawn in all
            rounds, which is rare, and nothing is proven from below about one that is not.
    """
    (first, *_) = plan.releases
    # The order in which disjoint batches use the records is random and secret, which the plan does not count. Nothing
    # is known of noise that no accountant covers.
    secret = first.sampler == "disjoint" or first.part is not None
    uncounted = first.clipping != "record" or secret or math.isinf(result.upper)
    if plan.is_shuffled or plan.trusted_sum is not None or not everyone or uncounted:
        return math.nan
    if first.steps == 1 or first.contracted:
        return result.lower
    # Of local SGD only the model after a round's steps is seen.
    counts = summed_steps(first.steps, first.count // first.steps, plan.budget.n, plan.noise_multiplier)
    return ends_of(counts, plan.budget.delta).lower


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
        lower = max(
            epsilon_at(Composition(self._pairs()), self.delta, upper=False), drawn_epsilon(self.kinds, self.delta)
        )
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
