"""The federation an algorithm runs on: who takes part, what silos send, how the server averages."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from silodp.federation.messages import Messages
from silodp.federation.prox import Prox, no_prox
from silodp.federation.rng import Streams
from silodp.privacy.plan import PrivacyPlan, Release

# Records of all silos together up to which a round's messages are made in one pass.
TOGETHER = 1024

# A protocol for the mean of all silos' messages in a round: (federation, weights, round, kind, previous, noise_factor),
# as in `Federation.mean_message`.
Summation = Callable[["SiloFederation", Tensor, int, str, Tensor | None, Tensor | None], Tensor]


class Federation(Protocol):
    """N silos and a server, as an algorithm sees them: who takes part, what they send, how the server averages.

    Training has `SiloFederation`; checks and audit have federations of their own, which an algorithm cannot tell apart.

    Attributes:
        stepsize: η of every point, (G, 1).
        clip: L of every point, (G,).
        releases: what each silo releases, by kind.
        streams: the tree that coins of the server come from.
        prox: proximal map of f¹.
    """

    stepsize: Tensor
    clip: Tensor
    releases: list[dict[str, Release]]
    streams: Streams
    prox: Prox

    def message(
        self,
        weights: Tensor,
        silo: int,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        noise_factor: Tensor | None = None,
    ) -> Tensor:
        """The silo's noisy message of the plan's `kind`, (G, d); `noise_factor` (G,) scales its noise."""

    def mean_message(
        self,
        weights: Tensor,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        noise_factor: Tensor | None = None,
    ) -> Tensor:
        """What the server makes of the messages of S_r, (G, d): their mean."""

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        """The silo's own model (G, d) after its local steps from `weights`."""

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        """(1/M_r) Σ over S_r of `send(silo)`; the plain sum under `server_update: sum` where `add_up` allows it."""


class SiloFederation:
    """The silos of an experiment, for a stack of points: the federation that is trained on.

    Small messages of a round are made together (`Messages.total`), which is faster and sums in another order.

    Args:
        messages: makes each silo's message.
        plans: for each point of the stack, the privacy plan of each silo: `plans[g][i]`. All points share batch sizes.
        stepsize: η of every point, (G,).
        clip: L of every point, (G,).
        cohort: M, silos drawn in each round; or the values of a random M_r, each as likely as the others.
        streams: the tree that the draw of silos comes from; shared by all algorithms of a trial.
        server_update: "mean", or "sum" as the convex paper's released programs have it.
        prox: proximal map of f¹.
        summation: protocol that adds the silos' messages up; default: each silo adds its own noise, `average` the rest.
    """

    def __init__(
        self,
        messages: Messages,
        plans: list[list[PrivacyPlan]],
        stepsize: Tensor,
        clip: Tensor,
        cohort: int | Sequence[int],
        streams: Streams,
        server_update: str = "mean",
        prox: Prox = no_prox,
        summation: Summation | None = None,
    ):
        self.summation = summation
        self.messages, self.stepsize, self.clip, self.prox = messages, stepsize[:, None], clip, prox
        self.M, self.streams, self.server_update = cohort, streams, server_update
        self.records = [{release.kind: release.drawn for release in plan.releases} for plan in plans[0]]
        self.releases = [{release.kind: release for release in plan.releases} for plan in plans[0]]
        self.noise = [
            {
                release.kind: self._scaled([plan[silo][release.kind].noise for plan in plans])
                for release in plans[0][silo].releases
            }
            for silo in range(len(plans[0]))
        ]
        # Kinds of messages that are made together.
        self.together = frozenset(kind for kind in self.releases[0] if self._small(kind))

    def _small(self, kind: str) -> bool:
        """Whether a round's messages of this kind are so small that they are made together, and alike enough."""
        shapes = {(one[kind].drawn, one[kind].sampler, one[kind].clipping) for one in self.releases}
        (drawn, sampler, clipping), silos = next(iter(shapes)), len(self.releases)
        alike = len(shapes) == 1 and sampler != "all" and clipping == "record"
        return alike and silos > 1 and silos * drawn <= TOGETHER

    def _scaled(self, noise: list[float]) -> Tensor:
        """Noise in units of the clip → noise; a point without noise may have an infinite clip, and 0·∞ is no number."""
        units = torch.tensor(noise, dtype=self.clip.dtype, device=self.clip.device)
        return torch.where(units > 0, units * self.clip, 0)

    def silos(self, round: int) -> list[int]:
        """S_r: M_r distinct silos drawn uniformly, in ascending order; M_r = M unless it is random (Assumption 2)."""
        total, size = len(self.messages.silos), self.M
        if not isinstance(size, int):
            size = int(self.streams.generator("participants", *size, round).choice(size))
        if total == size:
            return list(range(total))
        drawn = self.streams.generator("silos", size, round).choice(total, size=size, replace=False)
        return sorted(drawn.tolist())

    def message(
        self,
        weights: Tensor,
        silo: int,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        noise_factor: Tensor | None = None,
    ) -> Tensor:
        """The silo's noisy message of the plan's `kind`; `noise_factor` (G,) scales its noise."""
        noise = self.noise[silo][kind]
        if noise_factor is not None:
            noise = noise * noise_factor
        return self.messages.message(
            weights,
            silo,
            self.records[silo][kind],
            self.clip,
            noise,
            round=round,
            kind=kind,
            previous=previous,
            sampler=self.releases[silo][kind].sampler,
            clipping=self.releases[silo][kind].clipping,
        )

    def mean_message(
        self,
        weights: Tensor,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        noise_factor: Tensor | None = None,
    ) -> Tensor:
        """What the server makes of the messages of S_r, (G, d): their mean, by the `summation` protocol if any.

        With Gaussian messages it makes no difference to the result whether the server sees each message or only their
        sum; it does to what is private, which the plan says.
        """
        if self.summation is not None:
            return self.summation(self, weights, round, kind, previous, noise_factor)
        if kind not in self.together:
            return self.average(round, lambda silo: self.message(weights, silo, round, kind, previous, noise_factor))
        cohort, first = self.silos(round), self.releases[0][kind]
        noise = [self.noise[silo][kind] for silo in cohort]
        if noise_factor is not None:
            noise = [scale * noise_factor for scale in noise]
        total = self.messages.total(
            weights,
            cohort,
            first.drawn,
            self.clip,
            noise,
            round=round,
            kind=kind,
            previous=previous,
            sampler=first.sampler,
        )
        return total if self.server_update == "sum" else total / len(cohort)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        """The silo's own model after its local steps; see `Messages.local_model`."""
        return self.messages.local_model(
            weights,
            silo,
            self.records[silo][kind],
            self.clip,
            self.noise[silo][kind],
            self.stepsize[:, 0],
            round=round,
            kind=kind,
        )

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        """(1/M_r) Σ over S_r of `send(silo)`; the plain sum under `server_update: sum` where `add_up` allows it."""
        cohort = self.silos(round)
        total = send(cohort[0])
        for silo in cohort[1:]:
            total = total + send(silo)
        return total if add_up and self.server_update == "sum" else total / len(cohort)

    def keep(self, points: Tensor) -> None:
        """Let all points but those marked in `points` (G,) leave the stack."""
        self.stepsize, self.clip = self.stepsize[points], self.clip[points]
        keep = getattr(self.summation, "keep", None)  # a protocol may hold numbers of every point
        if keep is not None:
            keep(points)
        self.noise = [{kind: noise[points] for kind, noise in kinds.items()} for kinds in self.noise]
