"""Privacy plans against numbers worked out by hand from the papers' formulas."""

import dataclasses
import inspect
import math
from collections import Counter

import pytest

from silodp.algorithms import ALGORITHMS
from silodp.privacy.message_counts import counts_of, draws
from silodp.privacy.plan import Budget, PrivacyPlan, Release

# n = 100, R = 25, ε = 2, δ = 1e-4 and 16 as the batch's ε: nε = 200, K = 100·4/(2·5) = 40,
# ln(1/δ) = 9.2103404, ln(2/δ) = 9.9034876.
BUDGET = Budget(100, 25, 2.0, 1e-4, 16.0)
# Those whose K and σ follow the formulas in n, R and ε; the others have tests of their own in tests/algorithms.
OWN = {"one_pass_accelerated_sgd", "shuffled_minibatch_sgd", "minibatch_sgd_correlated", "localised_accelerated"}
OWN |= {name for name in ALGORITHMS if name.startswith(("prox_", "sdp_prox_", "dp_mu2"))}
FORMULAS = sorted(set(ALGORITHMS) - OWN)


def made(name, budget=BUDGET, **options) -> PrivacyPlan:
    return ALGORITHMS[name].with_options({"rounds": budget.rounds, **options}).plan(budget)


def check(plan, wanted):
    """`wanted`: kind → (count, records of one draw, steps, variance of the noise in units of L²)."""
    assert {release.kind for release in plan.releases} == wanted.keys()
    for kind, (*numbers, variance) in wanted.items():
        assert [plan[kind].count, plan[kind].records, plan[kind].steps] == numbers, kind
        assert plan[kind].noise ** 2 == pytest.approx(variance, rel=1e-6), kind


def test_minibatch_sgd_with_either_log_term():
    """8·25·9.2103404/200² = 0.046051702; with ln(2/δ) 8·25·9.9034876/200² = 0.049517438."""
    check(made("minibatch_sgd"), {"gradient": (25, 40, 1, 0.046051702)})
    check(made("minibatch_sgd", log_term="2/delta"), {"gradient": (25, 40, 1, 0.049517438)})


def test_local_sgd_counts_each_step_as_a_release():
    """8·40·25·9.2103404/200² = 1.8420681, whatever the log term of minibatch SGD."""
    check(made("local_sgd"), {"step": (1000, 1, 40, 1.8420681)})
    check(made("local_sgd", log_term="2/delta"), {"step": (1000, 1, 40, 1.8420681)})
    assert made("local_sgd")["step"].records_drawn == 40


@pytest.mark.parametrize(
    ("q", "fresh", "first", "variance"),
    [
        # K₁ = ⌊200·√(q/25)⌋, at most n; σ₁² = 16·9.2103404·max(25/q, 1)/200².
        (1, 25, 40, 0.092103404),
        (2, 13, 56, 0.046051702),
        (3, 9, 69, 0.030701135),
        (7, 4, 100, 0.013157629),
        (25, 1, 100, 0.0036841361),
        (40, 1, 100, 0.0036841361),
    ],
)
def test_fedprox_spider_at_several_phase_lengths(q, fresh, first, variance):
    """σ̂₂² = 64·25·9.2103404/200² = 0.36841361 for the differences, K₂ = 40."""
    check(
        made("fedprox_spider", phase_length=q),
        {"gradient": (fresh, first, 1, variance), "difference": (25 - fresh, 40, 1, 0.36841361)},
    )


def test_fedprox_spider_with_the_noise_of_minibatch_sgd_at_q_1_only():
    for log_term in ("1/delta", "2/delta"):
        options = {"spider_q1_noise": "minibatch", "log_term": log_term}
        one, two = (made("fedprox_spider", phase_length=q, **options)["gradient"] for q in (1, 2))
        assert one == made("minibatch_sgd", log_term=log_term)["gradient"]
        assert two == made("fedprox_spider", phase_length=2)["gradient"]


