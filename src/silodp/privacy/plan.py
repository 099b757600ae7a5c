"""A privacy plan: everything about an algorithm's privacy in one frozen object, for the trainer and the accountant.

Noise and sensitivity are in units of the clip threshold L. Ledgers store a plan's fields by name, without `shuffler`
and `shuffled_sum`. A field may be added, with a default under which old lines promise what they did; none may be
renamed, dropped or given another meaning.

>>> Release("gradient", count=25, records=100, noise=0.05).noise_multiplier
2.5
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

ADJACENCY = "replace one record of one silo"
# Messages of a silo, above which no lattice resolves the losses.
MOST_MESSAGES = 10**8

Sampler = Literal["replacement", "subset", "disjoint", "all"]
Clipping = Literal["record", "per_tensor", "batch_mean"]


@dataclass(frozen=True)
class Budget:
    """What a silo's noise is made for: n training records, R `rounds`, claimed ε (None for no noise) at δ.

    `batch_epsilon` is the ε in K = ⌊n√ε/(2√R)⌋; `batch_records` is K itself, in place of that formula.
    All of it is public.
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
        return math.log(numerator / self.delta)


@functools.lru_cache
def whitening(mixing: tuple[float, ...], count: int) -> tuple[float, ...]:
    """First column (c_0, …) of C for `count` messages of noise C⁻¹z, whose lower-triangular C⁻¹ has the rows `mixing`.

    Both are Toeplitz: row t of C⁻¹ is (b_t, …, b_0), b = `mixing` and then 0. So c is the inverse power series.
    """
    column = [1 / mixing[0]]
    for t in range(1, count):
        earlier = sum(b * column[t - s] for s, b in enumerate(mixing[1 : t + 1], start=1))
        column.append(-earlier / mixing[0])
    return tuple(column[:count])


