"""Draws of noise: the same however threads share them, and a stream for each name."""

import numpy as np
import pytest
import torch
from scipy import stats

from silodp.federation.draws import NOISE_ROWS, device_normals, standard_normals
from silodp.models.threads import use_threads
from silodp.streams import Streams

STREAMS = Streams(5).child("noise")


@pytest.mark.parametrize("rows", [1, NOISE_ROWS, 3 * NOISE_ROWS + 5])
def test_threads_share_blocks_and_change_no_draw(rows):
    shape, dtype = (rows, 400), np.dtype("float32")
    alone = standard_normals(STREAMS, 0, 1, "step", shape, dtype)
    use_threads(2)
    try:
        for _ in range(20):
            assert np.array_equal(standard_normals(STREAMS, 0, 1, "step", shape, dtype), alone)
    finally:
        use_threads(1)
    assert stats.kstest(alone.ravel(), "norm").pvalue > 1e-4
    first = standard_normals(STREAMS, 0, 1, "step", (1, 400), dtype)
    assert np.array_equal(first, alone[:1]), "the first row does not depend on how many there are"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_row_of_noise_stands_twice(dtype):
    """Over blocks, silos, rounds and kinds."""
    names = [(0, 0, "step"), (1, 0, "step"), (0, 1, "step"), (0, 0, "other")]
    draws = [standard_normals(STREAMS, *name, (200, 3), np.dtype(dtype)) for name in names]
    assert len(np.unique(np.concatenate(draws), axis=0)) == 800


def test_a_devices_draws_are_normal_and_named_by_silo_round_and_kind():
    like = torch.zeros(3, 200, dtype=torch.float32)
    names = [(0, 1, "step"), (1, 1, "step"), (0, 2, "step"), (0, 1, "gradient")]
    draws = [device_normals(STREAMS, *name, 25, like) for name in names]
    assert {(one.shape, one.dtype) for one in draws} == {((25, 200), torch.float32)}
    assert torch.equal(draws[0], device_normals(STREAMS, *names[0], 25, like))
    assert stats.kstest(torch.stack(draws).ravel().numpy(), "norm").pvalue > 1e-4
    correlations = np.corrcoef([one.ravel().numpy() for one in draws])
    assert abs(correlations - np.eye(4)).max() < 5 / np.sqrt(25 * 200)
