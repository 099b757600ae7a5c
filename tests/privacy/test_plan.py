"""Privacy plans against numbers worked out by hand from the papers' formulas."""

import dataclasses
import math
from fractions import Fraction

import dp_accounting
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.algorithms import ALGORITHMS
from silodp.privacy.plan import Budget, PrivacyPlan, Release

# n = 100, R = 25, ε = 2, δ = 1e-4 and 16 as the batch's ε: nε = 200, K = 100·4/(2·5) = 40,
# ln(1/δ) = 9.2103404, ln(2/δ) = 9.9034876.
BUDGET = Budget(100, 25, 2.0, 1e-4, 16.0)
# Those whose K and σ follow the formulas in n, R and ε; the others have tests of their own in tests/algorithms.
OWN = {"one_pass_accelerated_sgd", "shuffled_minibatch_sgd"}
OWN |= {name for name in ALGORITHMS if name.startswith(("prox_", "sdp_prox_"))}
FORMULAS = sorted(set(ALGORITHMS) - OWN)
LN1, LN2 = 9.210340371976184, 9.903487552536127


def made(name, budget=BUDGET, **options) -> PrivacyPlan:
    return ALGORITHMS[name].with_options({"rounds": budget.rounds, **options}).plan(budget)


def facts(plan):
    """kind → (count, records of one draw, steps, variance of the noise in units of L²)."""
    return {r.kind: (r.count, r.records, r.steps, r.noise**2) for r in plan.releases}


def check(plan, wanted):
    found = facts(plan)
    assert found.keys() == wanted.keys()
    for kind, values in wanted.items():
        assert found[kind][:3] == values[:3], kind
        assert found[kind][3] == pytest.approx(values[3], rel=1e-6), kind


def test_minibatch_sgd_with_either_log_term():
    """8·25·9.2103404/200² = 0.046051702; with ln(2/δ) 8·25·9.9034876/200² = 0.049517438."""
    check(made("minibatch_sgd"), {"gradient": (25, 40, 1, 0.046051702)})
    check(made("minibatch_sgd", log_term="2/delta"), {"gradient": (25, 40, 1, 0.049517438)})


def test_local_sgd_counts_each_step_as_a_release():
    """8·40·25·9.2103404/200² = 1.8420681, whatever the log term of minibatch SGD."""
    check(made("local_sgd"), {"step": (1000, 1, 40, 1.8420681)})
    check(made("local_sgd", log_term="2/delta"), {"step": (1000, 1, 40, 1.8420681)})
    assert made("local_sgd")["step"].drawn == 40


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
    for log_term, variance in (("1/delta", 0.046051702), ("2/delta", 0.049517438)):
        options = {"spider_q1_noise": "minibatch", "log_term": log_term}
        one = made("fedprox_spider", phase_length=1, **options)
        assert one["gradient"].noise ** 2 == pytest.approx(variance, rel=1e-6)
        assert one["gradient"] == made("minibatch_sgd", log_term=log_term)["gradient"]
        two = made("fedprox_spider", phase_length=2, **options)
        assert two["gradient"].noise ** 2 == pytest.approx(0.046051702, rel=1e-6)


def test_fed_spider_made_for_r_releases_or_for_all_of_them():
    """8·25·9.9034876/200² and 32·25·9.9034876/200²; for 2R − 1 = 49 releases 8·49·… and 32·49·…"""
    check(made("fed_spider"), {"gradient": (25, 40, 1, 0.049517438), "difference": (24, 40, 1, 0.19806975)})
    check(
        made("fed_spider", fed_spider_releases="2R-1"),
        {"gradient": (25, 40, 1, 0.097054178), "difference": (24, 40, 1, 0.38821671)},
    )


def test_the_papers_mnist_numbers():
    """n = 1,238, R = 25, K from ε = 24: ⌊1238·4.8990/10⌋ = 606; δ = 1/n², ε = 0.75: nε = 928.5."""
    budget = Budget(1238, 25, 0.75, 1238**-2.0, 24.0)
    plan = made("minibatch_sgd", budget, log_term="2/delta")
    # ln(2·1238²) = 0.693147 + 2·7.121252 = 14.935652; 8·25·14.935652/928.5² = 0.0034648973.
    check(plan, {"gradient": (25, 606, 1, 0.0034648973)})
    assert plan.noise_multiplier == pytest.approx(0.058863379 * 606 / 2, rel=1e-5)
    # Phases of two rounds: ⌊1238·4.8990/2·√(2/25)⌋ = ⌊857.71⌋.
    assert made("fedprox_spider", budget, phase_length=2)["gradient"].records == 857


