"""ε of a person, held against closed forms, exact small mechanisms and the record's own ε."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from events import delivered_epsilon
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import RECORD, Whom, counts_of, laws_of, without_replacement
from silodp.privacy.person import person_epsilon, persons_epsilon
from silodp.privacy.plan import Budget, PrivacyPlan, Release, at_largest_delta
from silodp.privacy.true_epsilon import ends, upper_end

N, DELTA = 50, 1e-4


def plan(sampler="replacement", count=5, K=10, noise=0.3, **more):
    release = Release("gradient", count, K, noise, sampler=sampler, **more)
    return PrivacyPlan("minibatch_sgd", Budget(N, count, 1.0, DELTA, 1.0), (release,))


@pytest.mark.parametrize("sampler", ["replacement", "subset", "all", "disjoint"])
def test_a_person_with_one_record_is_a_record(sampler):
    one = plan(sampler)
    assert person_epsilon(one, RECORD) == delivered_epsilon(one, DELTA).upper


def test_one_record_among_unlike_silos_is_the_rows_record():
    """At the largest δ of the silos, as both ends of the row are."""
    small = plan(noise=0.25)
    small = dataclasses.replace(small, budget=dataclasses.replace(small.budget, delta=DELTA * 4))
    found = persons_epsilon([small, plan()], RECORD)
    assert found == max(upper_end([one]) for one in at_largest_delta([small, plan()])) < upper_end([plan(noise=0.25)])


@pytest.mark.parametrize("name", ["localised_accelerated", "local_sgd"])
def test_one_record_has_the_credit_of_parts_and_of_steps_that_do_not_expand(name):
    options = {"noise_at": "contracted_step"} if name == "local_sgd" else {}
    one = ALGORITHMS[name].with_options({"rounds": 20} | options).plan(Budget(200, 20, 4.0, DELTA, 8.0))
    assert person_epsilon(one, RECORD) == ends([one]).upper < person_epsilon(one, Whom(1, 2))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["all", "disjoint", "subset"]),
    st.sampled_from(["record", "per_tensor", "batch_mean"]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([None, 1, 2, 5]),
)
def test_gaussian_messages_have_a_closed_form(sampler, clipping, silos, records, summed):
    """A clipped mean moves once, however many of the records are in it, and a sum by the means of the silos in it."""
    assume(sampler != "subset" or (clipping == "batch_mean" and records > 1))
    K = {"all": N, "disjoint": 4, "subset": 10}[sampler]
    one = plan(sampler, K=K, noise=2.0, clipping=clipping, tensors=3)
    # Of five messages: those that hold some of the records, and how many of them one holds.
    messages, held = (min(records, 5), 1) if sampler == "disjoint" and clipping == "batch_mean" else (5, records)
    messages, held = (1, min(records, 20)) if sampler == "disjoint" and clipping != "batch_mean" else (messages, held)
    moves = math.sqrt(messages) * (1 if clipping == "batch_mean" else held)
    moves *= math.sqrt(silos) if summed is None else min(silos, summed)
    wanted = gaussian_epsilon(DELTA, moves / one.noise_multiplier)
    seen = one if summed is None else one.behind_sum_of(summed)
    assert person_epsilon(seen, Whom(silos, records)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("sampler", ["replacement", "subset"])
def test_a_persons_silos_compose_where_no_sum_hides_their_messages(sampler):
    assert person_epsilon(plan(sampler), Whom(2)) == pytest.approx(upper_end([plan(sampler)] * 2))


def test_a_trusted_sum_shows_a_persons_silos_in_one_message():
    """Two of two silos: the sum of two batches of K out of n is like one of 2K, with its noise."""
    alone = plan()
    summed = alone.behind_sum_of(2)
    ((law, count),) = laws_of(counts_of([summed], Whom(2)), DELTA)
    assert count == 5
    assert law.weights @ np.arange(len(law.weights)) == pytest.approx(2 * 10 / N, rel=1e-6)
    assert person_epsilon(summed, Whom(1)) == pytest.approx(ends([summed]).upper, rel=1e-6)
    assert person_epsilon(summed, Whom(1)) < person_epsilon(summed, Whom(2)) < 2.5 * person_epsilon(summed, Whom(1))
    # No more silos than take part can be in one sum.
    assert person_epsilon(summed, Whom(7)) == person_epsilon(summed, Whom(2))


@pytest.mark.parametrize("sampler", ["replacement", "subset"])
@pytest.mark.parametrize("together", [1, 2, 3])
def test_no_neighbours_of_a_small_silo_exceed_a_persons_epsilon(sampler, together):
    """n = 4, K = 2: every batch is written out, for neighbours whose records pull in any pattern."""
    n, K, noise = 4, 2, 0.9
    one = dataclasses.replace(plan(sampler, count=1, K=K, noise=noise), budget=Budget(n, 1, 1.0, 1e-2, 1.0))
    bound = person_epsilon(one, Whom(1, together))
    batches = list(
        itertools.product(range(n), repeat=K) if sampler == "replacement" else itertools.permutations(range(n), K)
    )
    grid = np.linspace(-8, 8, 8001)

    def density(values):
        means = np.array([np.mean([values[i] for i in batch]) for batch in batches])
        return np.mean(np.exp(-(((grid - means[:, None]) / noise) ** 2) / 2), axis=0) / noise / math.sqrt(2 * math.pi)

    worst = 0.0
    for others in itertools.product([-1.0, 0.0, 1.0], repeat=n - together):
        first, second = density([1.0] * together + list(others)), density([-1.0] * together + list(others))
        for p, q in ((first, second), (second, first)):
            worst = max(worst, np.sum(np.maximum(p - math.exp(bound) * q, 0)) * (grid[1] - grid[0]))
    assert worst <= 1e-2 * (1 + 1e-3)
    # The worst of them comes close: the bound is no group bound.
    assert worst >= 0.5e-2


def test_a_clipped_mean_moves_once_however_many_records_are_replaced():
    one = plan("all", count=1, K=N, noise=2.0, clipping="batch_mean")
    mu = 1 / one.noise_multiplier
    assert person_epsilon(one, Whom(1, 7)) == pytest.approx(gaussian_epsilon(DELTA, mu), rel=1e-9)


def test_what_is_not_known_is_not_said():
    shuffled = ALGORITHMS["shuffled_minibatch_sgd"].with_options({"rounds": 3, "noise": 0.4, "silos": 9, "cohort": 9})
    assert math.isnan(person_epsilon(shuffled.plan(Budget(N, 3, 1.0, DELTA, 1.0)), Whom(2)))
    bare = dataclasses.replace(plan(), budget=Budget(N, 5, None, DELTA, 1.0))
    assert person_epsilon(bare, RECORD) == math.inf


@pytest.mark.parametrize(("silos", "records"), [(0, 1), (1, 0), (1, N + 1)])
def test_a_person_has_records(silos, records):
    with pytest.raises(ValueError, match=f"silos = {silos}, records = {records}: must be at least 1"):
        person_epsilon(plan(), Whom(silos, records))


def test_silos_with_unlike_plans_behind_one_sum_have_no_bound():
    """s·ε(δ/s) gave 82.8 where two silos of one sum reach 143.8: their batches share the noise of a message."""
    one, other = (plan(K=K).behind_sum_of(2) for K in (10, 20))
    assert persons_epsilon([one, other], Whom(2)) == math.inf
    assert persons_epsilon([one, one], Whom(2)) < math.inf
    assert persons_epsilon([one, other], Whom(1)) == max(person_epsilon(one, RECORD), person_epsilon(other, RECORD))


def test_silos_with_unlike_plans_compose_at_a_share_of_delta():
    """Basic composition, exactly: s·ε(δ/s) of the plan that gives most away."""

    def at_half_delta(one):
        return dataclasses.replace(one, budget=dataclasses.replace(one.budget, delta=DELTA / 2))

    weak, strong = plan(noise=0.3), plan(noise=0.6)
    assert persons_epsilon([weak, strong], Whom(2)) == 2 * person_epsilon(at_half_delta(weak), Whom(1))
    assert persons_epsilon([weak, strong], Whom(2, 3)) == 2 * person_epsilon(at_half_delta(weak), Whom(1, 3))


def test_a_person_with_nearly_all_records_of_a_drawn_batch_needs_no_warning():
    """K + m ≥ n + 2: fewer than K + m − n hits cannot be, and SciPy took their logarithm."""
    law = without_replacement(10, 8, 1.0, 6)
    assert law.weights[:4].tolist() == [0.0] * 4
    assert law.weights.sum() == pytest.approx(1.0)
    assert law.weights @ np.arange(7) == pytest.approx(4.8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("n", "records"), [(4, 2), (4, 3), (10, 2)])
def test_a_person_whose_records_are_all_drawn_is_one_gaussian(n, records):
    """No message has fewer of the person's records, so every lower count has the weight 0."""

    def planned(sampler):
        release = Release("gradient", 1, n, 0.5, sampler=sampler)
        return PrivacyPlan("minibatch_sgd", Budget(n, 1, 1.0, 1e-3, 1.0), (release,))

    whole = person_epsilon(planned("all"), Whom(1, records))
    assert whole <= person_epsilon(planned("subset"), Whom(1, records)) <= whole * (1 + 1e-3)
