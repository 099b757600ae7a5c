"""The base of every algorithm: its plan, its start, its rounds and what it gives, and the state that they pass on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from silodp.privacy.plan import Budget, PrivacyPlan, Release

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True, eq=False)
class State:
    """What the server keeps between rounds, a row for each point of the stack; a subclass adds tensors.

    Attributes:
        w: the model, (G, d).
    """

    w: Tensor

    def keep_points(self, points: Tensor) -> Self:
        """The state of the points marked in `points` (G,); the others leave the stack."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: value[points] for name, value in values.items() if value is not None})


S = TypeVar("S", bound=State)


def draw_random_iterate(federation: Federation, before: Tensor, iterate: Tensor, number: int, *names: object) -> Tensor:
    """`before`, or the `number`-th iterate with probability 1/number, so that in the end all are equally likely.

    The coin is the server's, from the stream `names`; all points of the stack share it.
    """
    return iterate if federation.streams.generator(*names).random() * number < 1 else before


def is_over(r: int, federation: Federation, kind: str = "gradient") -> bool:
    """Whether a silo has no records left for round r."""
    return any(kind not in releases or r >= releases[kind].count for releases in federation.releases)


def gaussian_noise(sensitivity: float, epsilon: float, delta: float) -> float:
    """The least σ for which the Gaussian mechanism is (ε, δ)-DP, rounded to the private side."""
    from silodp.privacy.accounting.mechanisms import gaussian_mu  # loads SciPy, which traits do without

    return sensitivity / gaussian_mu(epsilon, delta) * (1 + 1e-9)


def ideal_share(release: Release, M: int, epsilon: float, delta: float) -> Release:
    """The release with the least share of noise for which one sum over M silos is (ε, δ)-DP, whoever takes part.

    Each of the M silos adds a share of variance s² to its mean over K records; the server sees the mean alone: its
    noise is s/√M against a replace-one sensitivity of 2L/(MK) (non-convex paper, ideal of Algorithms 4 and 5).
    """
    return replace(release, noise=gaussian_noise(release.sensitivity, epsilon, delta) / math.sqrt(M))


class Look(NamedTuple):
    """How figures draw an algorithm: its place in legends and tables, and matplotlib's colour, marker and line style.

    Lightness L* steps by 10 within a figure, so that a grey print tells algorithms apart.
    """

    place: int
    colour: str
    marker: str
    line: Any = "-"


@dataclass(frozen=True)
class Algorithm(Generic[S]):
    """Base of all algorithms; a subclass is frozen and holds the parameters that shape its rounds, and names its state.

    Attributes:
        rounds: R, rounds of communication.
        name: as in run files, and of the file.
        label: in figures and tables, without what says whether it is private.
        look: in figures, not inherited; None takes a style that is left.
        variants: which of the protocol variants `OF_SOME` (silodp.config.readings) change what it does.
        proximal: whether it takes proximal steps, and so heeds a penalty and a ball.
        trust: what silos trust beside themselves: nothing, a sum of their messages, or a shuffler. Noise that is made
            for M silos together needs exactly M of them, with the same noise.
        alone: whether every silo trains its own model; `round` then meets federations of one silo.
        schedules: theorems that prescribe its rounds, K, σ and steps, by their keys in `SCHEDULES`.
        better_of: name under which the better of several, by training loss, is reported, and the place where they tie.
        at_least_one: parameters that must be at least 1.
    """

    rounds: int

    name: ClassVar[str]
    label: ClassVar[str]
    look: ClassVar[Look | None] = None
    variants: ClassVar[frozenset[str]] = frozenset()
    proximal: ClassVar[bool] = True
    trust: ClassVar[Literal["nothing", "sum", "shuffler"]] = "nothing"
    alone: ClassVar[bool] = False
    schedules: ClassVar[frozenset[str]] = frozenset()
    better_of: ClassVar[tuple[str, int] | None] = None
    at_least_one: ClassVar[tuple[str, ...]] = ("rounds",)

    def __post_init__(self) -> None:
        for name in self.at_least_one:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least 1")

    @classmethod
    def with_options(cls, options: Mapping[str, Any]) -> Self:
        """Make the algorithm from the options it knows; the others are for other algorithms."""
        return cls(**{field.name: options[field.name] for field in fields(cls) if field.name in options})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """The privacy plan of a silo under `budget`.
        Holds if every message of the run is made as its release says, and the accountant bounds it by ε.
        """
        raise NotImplementedError

    def start(self, weights: Tensor) -> S:
        """The state before the first round at a model (G, d)."""
        raise NotImplementedError

    def round(self, r: int, state: S, federation: Federation) -> S:
        """The state after round r."""
        raise NotImplementedError

    def output(self, state: S) -> Tensor:
        """What the paper's algorithm returns after its rounds, (G, d); the last iterate unless it says otherwise."""
        return state.w

    def models(self, state: S) -> Tensor:
        """What silos use after a round: the model (G, d), or a model for each silo (G, N, d)."""
        return state.w

    def fitted(self, n: int, batch_records: int | None) -> Self:
        """The algorithm for silos of n records; only one whose rounds follow from n differs from itself."""
        return self