@pytest.mark.parametrize(
    ("n", "R", "epsilon", "K"),
    [
        (1234, 25, 24, 604),
        (1238, 50, 24, 428),
        (169, 25, 24, 82),
        (10, 4, 100, 10),
        (10, 25, 0.01, 1),
        (1, 25, 24, 1),
        (100, 25, 25, 50),
        # Exact products: n√ε/(2√R) is the whole number K, whatever floating point makes of the roots.
        (4, 3, 3, 2),
        (8, 3, 3, 4),
        (14, 3, 3, 7),
        (49, 49, 4, 7),
        (33, 9, 4, 11),
    ],
)
def test_batch_sizes(n, R, epsilon, K):
    """K = ⌊n√ε/(2√R)⌋, at least 1 and at most n."""
    assert Budget(n, R, 1.0, 1e-5, epsilon).batch() == K
    assert Budget(n, R, None, 1e-5, epsilon).batch() == K
    for name in FORMULAS:
        plan = made(name, Budget(n, R, 1.0, 1e-5, epsilon))
        assert plan.releases[0].drawn == K


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 5000), st.integers(1, 300), st.integers(1, 320).map(lambda k: Fraction(k, 8)))
def test_batch_sizes_by_whole_numbers(n, R, epsilon):
    """⌊n√ε/(2√R)⌋ = ⌊√(n²ε/(4R))⌋, in exact arithmetic."""
    exact = n * n * epsilon / (4 * R)
    wanted = min(max(math.isqrt(exact.numerator // exact.denominator), 1), n)
    assert Budget(n, R, 1.0, 1e-5, float(epsilon)).batch() == wanted
    assert made("fedprox_spider", Budget(n, R, 1.0, 1e-5, float(epsilon)))["gradient"].records == wanted


def test_a_batch_that_is_given_is_taken():
    budget = Budget(100, 25, 2.0, 1e-4, 16.0, 73)
    for name in FORMULAS:
        for release in made(name, budget, phase_length=3).releases:
            assert release.drawn == 73


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
    assert plan.event == dp_accounting.NonPrivateDpEvent()
    with_noise = made(name)
    assert with_noise.private
    assert [r.drawn for r in plan.releases] == [r.drawn for r in with_noise.releases]


def test_sensitivity_is_two_clips_over_the_batch_for_each_gradient_of_a_record():
    assert Release("gradient", 1, 40, 1.0).sensitivity == 2 / 40
    assert Release("difference", 1, 40, 1.0, gradients=2).sensitivity == 4 / 40
    assert Release("step", 40, 1, 1.0, steps=40).sensitivity == 2
    assert Release("gradient", 1, 40, 0.3).noise_multiplier == pytest.approx(0.3 * 40 / 2)


def test_noise_multipliers_by_hand():
    """√0.046051702·40/2 = 4.2919321; local steps √1.8420681/2 = 0.67861414."""
    assert made("minibatch_sgd").noise_multiplier == pytest.approx(4.2919321, rel=1e-6)
    assert made("local_sgd").noise_multiplier == pytest.approx(0.67861414, rel=1e-6)
    # Fed-SPIDER: √0.049517438·40/2 = 4.4505028 for gradients, √0.19806975·40/4 the same for differences.
    plan = made("fed_spider")
    assert plan["gradient"].noise_multiplier == pytest.approx(4.4505028, rel=1e-6)
    assert plan["difference"].noise_multiplier == pytest.approx(4.4505028, rel=1e-6)
    # FedProx-SPIDER, q = 2: √0.046051702·56/2 = 6.0087050 and √0.36841361·40/4 = 6.0697085.
    plan = made("fedprox_spider", phase_length=2)
    assert plan["gradient"].noise_multiplier == pytest.approx(6.0087050, rel=1e-6)
    assert plan["difference"].noise_multiplier == pytest.approx(6.0697085, rel=1e-6)
    assert plan.noise_multiplier == plan["gradient"].noise_multiplier


def test_a_kind_that_is_never_sent_says_nothing_of_the_plan():
    sent, unsent = Release("gradient", 5, 10, 1.0), Release("difference", 0, 3, 0.01, gradients=2)
    plan = PrivacyPlan("none", BUDGET, (sent, unsent))
    assert plan.noise_multiplier == sent.noise_multiplier
    assert plan.sampling == "10 of 100 with replacement"
    assert plan.event == PrivacyPlan("none", BUDGET, (sent,)).event


def sampled(n, K, multiplier):
    return dp_accounting.SampledWithReplacementDpEvent(n, K, dp_accounting.GaussianDpEvent(multiplier))


def test_events_of_one_kind():
    plan = made("minibatch_sgd")
    wanted = dp_accounting.SelfComposedDpEvent(sampled(100, 40, plan["gradient"].noise_multiplier), 25)
    assert plan.event == wanted
    plan = made("local_sgd")
    assert plan.event == dp_accounting.SelfComposedDpEvent(sampled(100, 1, plan["step"].noise_multiplier), 1000)
    plan = made("fedprox_spider", phase_length=1)
    assert plan.event == dp_accounting.SelfComposedDpEvent(sampled(100, 40, plan["gradient"].noise_multiplier), 25)


@pytest.mark.parametrize(
    ("name", "q", "counts", "records"),
    [
        ("fedprox_spider", 2, (13, 12), (56, 40)),
        ("fedprox_spider", 40, (1, 24), (100, 40)),
        ("fed_spider", 1, (25, 24), (40, 40)),
    ],
)
def test_events_of_two_kinds(name, q, counts, records):
    plan = made(name, phase_length=q)
    parts = [
        dp_accounting.SelfComposedDpEvent(sampled(100, K, plan[kind].noise_multiplier), count)
        for kind, count, K in zip(("gradient", "difference"), counts, records, strict=True)
    ]
    assert plan.event == dp_accounting.ComposedDpEvent(parts)


def test_one_round_of_fed_spider_sends_one_gradient():
    plan = made("fed_spider", Budget(100, 1, 2.0, 1e-4, 16.0))
    assert facts(plan)["difference"][0] == 0
    assert isinstance(plan.event, dp_accounting.SelfComposedDpEvent)


def test_a_plan_says_how_records_are_drawn():
    assert made("minibatch_sgd").sampling == "40 of 100 with replacement"
    assert made("local_sgd").sampling == "1 of 100 with replacement"
    assert made("fedprox_spider", phase_length=2).sampling == "40, 56 of 100 with replacement"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n = 0, rounds = 25: must be at least 1"),
        ({"rounds": 0}, "n = 100, rounds = 0: must be at least 1"),
        ({"epsilon": 0.0}, "epsilon = 0.0: must be positive and finite"),
        ({"epsilon": -1.0}, "epsilon = -1.0: must be positive and finite"),
        ({"epsilon": math.inf}, "epsilon = inf: must be positive and finite"),
        ({"epsilon": math.nan}, "epsilon = nan: must be positive and finite"),
        ({"delta": 0.0}, "delta = 0.0: must lie between 0 and 1"),
        ({"delta": 1.0}, "delta = 1.0: must lie between 0 and 1"),
        ({"delta": math.nan}, "delta = nan: must lie between 0 and 1"),
        ({"batch_records": 0}, "K = 0: must lie between 1 and n = 100"),
        ({"batch_records": 101}, "K = 101: must lie between 1 and n = 100"),
        ({"batch_epsilon": 0.0}, "batch_epsilon = 0.0: must be positive and finite"),
        ({"batch_epsilon": -4.0}, "batch_epsilon = -4.0: must be positive and finite"),
        ({"batch_epsilon": math.inf}, "batch_epsilon = inf: must be positive and finite"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(changes, message):
    values = {"n": 100, "rounds": 25, "epsilon": 2.0, "delta": 1e-4, "batch_epsilon": 16.0} | changes
    with pytest.raises(ValueError, match=message):
        Budget(**values)


def test_plans_are_values():
    """Equal plans are equal and hash alike, and none can be changed."""
    assert made("fed_spider") == made("fed_spider")
    assert len({made("fed_spider"), made("fed_spider"), made("minibatch_sgd")}) == 2
    with pytest.raises(AttributeError):
        made("minibatch_sgd").releases[0].noise = 0.0
    with pytest.raises(AttributeError):
        made("minibatch_sgd").budget.epsilon = 9.0


def test_a_kind_that_a_plan_does_not_know_is_an_error():
    with pytest.raises((KeyError, StopIteration)):
        made("minibatch_sgd")["difference"]


def test_a_clipped_mean_is_accounted_as_drawn_or_not():
    """n = 4, K = 2: the record is in a message with probability 1 − (3/4)² = 7/16, rounded up to 2 of 4; z = σ/2L."""
    plan = ALGORITHMS["minibatch_sgd"](3).plan(Budget(4, 3, 1.0, 0.01, 1.0, 2))
    clipped = tuple(dataclasses.replace(one, clipping="batch_mean") for one in plan.releases)
    event = dataclasses.replace(plan, releases=clipped).event
    sampled = event.event
    assert (event.count, sampled.source_dataset_size, sampled.sample_size) == (3, 4, 2)
    assert isinstance(sampled, dp_accounting.SampledWithoutReplacementDpEvent)
    assert sampled.event.noise_multiplier == pytest.approx(plan.releases[0].noise / 2)


def test_subsets_are_drawn_without_replacement():
    plan = ALGORITHMS["prox_svrg"](4, phase_length=2).plan(Budget(10, 4, 1.0, 0.01, 1.0))
    drawn = tuple(dataclasses.replace(one, sampler="subset") for one in plan.releases)
    plan = dataclasses.replace(plan, releases=drawn)
    kinds = plan.event.events
    assert [(one.event.source_dataset_size, one.event.sample_size, one.count) for one in kinds] == [
        (10, 5, 4),
        (10, 10, 2),
    ]
    assert all(isinstance(one.event, dp_accounting.SampledWithoutReplacementDpEvent) for one in kinds)
    assert plan.sampling == "5, 10 of 10 without replacement in a message"
