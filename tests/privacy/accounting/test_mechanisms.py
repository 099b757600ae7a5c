"""Closed forms against high-precision arithmetic, against dp-accounting, and against one another."""

import math

import mpmath
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.privacy.accounting.mechanisms import gaussian_epsilon, gaussian_log_profile, gaussian_mu


def exact_log_delta(epsilon: float, mu: float) -> float:
    """ln of Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) with many digits."""
    with mpmath.workdps(400):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.log(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)))


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0, 1), (0, 1e-4), (1, 0.3), (1, 3), (20, 1), (3, 0.05), (150, 12), (600, 30), (2000, 40), (5, 9)],
)
def test_gaussian_profile_has_its_digits_everywhere(epsilon: float, mu: float) -> None:
    assert float(gaussian_log_profile(epsilon, mu)) == pytest.approx(exact_log_delta(epsilon, mu), rel=1e-11, abs=1e-11)


def test_gaussian_delta_and_epsilon_agree_with_dp_accounting() -> None:
    for mu, delta in ((0.5, 1e-5), (2.0, 1e-8), (6.0, 1e-3)):
        assert gaussian_epsilon(delta, mu) == pytest.approx(gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta))
        assert gaussian_mu(1.5, delta) == pytest.approx(1 / gaussian_mechanism.get_sigma_gaussian(1.5, delta))


@given(st.floats(1e-3, 60), st.floats(-280, -0.1))
@settings(deadline=None, max_examples=60)
def test_gaussian_epsilon_and_mu_invert_the_profile(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon = gaussian_epsilon(delta, mu)
    if epsilon == 0:
        assert float(gaussian_log_profile(0.0, mu)) <= log_delta
    else:
        assert float(gaussian_log_profile(epsilon, mu)) == pytest.approx(log_delta, abs=1e-8)
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-6)


def test_no_noise_means_no_loss_and_wrong_arguments_say_what_is_allowed() -> None:
    assert gaussian_epsilon(1e-5, 0.0) == 0
    with pytest.raises(ValueError, match="delta = 0: must lie strictly between 0 and 1"):
        gaussian_epsilon(0, 1.0)
    with pytest.raises(ValueError, match="epsilon = -1: must be finite and not negative"):
        gaussian_mu(-1, 1e-5)
    with pytest.raises(ValueError, match="mu = -1: must be positive"):
        gaussian_epsilon(1e-5, -1)
