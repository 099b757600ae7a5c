"""Bounds against the whole profile: sound for the plan itself, and close to the noise that is there."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from silodp.audit.profile import (
    Rates,
    choose,
    claims_refuted,
    message_plan,
    pair_bounds,
    profile_bound,
    rates_at,
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


def test_rates_count_scores_above_a_threshold():
    rates = rates_at(np.array([3.0, 1.0, 2.0, 2.0]), np.array([0.0, 2.0, 1.0, 1.0]), np.array([0.5, 1.0, 2.0, 3.0]))
    assert (rates.hits.tolist(), rates.alarms.tolist(), rates.runs) == ([4, 3, 1, 0], [3, 1, 0, 0], 4)


def test_bounds_at_no_hit_and_at_nothing_but_alarms():
    rates = Rates(np.array([0, 5]), np.array([5, 0]), 5)
    least, most = pair_bounds(rates, 0.02)
    assert least.tolist() == [0.0, pytest.approx(0.01**0.2)]
    assert most.tolist() == [1.0, pytest.approx(1 - 0.01**0.2)]
    assert sum_bound(rates, 0.02).tolist() == [-1.0, pytest.approx(2 * 0.02**0.1 - 1)]
    assert claims_refuted(Rates(np.array([0]), np.array([5]), 5), "sum", 0.02) == []


@pytest.mark.parametrize(("mu", "seldom", "form"), [(0.2, False, "sum"), (1.0, False, "sum"), (6.0, True, "pair")])
def test_the_test_that_is_chosen_leaves_the_largest_distance(mu, seldom, form):
    """Against every threshold and both forms, one by one; of a canary that is seldom drawn rates say more apart."""
    present, absent = (world["gradient"].ravel() for world in scores(mu, 300, 8))
    present = np.where(np.arange(300) < 240, scores(mu, 300, 9)[1]["gradient"].ravel(), present) if seldom else present
    found, best = choose(present, absent, 0.01), {"sum": 0.0, "pair": 0.0}
    for threshold in np.unique(np.quantile(np.concatenate([present, absent]), (np.arange(400) + 0.5) / 400)):
        rates = Rates(np.array([(present > threshold).sum()]), np.array([(absent > threshold).sum()]), 300)
        (least,), (most,) = pair_bounds(rates, 0.01)
        best["sum"] = max(best["sum"], 2 * norm.ppf((1 + min(sum_bound(rates, 0.01)[0], 1)) / 2))
        best["pair"] = max(best["pair"], norm.ppf(least) - norm.ppf(most) if least > most else 0.0)
    assert found.shift == pytest.approx(max(best.values()))
    assert found.form == form == max(best, key=best.get)


def test_the_runs_that_choose_a_test_are_not_counted():
    """Of 1,000 runs the first 300 choose: worlds that are told apart there alone, or from there on."""
    apart, alike = scores(4.0, 1000, 6), scores(0.0, 1000, 7)
    for first, second, shown in ((apart, alike, False), (apart, apart, True)):
        worlds = [
            {"gradient": np.concatenate([one["gradient"][:300], other["gradient"][300:]])}
            for one, other in zip(first, second, strict=True)
        ]
        found = profile_bound(gaussian_plan(4.0), *worlds, 0.99)
        assert (found.epsilon > 0) == shown


def test_of_many_kinds_the_one_that_shows_most_is_looked_at():
    """A message of shift 1.5 in four rounds shows more than one of shift 1 in four."""
    plan = gaussian_plan(1.0)
    (release,) = plan.releases
    kinds = [("weak", 1.0), ("strong", 1.5)]
    releases = tuple(
        dataclasses.replace(release, kind=kind, count=4, noise=release.noise / shift) for kind, shift in kinds
    )
    drawn = {kind: scores(shift, 2000, seed, messages=4) for seed, (kind, shift) in enumerate(kinds)}
    worlds = [{kind: drawn[kind][world]["gradient"] for kind, _ in kinds} for world in (0, 1)]
    found = profile_bound(dataclasses.replace(plan, releases=releases), *worlds, 0.99)
    assert found.as_seen_by_adversary in ("transcript", "strong")
    assert 1.0 <= found.noise < 1.15
