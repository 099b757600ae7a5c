"""Each witness of ∞ is an event that one neighbour makes and the other does not."""

import numpy as np
import pytest

from silodp.atlas.witnesses import WITNESSES


@pytest.mark.parametrize("name", WITNESSES)
def test_event_tells_neighbours_apart(name):
    random = np.random.default_rng(5)
    for neighbour in (0, 1):
        assert all(WITNESSES[name].event(neighbour, random) == bool(neighbour) for _ in range(200))
