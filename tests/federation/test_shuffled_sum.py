"""The simulated shuffled sums: unbiased, of the stated variance, and of one law bit by bit and by binomial sums."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from small_sums import analyse, coordinate_law, shuffle, vector_messages

from silodp.federation.rng import Streams
from silodp.federation.shuffled_sum import vector_sum
from silodp.privacy.shuffling.p_vec import SumParameters

STREAMS = Streams(11)
CLIP = torch.tensor([1.5])


def vectors(participants: int, dimension: int, length: float) -> torch.Tensor:
    rows = STREAMS.generator("vectors").standard_normal((participants, 1, dimension))
    return torch.from_numpy(length * rows / np.linalg.norm(rows, axis=2, keepdims=True))


def ones(estimates: np.ndarray, parameters: SumParameters, clip: float) -> np.ndarray:
    """How many bits were 1, from estimates of the sum."""
    counts = (estimates + parameters.participants * clip) * parameters.levels / (2 * clip)
    counts += parameters.trials * parameters.chance
    assert np.allclose(counts, np.round(counts), atol=1e-6)
    return np.round(counts).astype(int)


@pytest.mark.parametrize("way", ["binomial", "bitwise"])
def test_both_ways_have_the_enumerated_law(way):
    """Chi-square of 3,000 draws against the convolution of all bits; both coordinates."""
    parameters = SumParameters(3, levels=4, noise_bits=5, chance=0.3)
    messages = vectors(3, 2, 1.2)
    generator = STREAMS.generator("law", way)
    drawn = []
    for _ in range(3000):
        if way == "binomial":
            drawn.append(vector_sum(messages, CLIP, [parameters], generator))
        else:
            bits = vector_messages(messages, CLIP, parameters, generator)
            drawn.append(analyse(shuffle(bits, generator), CLIP, parameters))
    counts = ones(torch.stack(drawn)[:, 0].numpy(), parameters, 1.5)
    for j in range(2):
        law = coordinate_law(messages[:, 0, j].numpy() + 1.5, parameters, 3.0)
        seen = np.bincount(counts[:, j], minlength=len(law))
        kept = law * 3000 >= 5
        assert seen[law == 0].sum() == 0
        wanted, found = np.append(law[kept], law[~kept].sum()) * 3000, np.append(seen[kept], seen[~kept].sum())
        statistic = ((found - wanted) ** 2 / np.maximum(wanted, 1e-9)).sum()
        assert chi2.sf(statistic, len(wanted) - 1) > 1e-4


def test_a_point_does_not_depend_on_its_stack():
    points = [SumParameters(5, 8, 3), SumParameters(5, 16, 40, 0.25)]
    clip = torch.tensor([1.0, 2.0])
    messages = torch.randn(5, 2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    both = vector_sum(messages, clip, points, STREAMS.generator("stack"))
    for g in range(2):
        alone = vector_sum(messages[:, g : g + 1], clip[g : g + 1], points[g : g + 1], STREAMS.generator("stack"))
        assert torch.equal(alone[0], both[g])
    assert both.shape == (2, 7)


def test_longer_vectors_are_scaled_to_the_bound():
    """Privacy is stated for norm ≤ L, so the participant enforces it; single precision may exceed it by a hair."""
    parameters = SumParameters(2, levels=64, noise_bits=1)
    long = torch.tensor([[[30.0, 40.0]], [[0.3, 0.4]]])
    scaled = torch.tensor([[[0.9, 1.2]], [[0.3, 0.4]]])
    first = vector_sum(long, CLIP, [parameters], STREAMS.generator("long"))
    assert torch.allclose(first, vector_sum(scaled, CLIP, [parameters], STREAMS.generator("long")), atol=2 * 3 / 64)
    assert abs(float(first[0, 0]) - 1.2) <= 3 / 64 * 3
