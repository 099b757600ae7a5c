"""The shuffled sum P_vec as the protocol by which a federation adds up: one vector a record (Algorithms 7 to 10)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from silodp.federation.rng import Streams
from silodp.federation.server import SiloFederation
from silodp.federation.shuffled_sum import vector_sum
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.shuffling.p_vec import SumParameters

_LEAST_RANGE = 1e-200  # of a coordinate that can be cut into steps; what is bounded by less is sent as zero


class ShuffledSummation:
    """`Summation` that sends each record's clipped gradient, or difference of two, as a participant of P_vec.

    Args:
        parameters: for each kind of message, those of each point of the stack, for M·K participants.
        streams: the tree that rounding and noise bits are drawn from.
    """

    def __init__(self, parameters: Mapping[str, Sequence[SumParameters]], streams: Streams):
        self.parameters = {kind: list(points) for kind, points in parameters.items()}
        self.streams = streams

    def __call__(
        self,
        federation: SiloFederation,
        weights: Tensor,
        round: int,
        kind: str,
        previous: Tensor | None,
        noise_factor: Tensor | None,
    ) -> Tensor:
        """The estimate (G, d) of the mean over the silos of S_r (their sum under `server_update: sum`).

        Vectors are scaled down to norm L, differences to 2L, times `noise_factor` if given, and that is the range that
        is cut into levels: it follows from what the server knows, and noise that grows with it is as private.
        """
        cohort = federation.silos(round)
        release = federation.releases[cohort[0]][kind]
        vectors = [
            federation.messages.record_gradients(
                weights,
                silo,
                federation.records[silo][kind],
                federation.clip,
                round=round,
                kind=kind,
                previous=previous,
                sampler=federation.releases[silo][kind].sampler,
            )
            for silo in cohort
        ]
        bound = federation.clip.double() * release.gradients
        if noise_factor is not None:
            bound = bound * noise_factor.double()
        generator = self.streams.generator("shuffled sum", round, kind)
        stacked, bound = torch.cat(vectors), bound.clamp(min=_LEAST_RANGE)
        total = vector_sum(stacked, bound, self.parameters[kind], generator).to(weights)
        mean = total / len(vectors[0])
        return mean if federation.server_update == "sum" else mean / len(cohort)

    def keep(self, points: Tensor) -> None:
        """Let all points but those marked in `points` (G,) leave the stack."""
        kept = points.tolist()
        self.parameters = {
            kind: [one for one, stays in zip(numbers, kept, strict=True) if stays]
            for kind, numbers in self.parameters.items()
        }


def shuffled_summation(plans: Sequence[PrivacyPlan], dimension: int, streams: Streams) -> ShuffledSummation:
    """The protocol of a stack, from each point's plan; ValueError where a plan's sums are for another d."""
    parameters: dict[str, list[SumParameters]] = {}
    for plan in plans:
        sums = plan.shuffled_sum
        if sums is None or sums.dimension != dimension:
            found = None if sums is None else sums.dimension
            raise ValueError(f"dimension = {found}: must be {dimension}, the model's, in each shuffled sum")
        for kind, numbers in sums.kinds:
            parameters.setdefault(kind, []).append(numbers)
    return ShuffledSummation(parameters, streams)
