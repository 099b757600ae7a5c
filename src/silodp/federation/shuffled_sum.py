"""The shuffled sums P_1D and P_vec, simulated (non-convex paper, Algorithms 4 and 5, corrected).

Read: inputs of P_vec are shifted by L into [0, 2L], so P_1D gets the range 2L, and N·L is taken off its sum. (Printed:
range L, which overflows the g + b bits, and L off.) What the server learns is the number of ones in each coordinate;
`vector_sum` draws it from binomial sums.
The stack's G points share the random numbers, so a point's result does not depend on who else is in the stack.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from silodp.privacy.shuffling.p_vec import SumParameters


def scalar_sum(
    inputs: Tensor, width: Tensor, parameters: Sequence[SumParameters], generator: np.random.Generator
) -> Tensor:
    """P_1D in every coordinate: an unbiased estimate of the sum of inputs in [0, width].

    Args:
        inputs: (N, G, d); values outside [0, width] are moved to its ends.
        width: (G,), positive.
        parameters: of each of the G points; all for N participants.
        generator: the stream of this sum.

    Returns:
        (G, d), in double precision, on the inputs' device.
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
    """P_vec: an unbiased, private estimate of the sum of vectors of norm at most L; private through `SumParameters`.

    Args:
        messages: (N, G, d); vectors that are longer than L are scaled down to it.
        clip: L of each point, (G,).
        parameters: of each of the G points.
        generator: the stream of this sum.

    Returns:
        (G, d), in double precision. Its mean over the N vectors is this over N.
    """
    total = scalar_sum(*_shifted(messages, clip), parameters, generator)
    return total - messages.shape[0] * clip.to(total)[:, None]


def _shifted(messages: Tensor, clip: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors scaled to norm ≤ L and moved into [0, 2L], and the width 2L; in double precision."""
    if clip.shape != messages.shape[1:2]:
        raise ValueError(f"clip of shape {tuple(clip.shape)}: must be one for each of {messages.shape[1]} points")
    if not bool(torch.isfinite(messages).all()):
        raise ValueError("messages: must be finite")
    bound = clip.to(messages.device).double()
    norms = messages.double().norm(dim=2)
    scale = torch.clamp(bound / torch.clamp(norms, min=torch.finfo(torch.float64).tiny), max=1.0)
    return messages.double() * scale[..., None] + bound[:, None], 2 * bound


def _scaled(inputs: Tensor, width: Tensor, parameters: Sequence[SumParameters]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in units of their point's rounding step, (N, G, d) in [0, g], and the widths (G,)."""
    if inputs.ndim != 3 or width.shape != inputs.shape[1:2] or len(parameters) != inputs.shape[1]:
        raise ValueError(
            f"inputs of shape {tuple(inputs.shape)}: must be (N, G, d), with G widths and parameters; "
            f"there are {len(width)} and {len(parameters)}"
        )
    for point in parameters:
        if point.participants != inputs.shape[0]:
            raise ValueError(f"participants = {point.participants}: must be the {inputs.shape[0]} that send")
    ranges = width.double().cpu().numpy()
    if not (ranges > 0).all():
        raise ValueError(f"width = {ranges.min()}: must be positive")
    levels = np.array([point.levels for point in parameters], dtype=float)[:, None]
    return np.clip(inputs.double().cpu().numpy() * (levels / ranges[:, None]), 0.0, levels), ranges


def _rounded(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Each value (N, G, d) to one of the two integers around it, with its own value as mean."""
    whole = np.floor(values)
    uniform = generator.random((values.shape[0], 1, values.shape[2]))
    return whole + (uniform < values - whole)


def _estimate(ones: np.ndarray, width: np.ndarray, parameters: Sequence[SumParameters], device: torch.device) -> Tensor:
    expected = np.array([point.trials * point.chance for point in parameters])[:, None]
    step = np.array([point.levels for point in parameters], dtype=float)[:, None]
    return torch.from_numpy((ones - expected) * (width[:, None] / step)).to(device)