def test_fed_spider_made_for_r_releases_or_for_all_of_them():
    """8·25·9.9034876/200² and 32·25·9.9034876/200²; for 2R − 1 = 49 releases 8·49·… and 32·49·…"""
    check(made("fed_spider"), {"gradient": (25, 40, 1, 0.049517438), "difference": (24, 40, 1, 0.19806975)})
    check(
        made("fed_spider", fed_spider_releases="2R-1"),
        {"gradient": (25, 40, 1, 0.097054178), "difference": (24, 40, 1, 0.38821671)},
    )


@pytest.mark.parametrize(
    ("n", "R", "epsilon", "K"),
    [
        (1234, 25, 24, 604),
        (169, 25, 24, 82),
        (10, 25, 0.01, 1),
        # Exact products: n√ε/(2√R) is the whole number K, whatever floating point makes of the roots.
        (4, 3, 3, 2),
        (49, 49, 4, 7),
    ],
)
def test_batch_sizes(n, R, epsilon, K):
    """K = ⌊n√ε/(2√R)⌋, at least 1 and at most n."""
    assert Budget(n, R, 1.0, 1e-5, epsilon).batch() == K
    assert Budget(n, R, None, 1e-5, epsilon).batch() == K
    for name in FORMULAS:
        plan = made(name, Budget(n, R, 1.0, 1e-5, epsilon))
        assert plan.releases[0].records_drawn == K


def test_a_batch_that_is_given_is_taken():
    budget = Budget(100, 25, 2.0, 1e-4, 16.0, 73)
    # Phases of these are local steps, which share K records.
    for name in set(FORMULAS) - {"mr_mtl", "dp_scaffold"}:
        for release in made(name, budget, phase_length=3).releases:
            assert release.records_drawn == 73


