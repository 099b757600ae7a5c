"""Local SGD seen at the end of each round: below what all steps show, above what linear losses show."""

import pytest
from dp_accounting import dp_event

from silodp.privacy.accounting.accountant import delivered_epsilon, end_of_round_epsilon
from silodp.privacy.accounting.mechanisms import gaussian_epsilon


def test_one_step_a_round_is_what_is_seen():
    one = dp_event.SampledWithReplacementDpEvent(50, 1, dp_event.GaussianDpEvent(1.5))
    all_steps = delivered_epsilon(dp_event.SelfComposedDpEvent(one, 8), 1e-4)
    found = end_of_round_epsilon(1, 8, 50, 1.5, 1e-4)
    assert (found.lower, found.upper) == pytest.approx((all_steps.lower, all_steps.upper), rel=1e-3)


@pytest.mark.parametrize("noise_multiplier", [0.4, 1.0, 4.0])
def test_the_bracket_has_two_ends(noise_multiplier):
    found = end_of_round_epsilon(20, 5, 60, noise_multiplier, 1e-4)
    assert 0 < found.lower < found.upper
    assert found.lower <= found.estimate <= found.upper


def test_a_record_in_every_step_of_its_silo_is_a_plain_gaussian():
    """n = 1: all K steps draw it, so a round shows N(K, K z²) against N(0, K z²): μ = √K/z, with no gap at all."""
    steps, rounds, z = 9, 4, 6.0
    exact = gaussian_epsilon(1e-5, (steps * rounds) ** 0.5 / z)
    found = end_of_round_epsilon(steps, rounds, 1, z, 1e-5)
    assert found.lower == pytest.approx(exact, rel=2e-3)
    assert found.upper == pytest.approx(exact, rel=2e-3)


def test_fewer_looks_show_less():
    """The same 100 steps in fewer rounds: linear losses show less of them."""
    lowers = [end_of_round_epsilon(steps, 100 // steps, 60, 0.5, 1e-4).lower for steps in (1, 5, 25)]
    assert lowers == sorted(lowers, reverse=True)
