"""The federation as an algorithm sees it, and what the server asks of silos in a round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from silodp.federation.prox import Prox
from silodp.privacy.plan import Release
from silodp.streams import Streams


@dataclass(frozen=True)
class Query:
    """What the server asks of the silos in a round; round and kind of message name the streams of records and noise.

    `weights` are those of every point, (G, d). With `previous` (G, d) the message is the difference of the clipped
    gradients at both, on the same records. `noise_factor` (G,) scales the noise of the plan. With `factors` (a, b) a
    record contributes a·gradient − b·gradient at `previous`, clipped as a whole: for releases that are `joint`.
    `apart`: a CPU makes the silos' messages one by one, as published, however small they are.
    """

    weights: Tensor
    round: int
    kind: str = "gradient"
    previous: Tensor | None = None
    noise_factor: Tensor | None = None
    factors: tuple[float, float] | None = None
    apart: bool = False


class Federation:
    """N silos and a server, as an algorithm sees them: who takes part, what they send, how the server averages.

    A subclass defines `answer`, and may define `mean`. `stepsize` η is (G, 1), `clip` L (G,), `releases` are each
    silo's by kind, `streams` give the server's coins, and `prox` is the proximal map of f¹.
    """

    stepsize: Tensor
    clip: Tensor
    releases: list[dict[str, Release]]
    streams: Streams
    prox: Prox

    def message(self, weights: Tensor, silo: int, round: int, *more: Any, **options: Any) -> Tensor:
        """The silo's noisy message (G, d); `more` and `options` are those of `Query` after the round."""
        return self.answer(Query(weights, round, *more, **options), silo)

    def mean_message(self, weights: Tensor, round: int, *more: Any, **options: Any) -> Tensor:
        """What the server makes of the messages of S_r, (G, d): their mean; arguments as for `Query`."""
        return self.mean(Query(weights, round, *more, **options))

    def answer(self, query: Query, silo: int) -> Tensor:
        raise NotImplementedError

    def mean(self, query: Query) -> Tensor:
        """The mean of the answers over S_r."""
        return self.average(query.round, lambda silo: self.answer(query, silo))

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        """The silo's own model (G, d) after its local steps from `weights`."""
        raise NotImplementedError

    def mean_local_model(self, weights: Tensor, round: int, kind: str = "step") -> Tensor:
        """The mean (G, d) over S_r of the silos' local models."""
        return self.average(round, lambda silo: self.local_model(weights, silo, round, kind), add_up=False)

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        """(1/M_r) Σ over S_r of `send(silo)`; the plain sum under `server_update: sum` where `add_up` allows it."""
        raise NotImplementedError