@pytest.mark.parametrize("name", FORMULAS)
def test_noise_falls_with_the_claimed_epsilon_and_with_records(name):
    """σ is proportional to 1/(nε) at a given K."""
    one = made(name, Budget(100, 25, 2.0, 1e-4, 1.0, 10), phase_length=2)
    for n, epsilon in ((100, 4.0), (400, 2.0), (250, 0.3)):
        other = made(name, Budget(n, 25, epsilon, 1e-4, 1.0, 10), phase_length=2)
        for a, b in zip(one.releases, other.releases, strict=True):
            assert b.noise == pytest.approx(a.noise * 200 / (n * epsilon), rel=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_baseline_has_no_noise_and_says_so(name):
    plan = made(name, Budget(100, 25, None, 1e-4, 16.0))
    assert not plan.private
    assert all(release.noise == 0 for release in plan.releases)
    assert counts_of([plan]) is None
    with_noise = made(name)
    assert with_noise.private
    assert [r.records_drawn for r in plan.releases] == [r.records_drawn for r in with_noise.releases]


@pytest.mark.parametrize(
    ("name", "q", "counts", "records"),
    [
        ("fedprox_spider", 2, (13, 12), (56, 40)),
        ("fedprox_spider", 40, (1, 24), (100, 40)),
        ("fed_spider", 1, (25, 24), (40, 40)),
    ],
)
def test_messages_of_two_kinds(name, q, counts, records):
    plan = made(name, phase_length=q)
    wanted = Counter()
    for kind, count, K in zip(("gradient", "difference"), counts, records, strict=True):
        wanted[draws("with", 100, K, plan[kind].noise_multiplier)] += count
    assert counts_of([plan]) == wanted


def test_a_clipped_mean_is_accounted_as_drawn_or_not():
    """n = 4, K = 2: the record is in a message with probability 1 − (3/4)² = 7/16, rounded up to 2 of 4; z = σ/2L."""
    plan = ALGORITHMS["minibatch_sgd"](3).plan(Budget(4, 3, 1.0, 0.01, 1.0, 2))
    clipped = tuple(dataclasses.replace(one, clipping="batch_mean") for one in plan.releases)
    wanted = draws("without", 4, 2, plan.releases[0].noise / 2)
    assert counts_of([dataclasses.replace(plan, releases=clipped)]) == {wanted: 3}


def test_subsets_are_drawn_without_replacement():
    plan = ALGORITHMS["prox_svrg"](4, phase_length=2).plan(Budget(10, 4, 1.0, 0.01, 1.0))
    drawn = tuple(dataclasses.replace(one, sampler="subset") for one in plan.releases)
    plan = dataclasses.replace(plan, releases=drawn)
    first, second = (release.noise_multiplier for release in plan.releases)
    assert counts_of([plan]) == {draws("without", 10, 5, first): 4, draws("all", 1, 1, second): 2}
    assert plan.sampling == "5, 10 of 10 without replacement in a message"


def test_only_messages_that_all_have_their_part_are_of_disjoint_parts():
    apart = Release("first", 1, 4, 1.0, sampler="all", part=(0, 4))
    for rest, said in (
        (Release("second", 1, 6, 1.0, sampler="all", part=(4, 6)), "all of disjoint parts of 4, 6 of 10"),
        (Release("second", 2, 5, 1.0), "5 of 10 with replacement, and all"),
    ):
        assert PrivacyPlan("toy", Budget(10, 3, 1.0, 0.01, 1.0), (apart, rest)).sampling == said


@pytest.mark.parametrize(
    ("options", "sensitivity"),
    [
        ({}, 2 / 8),
        ({"gradients": 2}, 4 / 8),
        ({"clipping": "per_tensor", "tensors": 4}, 4 / 8),
        ({"clipping": "per_tensor", "tensors": 9, "gradients": 2}, 12 / 8),
        ({"clipping": "batch_mean"}, 2.0),
        ({"clipping": "batch_mean", "gradients": 2}, 4.0),
        ({"clipping": "record", "tensors": 9}, 2 / 8),
        ({"slack": 0.5}, 3 / 8),
    ],
)
def test_sensitivity_by_hand(options, sensitivity):
    release = Release("gradient", 3, 8, 1.5, **options)
    assert release.sensitivity == pytest.approx(sensitivity)
    assert release.noise_multiplier == pytest.approx(1.5 / sensitivity)


TAKES_NOISE = [name for name, kind in ALGORITHMS.items() if "noise" in inspect.signature(kind).parameters]


@pytest.mark.parametrize("name", TAKES_NOISE)
def test_noise_that_is_given_is_taken_at_every_epsilon_and_a_baseline_has_none(name):
    def noises(epsilon, noise):
        plan = ALGORITHMS[name](3, noise=noise).plan(Budget(12, 3, epsilon, 1e-3, 4.0, 2))
        return [release.noise for release in plan.releases]

    once, twice = noises(0.5, 1.5), noises(0.5, 3.0)
    assert once == noises(9.0, 1.5) == [noise / 2 for noise in twice]
    assert min(once) > 0
    assert {*noises(None, 1.5)} == {0.0}


def test_batches_at_their_limits():
    """Never more than n, and a phase longer than the run counts as the run."""
    assert Budget(10, 1, 1.0, 1e-5, 900.0).batch() == 10
    assert Budget(10, 1000, 1.0, 1e-5, 1e-3).batch() == 1
    assert Budget(100, 4, 1.0, 1e-5, 1.0).batch(phase=4) == 50
    assert Budget(100, 4, 1.0, 1e-5, 1.0).batch(phase=9) == 50
    assert Budget(100, 4, 1.0, 1e-5, 1.0).batch(phase=1) == 25


def test_a_clipped_mean_of_many_draws():
    """n = 5, K = 4: in a message with probability 1 − (4/5)⁴ = .59, between 2 and 3 of 5."""
    release = Release("gradient", 3, 4, 1.0, clipping="batch_mean")
    plan = PrivacyPlan("minibatch_sgd", Budget(5, 3, 1.0, 0.01, 1.0, 4), (release,))
    assert [K for whole in (math.ceil, math.floor) for (_, _, K, *_) in counts_of([plan], whole=whole)] == [3, 2]
