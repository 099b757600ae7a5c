"""P_vec of few participants, bit by bit and by enumeration: what its simulation and its proven δ are held against."""

import math

import numpy as np
from scipy.stats import binom
from torch import Tensor

from silodp.federation.shuffled_sum import _estimate, _rounded, _scaled, _shifted
from silodp.privacy.shuffling.p_vec import SumParameters


def vector_messages(
    messages: Tensor, clip: Tensor, parameters: SumParameters, generator: np.random.Generator
) -> np.ndarray:
    """The bits that each participant sends, (N, G, d, g + b) of 0 and 1, one `SumParameters` for all points."""
    values, _ = _scaled(*_shifted(messages, clip), [parameters] * len(clip))
    noise = generator.binomial(parameters.noise_bits, parameters.chance, size=values.shape)
    ones = _rounded(values, generator) + noise
    return (np.arange(parameters.levels + parameters.noise_bits) < ones[..., None]).astype(np.uint8)


def shuffle(bits: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The bits (N, G, d, g + b) in random order within each labelled coordinate: (G, d, N(g + b))."""
    points, dimension = bits.shape[1:3]
    return generator.permuted(np.moveaxis(bits, 0, 2).reshape(points, dimension, -1), axis=2)


def analyse(shuffled: np.ndarray, clip: Tensor, parameters: SumParameters) -> Tensor:
    """The server's estimate (G, d) of the sum of vectors from shuffled bits (G, d, N(g + b))."""
    ones = shuffled.sum(2, dtype=np.int64)
    width = 2 * clip.double()
    total = _estimate(ones, width.cpu().numpy(), [parameters] * len(clip), clip.device)
    return total - parameters.participants * clip.to(total)[:, None]


def coordinate_law(inputs: np.ndarray, parameters: SumParameters, width: float) -> np.ndarray:
    """Law (N(g + b) + 1,) of what the server learns of one coordinate: how many of all bits are 1. For small cases.

    Args:
        inputs: (N,) in [0, width].
    """
    assert np.shape(inputs) == (parameters.participants,)
    scaled = np.asarray(inputs, dtype=float) * parameters.levels / width
    assert ((scaled >= 0) & (scaled <= parameters.levels)).all()
    law = binom.pmf(np.arange(parameters.trials + 1), parameters.trials, parameters.chance)
    for value in scaled:
        whole = min(math.floor(value), parameters.levels - 1)
        law = np.convolve(law, [1 - (value - whole), value - whole])
        law = np.concatenate((np.zeros(whole), law, np.zeros(parameters.levels - 1 - whole)))
    return law


def enumerated_delta(
    first: np.ndarray, second: np.ndarray, parameters: SumParameters, epsilon: float, clip: float = 1.0
) -> float:
    """δ between two inputs (N, d) of P_vec by enumeration of all sums; d at most 3. The larger of the two orders."""
    assert first.shape == second.shape
    assert first.ndim == 2
    assert 1 <= first.shape[1] <= 3
    joint = []
    for values in (first, second):
        law = np.ones(())
        for column in values.T:
            law = np.multiply.outer(law, coordinate_law(column + clip, parameters, 2 * clip))
        joint.append(law)
    p, q = joint
    weight = math.exp(epsilon)
    return float(max(np.maximum(p - weight * q, 0).sum(), np.maximum(q - weight * p, 0).sum()))
