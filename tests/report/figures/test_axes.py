"""Axes that figures share."""

import math

import pytest

from silodp.report.figures.axes import dodged


@pytest.mark.parametrize(
    ("epsilons", "apart"), [((5,), 0.04), ((1, 10), 0.04), ((10, 1, 100), 0.08), ((10**1.01, 1, 10), 0.006)]
)
def test_curves_stand_symmetrically_apart_and_nearer_than_two_epsilons(epsilons, apart):
    for count in (2, 5):
        factors = dodged(epsilons, count)
        assert factors[0] * factors[-1] == pytest.approx(1)
        assert math.log10(factors[-1] / factors[0]) == pytest.approx(apart)
    assert dodged(epsilons, 1) == [1.0]
