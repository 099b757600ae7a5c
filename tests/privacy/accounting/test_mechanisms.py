"""Closed forms against high-precision arithmetic, against dp-accounting, and against one another."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.privacy.accounting.mechanisms import (
    advanced_composition,
    classical_gaussian_noise,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_profile,
    gaussian_mu,
    gaussian_zcdp,
    subsampling_epsilon,
    zcdp_epsilon,
    zcdp_rho,
)


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
        assert gaussian_delta(0.0, mu) <= delta
    else:
        assert float(gaussian_log_profile(epsilon, mu)) == pytest.approx(log_delta, abs=1e-8)
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-6)


def test_no_noise_means_no_loss_and_wrong_arguments_say_what_is_allowed() -> None:
    assert gaussian_delta(1.0, 0.0) == 0
    assert gaussian_epsilon(1e-5, 0.0) == 0
    with pytest.raises(ValueError, match="delta = 0: must lie strictly between 0 and 1"):
        gaussian_epsilon(0, 1.0)
    with pytest.raises(ValueError, match="epsilon = -1: must not be negative"):
        gaussian_delta(-1, 1.0)
    with pytest.raises(ValueError, match="mu = -1: must be positive"):
        gaussian_delta(1, -1)
    with pytest.raises(ValueError, match="epsilon = 2: the classical"):
        classical_gaussian_noise(1, 2, 1e-5)
    with pytest.raises(ValueError, match="rho = -1"):
        zcdp_epsilon(-1, 1e-5)
    with pytest.raises(ValueError, match="drawn = 11: must lie between 1 and records = 10"):
        subsampling_epsilon(0.5, 11, 10)
    with pytest.raises(ValueError, match="at most 1"):
        subsampling_epsilon(1.5, 1, 10)
    with pytest.raises(ValueError, match="count = 0"):
        advanced_composition(0.1, 0, 0, 1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_classical_noise_is_private_and_more_than_needed(epsilon: float) -> None:
    delta = 1e-6
    sigma = classical_gaussian_noise(2.0, epsilon, delta)
    assert sigma == pytest.approx(2 * math.sqrt(2 * math.log(1.25e6)) / epsilon)
    assert gaussian_epsilon(delta, 2 / sigma) <= epsilon


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_zcdp_conversion_is_above_the_exact_gaussian(mu: float, delta: float) -> None:
    epsilon = zcdp_epsilon(gaussian_zcdp(mu), delta)
    assert epsilon >= gaussian_epsilon(delta, mu)
    assert zcdp_rho(epsilon, delta) == pytest.approx(mu * mu / 2)


def test_zcdp_rho_is_at_least_the_papers_form_where_that_is_claimed() -> None:
    delta = 1e-5
    for epsilon in np.linspace(0.1, 2 * math.log(1 / delta), 20):
        assert zcdp_rho(float(epsilon), delta) >= epsilon**2 / (8 * math.log(1 / delta))


def test_advanced_composition_by_hand_and_above_exact_composition() -> None:
    epsilon, delta = advanced_composition(0.1, 1e-8, 100, 1e-6)
    assert epsilon == pytest.approx(0.1 * math.sqrt(200 * math.log(1e6)) + 10 * (math.exp(0.1) - 1))
    assert delta == pytest.approx(1e-6 + 1e-6)
    mu = gaussian_mu(0.1, 1e-8)
    assert gaussian_epsilon(delta, mu * 10) < epsilon


def test_subsampling_by_hand() -> None:
    assert subsampling_epsilon(0.5, 20, 100) == pytest.approx(0.2)
