"""A privacy plan: everything about an algorithm's privacy in one frozen object.

The trainer takes batch sizes and noise from the plan and the accountant takes the plan's event, so the two cannot
disagree. Noise and sensitivity are in units of the clip threshold L, as every guarantee here depends on their ratio.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import dp_accounting

    from silodp.privacy.shuffling.p_vec import ShuffledSums

ADJACENCY = "replace one record of one silo"

Sampler = Literal["replacement", "subset", "disjoint", "all"]
Clipping = Literal["record", "per_tensor", "batch_mean"]


@dataclass(frozen=True)
class Budget:
    """What a silo's noise is made for.

    Attributes:
        n: training records of the silo.
        rounds: R, rounds of communication.
        epsilon: claimed ε, or None for a baseline without noise.
        delta: δ.
        batch_epsilon: the ε in K = ⌊n√ε/(2√R)⌋.
        batch_records: K itself, in place of that formula.
    """

    n: int
    rounds: int
    epsilon: float | None
    delta: float
    batch_epsilon: float
    batch_records: int | None = None

    def __post_init__(self) -> None:
        if self.n < 1 or self.rounds < 1:
            raise ValueError(f"n = {self.n}, rounds = {self.rounds}: must be at least 1")
        if self.epsilon is not None and not 0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon = {self.epsilon}: must be positive and finite")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta = {self.delta}: must lie between 0 and 1")
        if not 0 < self.batch_epsilon < math.inf:
            raise ValueError(f"batch_epsilon = {self.batch_epsilon}: must be positive and finite")
        if self.batch_records is not None and not 1 <= self.batch_records <= self.n:
            raise ValueError(f"K = {self.batch_records}: must lie between 1 and n = {self.n}")

    def batch(self, phase: int = 1) -> int:
        """K = ⌊n·√batch_epsilon/2·min(1, √(phase/R))⌋, at least 1 and at most n."""
        if self.batch_records is not None:
            return self.batch_records
        # In whole numbers, as a product of rounded roots can fall below a K that is exact.
        square = self.n**2 * Fraction(self.batch_epsilon) * min(Fraction(phase, self.rounds), Fraction(1)) / 4
        return min(max(math.isqrt(math.floor(square)), 1), self.n)

    def noise(self, variance: float) -> float:
        """√(variance)/(nε): the standard deviation of a formula σ² = variance·L²/(n²ε²), in units of L; 0 without ε."""
        return 0.0 if self.epsilon is None else math.sqrt(variance) / (self.n * self.epsilon)

    def log(self, numerator: float = 1.0) -> float:
        """ln(numerator/δ)."""
        return math.log(numerator / self.delta)


@dataclass(frozen=True)
class Release:
    """One kind of message of a silo.

    Attributes:
        kind: its name in the algorithm.
        count: how many of them a silo sends when it takes part in every round.
        records: records drawn for each.
        noise: standard deviation per coordinate of the noise on the mean over the drawn records, in units of the clip.
        gradients: clipped gradients that a record contributes (2 for a difference of two).
        steps: releases that a silo makes in one go before it sends anything (local steps); `count` includes them.
        sampler: "replacement"; "subset", drawn anew for each message, no record twice in it; "disjoint", no record is
            drawn twice in a run; or "all", every record, once a message.
        clipping: what is scaled to norm at most L: each "record"'s gradient, each tensor of it ("per_tensor"), or the
            "batch_mean" only.
        tensors: of the model.
    """

    kind: str
    count: int
    records: int
    noise: float
    gradients: int = 1
    steps: int = 1
    sampler: Sampler = "replacement"
    clipping: Clipping = "record"
    tensors: int = 1

    @property
    def drawn(self) -> int:
        """Records drawn in a round for this kind: K."""
        return self.records * self.steps

    @property
    def sensitivity(self) -> float:
        """How far one drawn occurrence of a replaced record moves the mean, in units of the clip: 2·gradients/K.

        Tensors clipped one by one make a gradient as long as √tensors·L. A clipped mean of unclipped gradients can turn
        round whole: 2·gradients.
        """
        length = math.sqrt(self.tensors) if self.clipping == "per_tensor" else 1
        return 2 * self.gradients * length / (1 if self.clipping == "batch_mean" else self.records)

    @property
    def noise_multiplier(self) -> float:
        """Noise over the replace-one sensitivity of one occurrence."""
        return self.noise / self.sensitivity


@dataclass(frozen=True)
class Shuffler:
    """A trusted shuffler: each round it hands on the messages of M of N silos, drawn in secret, in random order."""

    N: int
    M: int


@dataclass(frozen=True)
class PrivacyPlan:
    """What one silo releases over a whole run, and under which claim.

    The adversary sees every message of the silo. That only M of N silos are drawn in a round is not counted in its
    favour, as the draw is public. Under a `shuffler` the claim is about the shuffled messages of all silos instead, and
    with a `trusted_sum` about the sums over the silos of each round; `event` stays what the silo's own messages give
    without either.

    Attributes:
        algorithm: its name.
        budget: what the noise is made for.
        releases: kinds of messages.
        shuffler: stands between silos and server, if any.
        trusted_sum: M, if the server sees only the sum of the messages of the M silos that take part in a round.
        shuffled_sum: the numbers of P_vec for each kind of message, if that is how the sums are made.
        assumption: what the privacy of the run rests on beside clipping, sampling and noise; then nothing is proven.
    """

    algorithm: str
    budget: Budget
    releases: tuple[Release, ...]
    shuffler: Shuffler | None = None
    trusted_sum: int | None = None
    shuffled_sum: "ShuffledSums | None" = None
    assumption: str = ""

    def __getitem__(self, kind: str) -> Release:
        return next(release for release in self.releases if release.kind == kind)

    @property
    def private(self) -> bool:
        """Whether noise is added at all."""
        return self.budget.epsilon is not None

    @property
    def seen(self) -> "PrivacyPlan":
        """The plan of what the adversary sees: behind a trusted sum, one message with the noise of M silos.

        A record counts in every round: that its silo may not have been drawn is no protection once the other silos'
        records tell which were (docs/errata.md, non-convex paper, Algorithms 7 to 10).
        """
        if self.trusted_sum is None:
            return self
        root = math.sqrt(self.trusted_sum)
        releases = tuple(replace(release, noise=release.noise * root) for release in self.releases)
        return replace(self, releases=releases, trusted_sum=None)

    @property
    def distinct(self) -> "PrivacyPlan":
        """The plan with no record twice in a message: what is drawn with replacement is drawn without.

        Where one record is drawn, as for a local step, the two are the same.
        """

        def once(release: Release) -> Release:
            again = release.sampler == "replacement" and release.records > 1
            return replace(release, sampler="subset") if again else release

        return replace(self, releases=tuple(once(release) for release in self.releases))

    @property
    def noise_multiplier(self) -> float:
        """The smallest noise multiplier among the kinds of messages that are sent."""
        return min(release.noise_multiplier for release in self.releases if release.count)

    @property
    def sampling(self) -> str:
        """How a message's records are drawn, in words."""
        sent = [release for release in self.releases if release.count]
        sizes = ", ".join(str(size) for size in sorted({one.records for one in sent if one.sampler != "all"}))
        samplers = {release.sampler for release in sent}
        ways = {"disjoint": "without replacement over the run", "subset": "without replacement in a message"}
        how = next((text for way, text in ways.items() if way in samplers), "with replacement")
        drawn = f"{sizes} of {self.budget.n} {how}"
        return f"{drawn}, and all" if any(release.sampler == "all" for release in sent) else drawn

    @property
    def event(self) -> "dp_accounting.DpEvent":
        """The whole transcript as a dp-accounting event; multipliers are relative to one occurrence's sensitivity."""
        return self._event(math.ceil)

    @property
    def event_below(self) -> "dp_accounting.DpEvent":
        """The same with what has to be rounded to a whole number of records rounded down: for ε from below."""
        return self._event(math.floor)

    def _event(self, whole: Callable[[float], int]) -> "dp_accounting.DpEvent":
        import dp_accounting  # slow to import, and training does not need it

        if not self.private or self.assumption:
            return dp_accounting.NonPrivateDpEvent()

        def composed(release: Release) -> dp_accounting.DpEvent:
            one = dp_accounting.GaussianDpEvent(release.noise_multiplier)
            if release.sampler == "disjoint":
                # Parallel composition: a record is in one message at most, and no other depends on it.
                return one
            if release.sampler == "all":
                return dp_accounting.SelfComposedDpEvent(one, release.count)
            n, records, once = self.budget.n, release.records, release.sampler == "subset"
            if release.clipping == "batch_mean" and not once:
                # A clipped mean moves by 2L as soon as the record is drawn at all, and no further however often: as a
                # record that is drawn once with that probability, rounded to a whole number of records.
                records, once = whole(n * -math.expm1(records * math.log1p(-1 / n))) if n > 1 else 1, True
            sampling = dp_accounting.SampledWithReplacementDpEvent
            if once:
                sampling = dp_accounting.SampledWithoutReplacementDpEvent
            sampled = sampling(n, records, one)
            return dp_accounting.SelfComposedDpEvent(sampled, release.count)

        kinds = [composed(release) for release in self.releases if release.count]
        return kinds[0] if len(kinds) == 1 else dp_accounting.ComposedDpEvent(kinds)
