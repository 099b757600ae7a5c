"""The shuffled sum P_vec as the protocol by which a federation adds up: one vector a record (Algorithm 7)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from silodp.algorithms.base import Federation
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.shuffle_sums import SumParameters
from silodp.rng import Streams
from silodp.shuffle import vector_sum


class ShuffledSummation:
    """`Summation` that sends each record's clipped gradient as a participant of P_vec.

    Args:
        parameters: of each point of the stack, for M·K participants.
        streams: the tree that rounding and noise bits are drawn from.
    """

    def __init__(self, parameters: Sequence[SumParameters], streams: Streams):
        self.parameters, self.streams = list(parameters), streams

    def __call__(
        self,
        federation: Federation,
        weights: Tensor,
        round: int,
        kind: str,
        previous: Tensor | None,
        noise_factor: Tensor | None,
    ) -> Tensor:
        """The estimate (G, d) of the mean over the silos of S_r (their sum under `server_update: sum`)."""
        if noise_factor is not None or previous is not None:
            raise ValueError(f"summation: 'shuffled': must be ideal for messages of kind {kind!r}")
        taking_part = federation.silos(round)
        vectors = [
            federation.messages.record_gradients(
                weights,
                silo,
                federation.records[silo][kind],
                federation.clip,
                round=round,
                kind=kind,
                sampler=federation.releases[silo][kind].sampler,
            )
            for silo in taking_part
        ]
        generator = self.streams.generator("shuffled sum", round, kind)
        total = vector_sum(torch.cat(vectors), federation.clip, self.parameters, generator).to(weights)
        mean = total / len(vectors[0])
        return mean if federation.server_update == "sum" else mean / len(taking_part)

    def keep(self, points: Tensor) -> None:
        """Let all points but those marked in `points` (G,) leave the stack."""
        self.parameters = [one for one, kept in zip(self.parameters, points.tolist(), strict=True) if kept]


def shuffled_summation(plans: Sequence[PrivacyPlan], dimension: int, streams: Streams) -> ShuffledSummation:
    """The protocol of a stack, from each point's plan; ValueError where a plan's sums are for another d."""
    parameters = []
    for plan in plans:
        sums = plan.shuffled_sum
        if sums is None or sums.dimension != dimension:
            found = None if sums is None else sums.dimension
            raise ValueError(f"dimension = {found}: must be {dimension}, the model's, in each shuffled sum")
        parameters.append(sums.parameters)
    return ShuffledSummation(parameters, streams)
