"""Discrete losses of one release stand above or below what they stand for, by independent integration."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr

from silodp.privacy.accounting.losses import LossPmf, pair_losses, replace_one_losses
from silodp.privacy.message_counts import Occurrences, at_most_once, replace_one_profile, with_replacement

EPSILONS = (-1.0, -0.3, -0.05, 0.0, 0.02, 0.1, 0.4, 1.0, 3.0, 8.0)


def divergence(pmf: LossPmf, epsilon: float) -> float:
    """Σ (1 − e^(ε−ℓ))₊ of a discrete loss."""
    return pmf.infinite + float(pmf.masses @ np.maximum(-np.expm1(np.minimum(epsilon - pmf.losses, 0.0)), 0.0))


def exact(occurrences: Occurrences, reverse: bool) -> np.ndarray:
    """(E,) hockey-stick divergences of the explicit pair at EPSILONS, from its threshold test."""
    p, s = occurrences.weights, occurrences.shift
    j = np.arange(len(p))
    level = np.array(EPSILONS) * (-1 if reverse else 1)
    low, high = np.full(len(level), -80.0), np.full(len(level), 80 + len(p) * s)
    for _ in range(100):
        t = (low + high) / 2
        with np.errstate(divide="ignore"):
            loss = np.logaddexp.reduce(np.log(p) + j * s * t[:, None] - (j * s) ** 2 / 2, axis=1)
        low, high = np.where(loss < level, t, low), np.where(loss < level, high, t)
    alpha = np.exp(EPSILONS)
    if reverse:
        return ndtr(t) - alpha * (ndtr(t[:, None] - j * s) @ p)
    return ndtr(j * s - t[:, None]) @ p - alpha * ndtr(-t)


@given(
    n=st.integers(2, 3000),
    share=st.floats(0.0005, 1.3),
    shift=st.floats(0.005, 8),
    steps=st.floats(3, 3000),
    reverse=st.booleans(),
    aligned=st.booleans(),
)
@settings(deadline=None, max_examples=30)
def test_explicit_pair_lies_between_its_discrete_losses(n, share, shift, steps, reverse, aligned):
    occurrences = with_replacement(n, max(int(n * share), 1), 1 / shift, 1e-15)
    step = shift * (1 + shift) / steps
    top = 12 * shift + (shift * len(occurrences.weights)) ** 2 / 2
    step = max(step, top / 4000)
    upper = pair_losses(occurrences, step, top, upper=True, reverse=reverse)
    lower = pair_losses(occurrences, step, top, upper=False, reverse=reverse, aligned=aligned)
    assert lower.masses.min() >= 0
    for epsilon, truth in zip(EPSILONS, exact(occurrences, reverse), strict=True):
        assert divergence(upper, epsilon) >= truth - 3e-12
        assert divergence(lower, epsilon) <= truth + 3e-12


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("occurrences", "step", "top"),
    [(with_replacement(50, 9, 0.9, 1e-18), 1e-3, 40.0), (at_most_once(1 / 800, 0.7), 2e-5, 8.0)],
)
def test_discrete_losses_are_close_and_agree_with_quadrature_in_thirty_digits(occurrences, step, top, reverse):
    upper = pair_losses(occurrences, step, top, upper=True, reverse=reverse)
    lower = pair_losses(occurrences, step, top, upper=False, reverse=reverse)
    with mpmath.workdps(30):
        s = mpmath.mpf(occurrences.shift)
        weights = [mpmath.mpf(float(w)) for w in occurrences.weights]

        def ratio(x):
            """P/Q, which grows with x."""
            return sum(w * mpmath.exp(j * s * x - (j * s) ** 2 / 2) for j, w in enumerate(weights))

        for epsilon in (0.0, 0.3):
            alpha = mpmath.exp(epsilon)
            level = 1 / alpha if reverse else alpha
            kink = brentq(lambda x, level=level: float(ratio(x) - level), -30, 30) if level > weights[0] else 0.0

            def integrand(x, alpha=alpha):
                first, second = (1, ratio(x)) if reverse else (ratio(x), 1)
                return mpmath.npdf(x) * max(first - alpha * second, mpmath.mpf(0))

            truth = float(mpmath.quad(integrand, sorted([-25, -8, -3, 0, 3, 8, 25, kink])))
            assert divergence(lower, epsilon) <= truth * (1 + 1e-9) + 1e-18
            assert divergence(upper, epsilon) >= truth * (1 - 1e-9) - 1e-18
            assert divergence(upper, epsilon) - divergence(lower, epsilon) <= 2e-4 * divergence(upper, 0.0)


@given(n=st.integers(2, 3000), share=st.floats(0.0005, 1.3), shift=st.floats(0.005, 8), steps=st.floats(3, 2000))
@settings(deadline=None, max_examples=20)
def test_dominating_losses_lie_above_the_profile_and_are_symmetric(n, share, shift, steps):
    occurrences = with_replacement(n, max(int(n * share), 1), 1 / shift, 1e-15)
    top = 8 * shift + (shift * len(occurrences.weights)) ** 2 / 2
    step = max(shift * (1 + shift) / steps, top / 5000)
    pmf = replace_one_losses(occurrences, step, top)
    for epsilon in (0.0, 0.03, 0.5, 2.0):
        bound = float(replace_one_profile(occurrences, np.array([epsilon]))[0])
        assert divergence(pmf, epsilon) >= bound - 1e-12
        mirrored = -math.expm1(-epsilon) + math.exp(-epsilon) * divergence(pmf, epsilon)
        assert divergence(pmf, -epsilon) == pytest.approx(mirrored, abs=1e-9)
