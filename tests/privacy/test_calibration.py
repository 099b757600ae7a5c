"""Calibrated noise is private and hardly more than needed."""

import dp_accounting as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.privacy.accounting.accountant import upper_epsilon
from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.privacy.calibration import noise_multiplier


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (18.0, 1e-9)])
def test_gaussian_noise_is_the_analytic_one(epsilon: float, delta: float) -> None:
    exact = 1 / gaussian_mu(epsilon, delta)
    found = noise_multiplier(dp.GaussianDpEvent, epsilon, delta, tolerance=1e-6)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-6)


@given(st.floats(0.3, 30), st.integers(1, 200), st.integers(1, 30))
@settings(deadline=None, max_examples=8)
def test_noise_is_on_the_private_side_and_tight(epsilon: float, batch: int, rounds: int) -> None:
    def event(noise: float) -> dp.DpEvent:
        return dp.SelfComposedDpEvent(dp.SampledWithReplacementDpEvent(200, batch, dp.GaussianDpEvent(noise)), rounds)

    found = noise_multiplier(event, epsilon, 1e-5, tolerance=1e-3)
    assert upper_epsilon(event(found), 1e-5) <= epsilon
    assert upper_epsilon(event(found / 1.01), 1e-5) > epsilon


def test_a_scale_can_be_calibrated_for_two_kinds_of_messages() -> None:
    def event(noise: float) -> dp.DpEvent:
        return dp.ComposedDpEvent(
            [
                dp.SelfComposedDpEvent(dp.SampledWithReplacementDpEvent(300, 60, dp.GaussianDpEvent(noise)), 5),
                dp.SelfComposedDpEvent(dp.SampledWithReplacementDpEvent(300, 30, dp.GaussianDpEvent(2 * noise)), 5),
            ]
        )

    found = noise_multiplier(event, 2.0, 1e-5)
    assert 1.99 < upper_epsilon(event(found), 1e-5) <= 2.0


def test_what_cannot_be_reached_is_said() -> None:
    fixed = dp.GaussianDpEvent(1.0)
    with pytest.raises(ValueError, match="not reached at any noise multiplier"):
        noise_multiplier(lambda noise: dp.ComposedDpEvent([fixed, dp.GaussianDpEvent(noise)]), 0.1, 1e-5)
    with pytest.raises(ValueError, match="reached with any noise multiplier"):
        noise_multiplier(lambda noise: fixed, 100.0, 1e-5)
    with pytest.raises(ValueError, match="epsilon = 0: must be positive"):
        noise_multiplier(dp.GaussianDpEvent, 0, 1e-5)
