"""The silos of an experiment in one process: the federation that is trained on."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from silodp.federation.interface import Federation, Query
from silodp.federation.messages import Messages
from silodp.federation.plan_check import PlanCheck
from silodp.federation.prox import Prox, no_prox
from silodp.models import gpu
from silodp.privacy.plan import PrivacyPlan
from silodp.streams import Streams

# Records of all silos together up to which a CPU makes a round's messages in one pass.
TOGETHER = 1024

# A protocol for the mean (G, d) of all silos' messages in a round.
Summation = Callable[["SiloFederation", Query], Tensor]


class SiloFederation(Federation):
    """The silos of an experiment, for a stack of points: the federation that is trained on.

    `plans[g][i]` is the plan of silo i at point g; all points share batch sizes. `stepsize` η and `clip` L are (G,).
    `cohort` is M, or the values of a random M_r, each as likely. `server_update` is "mean", or "sum" as in the convex
    paper's released programs. `summation` replaces the average of the messages.
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
        self.summation, self.plans = summation, plans
        self.messages, self.stepsize, self.clip, self.prox = messages, stepsize[:, None], clip, prox
        # On the CPU, as the noise is: what a plan is held against, without waiting for a device.
        self.host_clip = clip.cpu()
        self.M, self.streams, self.server_update = cohort, streams, server_update
        self.releases = [{release.kind: release for release in plan.releases} for plan in plans[0]]
        self.noise = [
            {kind: self._scaled([plan[silo][kind].noise for plan in plans]) for kind in releases}
            for silo, releases in enumerate(self.releases)
        ]
        # Kinds of messages that are made together.
        self.together = frozenset(kind for kind in self.releases[0] if self._small(kind))

    def _small(self, kind: str) -> bool:
        """Whether a round's messages of this kind are so small that they are made together, and alike enough."""
        kinds, silos = [releases[kind] for releases in self.releases if kind in releases], len(self.releases)
        shapes = {(release.records_drawn, release.sampler, release.clipping) for release in kinds}
        drawn, sampler, clipping = next(iter(shapes))
        alike = len(kinds) == silos and len(shapes) == 1 and sampler != "all" and clipping == "record"
        plain = not any(release.mixing or release.joint for release in kinds)
        few = silos * drawn <= TOGETHER or not gpu.runs_on_host(self.clip)
        return plain and alike and silos > 1 and few

    def _scaled(self, noise: list[float]) -> Tensor:
        """Noise in units of the clip → noise; a point without noise may have an infinite clip, and 0·∞ is NaN."""
        units = torch.tensor(noise, dtype=self.clip.dtype)
        return torch.where(units > 0, units * self.host_clip, 0)

    def hold_to_plans(self) -> PlanCheck:
        """From now on raise BrokenPlan where a silo is asked for what its plan does not have; for one whole run."""
        self.messages.check = PlanCheck(self.plans, self.host_clip, self.noise)
        return self.messages.check

    def silos(self, round: int) -> list[int]:
        """S_r: M_r distinct silos drawn uniformly, in ascending order; M_r = M unless it is random (Assumption 2)."""
        total, size = len(self.messages.silos), self.M
        if not isinstance(size, int):
            size = int(self.streams.generator("participants", *size, round).choice(size))
        if total == size:
            return list(range(total))
        return sorted(self.streams.generator("silos", size, round).choice(total, size=size, replace=False).tolist())

    def answer(self, query: Query, silo: int) -> Tensor:
        noise, release = self.noise[silo][query.kind], self.releases[silo][query.kind]
        return self.messages.message(query, silo, release, self.host_clip, noise)

    def mean(self, query: Query) -> Tensor:
        """The mean of the answers over S_r, by the `summation` protocol if any."""
        if self.summation is not None:
            return self.summation(self, query)
        if query.kind not in self.together or (query.apart and gpu.runs_on_host(query.weights)):
            return super().mean(query)
        cohort = self.silos(query.round)
        noise = [self.noise[silo][query.kind] for silo in cohort]
        total = self.messages.total(query, cohort, self.releases[0][query.kind], self.host_clip, noise)
        return total if self.server_update == "sum" else total / len(cohort)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        query, release, noise = Query(weights, round, kind), self.releases[silo][kind], self.noise[silo][kind]
        return self.messages.local_model(query, silo, release, self.host_clip, noise, self.stepsize[:, 0])

    def mean_local_model(self, weights: Tensor, round: int, kind: str = "step") -> Tensor:
        """As in `Federation`; on a device the steps of all silos are taken side by side."""
        if gpu.runs_on_host(weights):
            return super().mean_local_model(weights, round, kind)
        cohort = self.silos(round)
        releases, noise = [self.releases[silo][kind] for silo in cohort], [self.noise[silo][kind] for silo in cohort]
        query = Query(weights, round, kind)
        return self.messages.local_models(query, cohort, releases, self.host_clip, noise, self.stepsize[:, 0]).mean(0)

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        cohort = self.silos(round)
        total = send(cohort[0])
        for silo in cohort[1:]:
            total = total + send(silo)
        return total if add_up and self.server_update == "sum" else total / len(cohort)

    def keep_points(self, points: Tensor) -> None:
        """Let all points but those marked in `points` (G,) leave the stack."""
        self.stepsize, self.clip = self.stepsize[points], self.clip[points]
        keep = getattr(self.summation, "keep_points", None)  # a protocol may hold numbers of every point
        if keep is not None:
            keep(points)
        if self.messages.check is not None:
            self.messages.check.keep_points(points)
        points = points.to(self.host_clip.device)
        self.host_clip = self.host_clip[points]
        self.noise = [{kind: noise[points] for kind, noise in kinds.items()} for kinds in self.noise]