@dataclass(frozen=True)
class Release:
    """One kind of message of a silo. All fields are public: they follow from sizes and options, not from values.

    Attributes:
        count: messages of a silo that takes part in every round, local steps included.
        noise: standard deviation per coordinate on the mean over the drawn records, in units of the clip.
        gradients: clipped gradients that a record contributes (2 for a difference of two).
        steps: releases that a silo makes before it sends anything (local steps).
        sampler: uniformly with "replacement"; a "subset" of distinct records, anew for every message; "disjoint", in an
            order fixed for the run, no record twice; "all", every record, once a message.
        clipping: what is scaled to norm at most L: each "record"'s gradient; as in released programs, each tensor of it
            ("per_tensor", of `tensors`) or only the mean ("batch_mean").
        contracted: whether the message is a local model whose steps cannot expand distances: each gradient is scaled by
            min(1, 2/(ηh‖x‖²)) before it is clipped, h the curvature of the model (docs/accounting.md). With `steps` 1
            the steps over the K records have no noise, and the mean of their clipped gradients has it at the end.
        mixing: noise that is correlated over a silo's messages: message t has noise·(b_0 z_t + b_1 z_{t−1} + …), b this
            tuple and z the silo's independent standard normal draws. Needs "disjoint" batches.
        joint: whether a record's weighted difference of two gradients is clipped as a whole, which counts as one.
        part: (first, size) of the silo's random order that "all" means; parts of different kinds share no record.
        slack: share of the sensitivity that rounding may add in local steps; 0 for the algorithm in real numbers.
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
    contracted: bool = False
    mixing: tuple[float, ...] = ()
    joint: bool = False
    part: tuple[int, int] | None = None
    slack: float = 0.0

    def __post_init__(self) -> None:
        if self.mixing and self.sampler != "disjoint":
            raise ValueError(f"release {self.kind}: correlated noise needs disjoint batches, not {self.sampler}")

    @property
    def has_local_steps(self) -> bool:
        return self.steps > 1 or self.contracted

    @property
    def records_drawn(self) -> int:
        """Records drawn in a round for this kind: K."""
        return self.records * self.steps

    @property
    def sensitivity(self) -> float:
        """How far one drawn occurrence of a replaced record moves the mean, in units of the clip: 2·gradients/K.

        √tensors times that where each tensor is clipped; 2·gradients where only the mean is, which can turn round.
        """
        length = math.sqrt(self.tensors) if self.clipping == "per_tensor" else 1
        return 2 * self.gradients * length * (1 + self.slack) / (1 if self.clipping == "batch_mean" else self.records)

    @property
    def noise_multiplier(self) -> float:
        """Noise over the replace-one sensitivity of one occurrence.

        Where noise is mixed, a record of the first message moves C times all messages by the longest column of C.
        """
        longest = math.hypot(*whitening(self.mixing, self.count)) if self.mixing and self.count else 1.0
        return self.noise / (self.sensitivity * longest)


def check_messages(count: int) -> None:
    if count > MOST_MESSAGES:
        raise ValueError(f"{count} messages: must be at most {MOST_MESSAGES}, as beyond no ε is computed")


@dataclass(frozen=True)
class Shuffler:
    """A trusted shuffler: each round it hands on the messages of M of N silos, drawn in secret, in random order."""

    N: int
    M: int


@dataclass(frozen=True)
class PrivacyPlan:
    """What one silo releases over a whole run, and under which claim. All of it is public.

    The adversary sees every message of the silo; the draw of silos earns no credit. A `shuffler` hides whose message it
    is; with a `trusted_sum` (M) only the sums over a round's M silos are seen, made by P_vec under a `shuffled_sum`.
    With an `assumption` nothing is proven.
    """

    algorithm: str
    budget: Budget
    releases: tuple[Release, ...]
    shuffler: Shuffler | None = None
    trusted_sum: int | None = None
    shuffled_sum: Any = None  # p_vec.ShuffledSums or None; what counts it counts plans, and imports this file
    assumption: str = ""

    def __post_init__(self) -> None:
        check_messages(sum(release.count for release in self.releases))

    def __getitem__(self, kind: str) -> Release:
        return next(release for release in self.releases if release.kind == kind)

    @property
    def private(self) -> bool:
        return self.budget.epsilon is not None

    @property
    def is_shuffled(self) -> bool:
        return self.shuffler is not None or self.shuffled_sum is not None

    @property
    def sees_last_iterates(self) -> bool:
        """Whether noisy local steps expand no distance, so that the last of a round is all that is seen."""
        return self.private and self.releases[0].contracted and self.releases[0].steps > 1

    @property
    def with_steps_seen(self) -> "PrivacyPlan":
        """The plan whose noisy local steps all count as seen: on a lattice they may expand distances."""
        releases = (replace(release, contracted=release.contracted and release.steps == 1) for release in self.releases)
        return replace(self, releases=tuple(releases))

    @property
    def as_seen_by_adversary(self) -> "PrivacyPlan":
        """The plan of what the adversary sees: behind a trusted sum, one message with the noise of M silos.

        A record counts in every round (docs/errata.md, non-convex paper, Algorithms 7 to 10).
        """
        if self.trusted_sum is None:
            return self
        root = math.sqrt(self.trusted_sum)
        return replace(self.with_noise_times(root), trusted_sum=None)

    def behind_sum_of(self, M: int) -> "PrivacyPlan":
        """The plan with the server's view moved to the sum of M messages, at the same privacy: each silo adds σ/√M."""
        root = math.sqrt(M)
        releases = tuple(replace(release, noise=release.noise / root) for release in self.releases)
        return replace(self, releases=releases, trusted_sum=M)

    def with_noise_times(self, factor: float) -> "PrivacyPlan":
        releases = tuple(replace(release, noise=release.noise * factor) for release in self.releases)
        return replace(self, releases=releases)

    @property
    def without_repeats(self) -> "PrivacyPlan":
        """The plan with no record twice in a message: what is drawn with replacement is drawn without."""
        releases = (
            replace(release, sampler="subset") if release.sampler == "replacement" and release.records > 1 else release
            for release in self.releases
        )
        return replace(self, releases=tuple(releases))

    @property
    def noise_multiplier(self) -> float:
        """The smallest noise multiplier among the kinds of messages that are sent."""
        return min(release.noise_multiplier for release in self.releases if release.count)

    @property
    def sampling(self) -> str:
        """How a message's records are drawn, in words."""
        sent = [release for release in self.releases if release.count]
        if all(release.part is not None for release in sent):
            parts = ", ".join(str(release.records) for release in sent)
            return f"all of disjoint parts of {parts} of {self.budget.n}"
        sizes = ", ".join(map(str, sorted({release.records for release in sent if release.sampler != "all"})))
        samplers = {release.sampler for release in sent}
        ways = {"disjoint": "without replacement over the run", "subset": "without replacement in a message"}
        how = next((text for way, text in ways.items() if way in samplers), "with replacement")
        drawn = f"{sizes} of {self.budget.n} {how}"
        return f"{drawn}, and all" if any(release.sampler == "all" for release in sent) else drawn


def at_largest_delta(plans: Iterable[PrivacyPlan]) -> list[PrivacyPlan]:
    """The distinct plans, each at the largest δ among them: the ends of ε that a row states are at one δ."""
    distinct = list(dict.fromkeys(plans))
    delta = max(plan.budget.delta for plan in distinct)
    return [replace(plan, budget=replace(plan.budget, delta=delta)) for plan in distinct]
