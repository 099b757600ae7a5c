"""Numbers (g, b, p) of the shuffled sums P_1D and P_vec (non-convex paper, Algorithms 4 and 5) with a proven guarantee.

A participant rounds each coordinate, shifted into [0, 2L], to g levels, adds Bin(b, p), and sends g + b bits; the
server learns the sum of the bits alone. Neighbours replace one participant's vector of norm at most L. With n of the N
participants absent the guarantee is that of (N − n)b bits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.privacy.shuffling.binomial_noise import shift_delta, vector_delta

_TAIL = 1e-3  # share of δ for improbable noise
_OVERHEAD = 0.5  # of variance above the ideal Gaussian's; the bound alone costs up to a fifth
_PRECISION = 2e-3  # relative width at which searches stop
_LARGEST_LEVELS = 1 << 12
_LARGEST_TRIALS = 1 << 50

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class SumParameters:
    """What all participants of a shuffled sum agree on: N `participants` (M silos times the vectors of each), g
    `levels` into which a coordinate's range 2L is cut, b `noise_bits` a coordinate, and their `chance` p.

    The papers have p < 1/2; 1/2 gives the most noise for a bit.
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
        """Largest variance of a coordinate of the sum, rounding and noise; its range `width` is 2L in P_vec."""
        return (width / self.levels) ** 2 * (self.participants / 4 + self.trials * self.chance * (1 - self.chance))

    def delta(self, dimension: int, epsilon: float, tail: float = 1e-12) -> float:
        """Proven δ of the whole vector at ε, exact for d = 1; improbable noise may take `tail` of it."""
        return vector_delta(self.trials, self.chance, self.levels, dimension, epsilon, tail)

    def lower_delta(self, epsilon: float) -> float:
        """δ below which no guarantee can go: that of a participant with Le₁ in place of −Le₁, exact."""
        return shift_delta(self.trials, self.chance, self.levels, epsilon)

    def epsilon(self, dimension: int, delta: float) -> tuple[float, float]:
        """(lower, upper) end of the ε at δ; ∞ where the noise is too little for any."""
        lower, _ = _root(self.lower_delta, delta)
        _, upper = _root(lambda epsilon: self.delta(dimension, epsilon, _TAIL * delta), delta)
        return lower, upper


def ideal_variance(epsilon: float, delta: float) -> float:
    """Variance a coordinate, for L = 1, of the least Gaussian noise that a trusted server would add: (2L/μ)²."""
    return (2 / gaussian_mu(epsilon, delta)) ** 2


def calibrate(participants: int, dimension: int, epsilon: float, delta: float) -> SumParameters:
    """Fewest noise bits with which P_vec is (ε, δ)-private for replacing one participant's vector, as proven.

    g is the least power of two whose variance is at most 1 + `_OVERHEAD` times the ideal; ValueError where nothing
    fits.
    """
    target = ideal_variance(epsilon, delta)
    guess = 2 * math.sqrt(participants / target)
    levels = max(1, 1 << max(0, math.floor(math.log2(guess / 2))))
    nearest = math.inf
    while levels <= _LARGEST_LEVELS:
        parameters = fewest_bits(participants, levels, dimension, epsilon, delta)
        ratio = parameters.variance(2.0) / target
        if ratio <= 1 + _OVERHEAD:
            return parameters
        if ratio > 0.99 * nearest:  # finer rounding no longer helps
            break
        nearest, levels = ratio, 2 * levels
    raise ValueError(f"epsilon = {epsilon}: the proof needs {nearest - 1:.3g} more variance than the Gaussian")


def fewest_bits(participants: int, levels: int, dimension: int, epsilon: float, delta: float) -> SumParameters:
    """The same at given levels g, whatever variance that takes."""

    def fits(bits: int) -> bool:
        return SumParameters(participants, levels, bits).delta(dimension, epsilon, _TAIL * delta) <= delta

    wanted = 4 * (levels**2 + dimension / 4) / gaussian_mu(epsilon, delta) ** 2
    high = max(1, math.ceil(wanted / participants))
    while not fits(high):
        high = math.ceil(1.25 * high)
        if high * participants > _LARGEST_TRIALS:
            raise ValueError(f"epsilon = {epsilon}: no number of noise bits reaches it by the proven bounds")
    low = high // 2  # 0 bits never do; that half of them do not is no assumption, only a start
    while low > 0 and fits(low):
        high, low = low, low // 2
    _, high = bisect_to_private_side(
        fits, low, high, lambda a, b: b - a > max(1, _PRECISION * b), lambda a, b: (a + b) // 2
    )
    return SumParameters(participants, levels, high)


def _root(delta_at: Callable[[float], float], delta: float) -> tuple[float, float]:
    """Between which two ε a decreasing δ(ε) reaches `delta`; both ∞ if it never does up to 256."""
    if delta_at(0.0) <= delta:
        return 0.0, 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2
        if high > 500:
            return math.inf, math.inf
    low = high / 2 if high > 1 else 0.0
    return bisect_to_private_side(lambda e: delta_at(e) <= delta, low, high, lambda a, b: b - a > _PRECISION * b / 4)


@dataclass(frozen=True)
class ShuffledSums:
    """How a run's sums are sent: for each kind of message the numbers of P_vec for M·K vectors of d coordinates."""

    kinds: tuple[tuple[str, SumParameters], ...]
    dimension: int

    def __getitem__(self, kind: str) -> SumParameters:
        return next(parameters for name, parameters in self.kinds if name == kind)


def bisect_to_private_side(
    holds: Callable[[Number], bool],
    low: Number,
    high: Number,
    wide: Callable[[Number, Number], bool],
    middle: Callable[[Any, Any], Any] = lambda low, high: (low + high) / 2,
) -> tuple[Number, Number]:
    """An interval where `holds` turns true, not `wide` any more: `high` is on the private side, `low` is not.

    `holds` is false at `low`, true at `high`, and true from some point on; `middle` is the point to look at next.
    """
    while wide(low, high):
        point = middle(low, high)
        low, high = (low, point) if holds(point) else (point, high)
    return low, high
