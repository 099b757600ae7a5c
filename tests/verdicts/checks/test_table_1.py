"""The amplification that Table 1 of the check-ins paper sets beside its theorems."""

import math

import pytest

from silodp.verdicts.checks.table_1 import DELTA, subsampled


@pytest.mark.parametrize(("n", "epsilon0"), [(1, 0.5), (10, 1.0), (1e4, 0.1)])
def test_subsampled_steps_compose_by_the_advanced_bound_of_their_step(n, epsilon0):
    """ε√(2n ln 1/δ) + nε(e^ε − 1)/(e^ε + 1), with e^ε = 1 + (e^ε0 − 1)/n."""
    grown = 1 + (math.exp(epsilon0) - 1) / n
    mean = n * math.log(grown) * (grown - 1) / (grown + 1)
    assert subsampled(n, epsilon0) == pytest.approx(math.sqrt(-2 * n * math.log(DELTA)) * math.log(grown) + mean)
