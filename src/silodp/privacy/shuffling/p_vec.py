"""Numbers (g, b, p) of the shuffled sums P_1D and P_vec (non-convex paper, Algorithms 4 and 5) with a proven guarantee.

A participant rounds each coordinate, shifted into [0, 2L], to g levels, adds Bin(b, p), and sends g + b bits a
coordinate. The shuffler hides whose they are, so the server learns the sum of the bits alone: the sum of the rounded
inputs plus Bin(Nb, p). Neighbours replace one participant's vector by another of norm at most L. All N participants
are trusted to add their bits; with n of them absent the guarantee is that of (N − n)b bits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from silodp.privacy.accounting.mechanisms import advanced_composition, gaussian_mu
from silodp.privacy.shuffling.binomial_noise import shift_delta, vector_delta

Analysis = Literal["l2", "split"]

_TAIL = 1e-3  # share of δ for improbable noise
_PRECISION = 2e-3  # relative width at which searches stop
_LARGEST_LEVELS = 1 << 12
_LARGEST_TRIALS = 1 << 50


@dataclass(frozen=True)
class SumParameters:
    """What all participants of a shuffled sum agree on.

    Attributes:
        participants: N, how many vectors are summed: M silos times the vectors each sends.
        levels: g, steps into which the range of a coordinate, 2L, is cut.
        noise_bits: b, a participant's noise bits a coordinate.
        chance: p of a noise bit. The papers have p < 1/2; 1/2 gives the most noise for a bit.
    """

    participants: int
    levels: int
    noise_bits: int
    chance: float = 0.5

    def __post_init__(self) -> None:
        for name, least in (("participants", 1), ("levels", 1), ("noise_bits", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least {least}")
        if not 0 < self.chance <= 0.5:
            raise ValueError(f"chance = {self.chance}: must lie above 0 and be at most 1/2")

    @property
    def trials(self) -> int:
        """Noise bits of all participants in one coordinate, Nb."""
        return self.participants * self.noise_bits

    def bits(self, dimension: int) -> int:
        """Bits that a participant sends for a vector, d(g + b); their labels are not counted."""
        return dimension * (self.levels + self.noise_bits)

    def variance(self, width: float) -> float:
        """Largest variance of a coordinate of the sum, rounding and noise, in the inputs' unit squared.

        Args:
            width: the range of a coordinate that g steps cut; 2L in P_vec.
        """
        noise = self.trials * self.chance * (1 - self.chance)
        return (width / self.levels) ** 2 * (self.participants / 4 + noise)

    def delta(self, dimension: int, epsilon: float, tail: float = 1e-12) -> float:
        """Proven δ of the whole vector at ε against replacing one participant's vector; exact for d = 1.

        `tail` is the part of it that improbable noise may take (for d > 1).
        """
        return vector_delta(self.trials, self.chance, self.levels, dimension, epsilon, tail)

    def lower_delta(self, epsilon: float) -> float:
        """δ below which no guarantee can go: that of a participant with Le₁ in place of −Le₁, exact."""
        return shift_delta(self.trials, self.chance, self.levels, epsilon)

    def epsilon(self, dimension: int, delta: float) -> tuple[float, float]:
        """(lower, upper) end of the ε at δ; ∞ where the noise is too little for any."""
        _check_budget(1.0, delta)
        return (
            _root(self.lower_delta, delta, upper=False),
            _root(lambda epsilon: self.delta(dimension, epsilon, _TAIL * delta), delta, upper=True),
        )


def ideal_variance(epsilon: float, delta: float, clip: float = 1.0) -> float:
    """Variance a coordinate of the least Gaussian noise that a trusted server would add to the sum: (2L/μ)²."""
    _check_budget(epsilon, delta)
    return (2 * clip / gaussian_mu(epsilon, delta)) ** 2


def coordinate_budget(epsilon: float, delta: float, dimension: int) -> tuple[float, float]:
    """(ε, δ) of each of d coordinates when the budget is split: the better of basic and advanced composition."""
    _check_budget(epsilon, delta)
    if dimension < 1:
        raise ValueError(f"dimension = {dimension}: must be at least 1")
    basic = (epsilon / dimension, delta / dimension)
    low, high = basic[0], epsilon
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        total, _ = advanced_composition(middle, 0.0, dimension, delta / 2)
        low, high = (middle, high) if total <= epsilon else (low, middle)
    if low > basic[0]:
        return low, delta / (2 * dimension)
    return basic


def calibrate(
    participants: int,
    dimension: int,
    epsilon: float,
    delta: float,
    *,
    levels: int | None = None,
    chance: float = 0.5,
    overhead: float = 0.5,
    analysis: Analysis = "l2",
) -> SumParameters:
    """Fewest noise bits with which P_vec is (ε, δ)-private for replacing one participant's vector, as proven.

    Args:
        participants, dimension, epsilon, delta: N, d, ε and δ of the whole vector.
        levels: g; by default the least power of two whose variance is at most (1 + overhead) times `ideal_variance`
            (with analysis "split": times what splitting makes of it).
        chance: p.
        overhead: see levels; must leave room for the bound, which costs up to a fifth.
        analysis: "l2", one bound for the vector; "split", ε and δ divided among coordinates that each change by g.

    Raises:
        ValueError: no parameters within sensible size do it.
    """
    _check_budget(epsilon, delta)
    if levels is not None:
        return _fewest_bits(SumParameters(participants, levels, 0, chance), dimension, epsilon, delta, analysis)
    target = ideal_variance(epsilon, delta)
    if analysis == "split":
        target = ideal_variance(*coordinate_budget(epsilon, delta, dimension))
    guess = 2 * math.sqrt(participants / target)
    levels = max(1, 1 << max(0, math.floor(math.log2(guess / 2))))
    nearest = math.inf
    while levels <= _LARGEST_LEVELS:
        found = _fewest_bits(SumParameters(participants, levels, 0, chance), dimension, epsilon, delta, analysis)
        ratio = found.variance(2.0) / target
        if ratio <= 1 + overhead:
            return found
        if ratio > 0.99 * nearest:  # finer rounding no longer helps
            break
        nearest, levels = ratio, 2 * levels
    raise ValueError(f"overhead = {overhead}: must be larger; the proof comes within {nearest - 1:.3g} of the Gaussian")


def _fewest_bits(
    start: SumParameters, dimension: int, epsilon: float, delta: float, analysis: Analysis
) -> SumParameters:
    if dimension < 1:
        raise ValueError(f"dimension = {dimension}: must be at least 1")
    if analysis not in ("l2", "split"):
        raise ValueError(f"analysis = {analysis!r}: must be l2 or split")
    share = coordinate_budget(epsilon, delta, dimension) if analysis == "split" else (epsilon, delta)

    def parameters(bits: int) -> SumParameters:
        return SumParameters(start.participants, start.levels, bits, start.chance)

    def fits(bits: int) -> bool:
        if analysis == "split":
            return parameters(bits).lower_delta(share[0]) <= share[1]
        return parameters(bits).delta(dimension, epsilon, _TAIL * delta) <= delta

    shift = start.levels**2 if analysis == "split" else start.levels**2 + dimension / 4
    wanted = shift / gaussian_mu(*share) ** 2 / (start.chance * (1 - start.chance))
    high = max(1, math.ceil(wanted / start.participants))
    while not fits(high):
        high = math.ceil(1.25 * high)
        if high * start.participants > _LARGEST_TRIALS:
            raise ValueError(f"epsilon = {epsilon}: no number of noise bits reaches it by the proven bounds")
    low = high // 2  # 0 bits never do; that half of them do not is no assumption, only a start
    while low > 0 and fits(low):
        high, low = low, low // 2
    while high - low > max(1, _PRECISION * high):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return parameters(high)


def _root(delta_at: Callable[[float], float], delta: float, *, upper: bool) -> float:
    """ε at which a decreasing δ(ε) reaches `delta`, from above or below; ∞ if it never does up to 1e4."""
    if delta_at(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2
        if high > 500:
            return math.inf
    low = high / 2 if high > 1 else 0.0
    while high - low > _PRECISION * high / 4:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high if upper else low


def _check_budget(epsilon: float, delta: float) -> None:
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon = {epsilon}: must be positive and finite")
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta}: must lie strictly between 0 and 1")


@dataclass(frozen=True)
class ShuffledSums:
    """How a run's sums are sent: numbers of P_vec for the M·K vectors of a round, each of d coordinates.

    Attributes:
        kinds: (kind of message, its numbers).
        dimension: d.
    """

    kinds: tuple[tuple[str, SumParameters], ...]
    dimension: int

    def __getitem__(self, kind: str) -> SumParameters:
        return next(parameters for name, parameters in self.kinds if name == kind)
