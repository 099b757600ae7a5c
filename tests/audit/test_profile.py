"""Bounds against the whole profile: sound for the plan itself, and close to the noise that is there."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binom

from silodp.audit.profile import (
    Rates,
    claims_refuted,
    message_plan,
    pair_bounds,
    profile_bound,
    seen_plan,
    sum_bound,
)
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.plan import Budget, PrivacyPlan, Release

DELTA = 1e-4


def gaussian_plan(mu):
    """One message on all records that is a Gaussian mechanism with shift μ."""
    release = Release("gradient", 1, 10, 0.2 / mu, sampler="all")
    return PrivacyPlan("any", Budget(10, 1, 1.0, DELTA, 1.0), (release,))


def scores(mu, runs, seed, messages=1):
    """Log-likelihood ratios of a Gaussian mechanism with shift μ, with the canary and without."""
    generator = np.random.default_rng(seed)
    worlds = [generator.normal(world * mu, 1, (runs, messages)) for world in (1, 0)]
    return [{"gradient": mu * sent - mu**2 / 2} for sent in worlds]


def test_sum_bound_by_hand():
    rates = Rates(np.array([70]), np.array([40]), 100)
    shares = np.linspace(0, 1, 200001)
    least = shares[np.argmax(binom.sf(129, 200, shares) > 0.01)]
    assert sum_bound(rates, 0.01)[0] == pytest.approx(2 * least - 1, abs=1e-4)


def test_refuted_claims_follow_from_the_rates():
    """TPR ≤ e^ε·FPR + δ fails at the ends of both intervals for every claim, for one side or the other."""
    rates = Rates(np.array([900]), np.array([20]), 1000)
    (least,), (most,) = pair_bounds(rates, 1e-3)
    claims = claims_refuted(rates, "pair", 1e-3)
    assert len(claims) > 3
    for epsilon, delta in claims:
        sides = (least, most), (1 - most, 1 - least)
        assert any(high == pytest.approx(math.exp(epsilon) * low + delta) for high, low in sides)


@pytest.mark.parametrize("mu", [0.2, 1.0, 4.0])
def test_the_bound_is_near_and_below_the_noise_that_is_there(mu):
    for seed in range(5):
        found = profile_bound(gaussian_plan(mu), *scores(mu, 20_000, seed), 0.99)
        assert 1.0 <= found.noise < 1.45
        assert found.epsilon == pytest.approx(gaussian_epsilon(DELTA, mu / found.noise))
        assert not found.exceeded


@pytest.mark.parametrize("mu", [0.2, 1.0, 4.0])
def test_half_the_noise_exceeds_the_profile(mu):
    found = profile_bound(gaussian_plan(mu), *scores(2 * mu, 20_000, 3), 0.99)
    assert found.exceeded
    assert 0.5 <= found.noise < 0.9


def test_one_message_tells_where_a_transcript_tells_all():
    """400 messages of shift 1 are told apart without an error; one of them is not, and shows its noise."""
    one = gaussian_plan(1.0)
    many = dataclasses.replace(one, releases=(dataclasses.replace(one.releases[0], count=400),))
    found = profile_bound(many, *scores(1.0, 200, 1, messages=400), 0.99)
    assert (found.as_seen_by_adversary, found.exceeded) == ("gradient", False)
    assert 1.0 <= found.noise < 1.1


def test_nothing_is_shown_by_equal_laws():
    found = profile_bound(gaussian_plan(1.0), *scores(0.0, 500, 2), 0.99)
    assert (found.epsilon, found.exceeded) == (0.0, False)


def test_honest_bounds_fail_as_seldom_as_they_say():
    failed = sum(profile_bound(gaussian_plan(1.0), *scores(1.0, 400, 10 + seed), 0.8).noise < 1 for seed in range(200))
    assert binom.sf(failed - 1, 200, 0.2) > 1e-3


def test_local_steps_are_seen_as_their_sum():
    plan = PrivacyPlan("local_sgd", Budget(50, 4, 1.0, DELTA, 1.0), (Release("step", 4 * 9, 1, 0.7, steps=9),))
    seen = seen_plan(plan).releases[0]
    assert (seen.count, seen.records, seen.records_drawn, seen.sampler) == (4, 9, 9, "replacement")
    assert seen.noise_multiplier == pytest.approx(3 * plan["step"].noise_multiplier)
    assert message_plan(plan, "step").releases[0].count == 1
