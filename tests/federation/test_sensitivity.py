"""What a record of any value can change: by at most what the plan's sensitivity says, in clipped sums and steps."""

import pytest
from plants import PLANTS
from sensitivity import broken_bounds

from silodp.federation.messages import Messages

OF_CLIPPING = ["no clipping", "clipped to 2L", "each tensor clipped by itself", "only the mean clipped"]
OF_CLIPPING += ["NaN of a record passed on"]


class Longer(Messages):
    """A thousandth above the bound."""

    def clipped_sum(self, points, silos, drawn):
        return super().clipped_sum(points, silos, drawn) * 1.001


class LongerSteps(Messages):
    def local_steps(self, start, silos, drawn, noise):
        return start.weights + (super().local_steps(start, silos, drawn, noise) - start.weights) * 1.001


def test_a_record_adds_at_most_its_bound_to_a_sum():
    assert not list(broken_bounds(Messages))


@pytest.mark.parametrize("mechanism", [Longer, LongerSteps, *map(PLANTS.get, OF_CLIPPING)])
def test_what_breaks_the_bound_is_found(mechanism):
    assert list(broken_bounds(mechanism))
