"""The shuffled sums P_1D and P_vec, simulated (non-convex paper, Algorithms 4 and 5, corrected).

Inputs of P_vec are shifted by L into [0, 2L], so P_1D gets the range 2L, and N·L is taken off its sum. (Printed: range
L, which overflows the g + b bits, and L off.) The G points share the random numbers.
"""

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from silodp.federation.interface import Query
from silodp.federation.simulated import SiloFederation
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.shuffling.p_vec import SumParameters
from silodp.streams import Streams

_LEAST_RANGE = 1e-200  # of a coordinate that can be cut into steps; what is bounded by less is sent as zero


def scalar_sum(
    inputs: Tensor, width: Tensor, parameters: Sequence[SumParameters], generator: np.random.Generator
) -> Tensor:
    """P_1D in every coordinate: an unbiased estimate (G, d), in double precision, of the sum of `inputs` (N, G, d).

    Inputs are moved into [0, width]; `parameters` are each of the G points', for N participants.
    """
    values, ranges = _scaled(inputs, width, parameters)
    rounded = _rounded(values, generator)
    # One uniform number a coordinate and the inverse of each point's law: common random numbers for all points.
    uniform = generator.random(inputs.shape[2])
    noise = np.stack([binom.ppf(uniform, point.trials, point.chance) for point in parameters])
    return _estimate(rounded.sum(0) + noise, ranges, parameters, inputs.device)


def vector_sum(
    messages: Tensor, clip: Tensor, parameters: Sequence[SumParameters], generator: np.random.Generator
) -> Tensor:
    """P_vec: an unbiased, private estimate (G, d) of the sum of N vectors (N, G, d) of norm at most L = `clip` (G,).

    Longer vectors are scaled down to L. `parameters` are each point's, as in `scalar_sum`.
    """
    total = scalar_sum(*_shifted(messages, clip), parameters, generator)
    return total - messages.shape[0] * clip.to(total)[:, None]


def _shifted(messages: Tensor, clip: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors scaled to norm ≤ L and moved into [0, 2L], and the width 2L; in double precision."""
    bound = clip.to(messages.device).double()
    norms = messages.double().norm(dim=2)
    scale = torch.clamp(bound / torch.clamp(norms, min=torch.finfo(torch.float64).tiny), max=1.0)
    return messages.double() * scale[..., None] + bound[:, None], 2 * bound


def _scaled(inputs: Tensor, width: Tensor, parameters: Sequence[SumParameters]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in units of their point's rounding step, (N, G, d) in [0, g], and the widths (G,)."""
    for point in parameters:
        if point.participants != inputs.shape[0]:
            raise ValueError(f"participants = {point.participants}: must be the {inputs.shape[0]} that send")
    ranges = width.double().cpu().numpy()
    levels = np.array([point.levels for point in parameters], dtype=float)[:, None]
    return np.clip(inputs.double().cpu().numpy() * (levels / ranges[:, None]), 0.0, levels), ranges


def _rounded(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Each value (N, G, d) to one of the two integers around it, with its own value as mean."""
    whole = np.floor(values)
    return whole + (generator.random((values.shape[0], 1, values.shape[2])) < values - whole)


def _estimate(ones: np.ndarray, width: np.ndarray, parameters: Sequence[SumParameters], device: torch.device) -> Tensor:
    expected = np.array([point.trials * point.chance for point in parameters])[:, None]
    step = np.array([point.levels for point in parameters], dtype=float)[:, None]
    return torch.from_numpy((ones - expected) * (width[:, None] / step)).to(device)


class ShuffledSummation:
    """`Summation` that sends each record's clipped gradient, or difference, as a participant of P_vec.

    `parameters` are those of each point of the stack by kind of message, for M·K participants.
    """

    def __init__(self, parameters: Mapping[str, Sequence[SumParameters]], streams: Streams):
        self.parameters = {kind: list(points) for kind, points in parameters.items()}
        self.streams = streams

    def __call__(self, federation: SiloFederation, query: Query) -> Tensor:
        """The estimate (G, d) of the mean over the silos of S_r (their sum under `server_update: sum`).

        Vectors are scaled to norm L (differences 2L) times `noise_factor`: the range that is cut into levels.
        """
        cohort, kind = federation.silos(query.round), query.kind
        vectors = [
            federation.messages.record_gradients(query, silo, federation.releases[silo][kind], federation.host_clip)
            for silo in cohort
        ]
        bound = federation.clip.double() * federation.releases[cohort[0]][kind].gradients
        if query.noise_factor is not None:
            bound = bound * query.noise_factor.double()
        generator = self.streams.generator("shuffled sum", query.round, kind)
        stacked, bound = torch.cat(vectors), bound.clamp(min=_LEAST_RANGE)
        mean = vector_sum(stacked, bound, self.parameters[kind], generator).to(query.weights) / len(vectors[0])
        return mean if federation.server_update == "sum" else mean / len(cohort)

    def keep_points(self, points: Tensor) -> None:
        """Let all points but those marked in `points` (G,) leave the stack."""
        kept = points.tolist()
        self.parameters = {kind: list(compress(numbers, kept)) for kind, numbers in self.parameters.items()}


def shuffled_summation(plans: Sequence[PrivacyPlan], dimension: int, streams: Streams) -> ShuffledSummation:
    """The protocol of a stack, from each point's plan; ValueError where a plan's sums are for another d."""
    parameters: dict[str, list[SumParameters]] = {}
    for plan in plans:
        sums = plan.shuffled_sum
        if sums is None or sums.dimension != dimension:
            given = None if sums is None else sums.dimension
            raise ValueError(f"dimension = {given}: must be {dimension}, the model's, in each shuffled sum")
        for kind, numbers in sums.kinds:
            parameters.setdefault(kind, []).append(numbers)
    return ShuffledSummation(parameters, streams)
