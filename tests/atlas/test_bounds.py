"""The bounds of mechanisms as data agree with closed forms, with each other, and with numbers known from elsewhere."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from silodp.atlas.bounds import bound_mechanism, laplace_losses, message_occurrences, most_rounds, noise_factor
from silodp.atlas.mechanism import Mechanism
from silodp.privacy.accounting.mechanisms import gaussian_epsilon

MESSAGE = {"name": "update", "clip": "update", "noise": "gaussian", "sd": "z*C"}
STEP = MESSAGE | {"clip": "per_record"}


def made(claim: dict | None = None, entry: dict | None = None, **keys) -> Mechanism:
    """A mechanism of one entry: clip 1, noise 2, replace-one unless said otherwise."""
    base = {"claim": {"delta": 1e-5} | (claim or {}), "settings": {"z": 2.0, "C": 1.0, "d": 4, "n": 100}}
    return Mechanism.model_validate(base | {"released": [MESSAGE | (entry or {})]} | keys)


def ends(mechanism: Mechanism, **changed: float) -> tuple[float, float]:
    return bound_mechanism(mechanism, changed=changed).interval[:2]


POISSON = {"records": "poisson", "rate": 0.1}
REMOVED = {"adjacency": "add_remove"}


@pytest.mark.parametrize(
    ("claim", "entry", "sensitivity"),
    [
        ({}, {}, 2),
        (REMOVED, {}, 2),  # without one record the whole update can turn round
        (REMOVED | {"unit": "silo"}, {}, 1),
        (REMOVED, {"clip": "per_record"}, 1),
        ({}, {"clip": "coordinate"}, 4),
        ({}, {"moves": "C/2"}, 0.5),
    ],
)
def test_gaussian_messages_on_all_records_are_exact(claim, entry, sensitivity):
    mechanism = made(claim, entry, steps={"rounds": 9})
    exact = gaussian_epsilon(1e-5, sensitivity * 3 / 2)
    assert ends(mechanism) == pytest.approx((exact, exact))


def test_two_gaussian_entries_compose_as_one_from_above_and_the_larger_alone_is_the_lower_end():
    """One pair of neighbours may move one entry and another pair the other: no pair need move both."""
    two = made(released=[MESSAGE, MESSAGE | {"name": "other", "moves": "C"}])
    assert ends(two) == pytest.approx([gaussian_epsilon(1e-5, mu) for mu in (1, math.hypot(1, 0.5))])


def test_message_alone_gives_away_no_more_than_each_step():
    keys = {"sampling": POISSON, "steps": {"local": 10, "rounds": 3}}
    lower, upper = ends(made(REMOVED, STEP, **keys))
    seen = ends(made(REMOVED, STEP, view="each_step", **keys))
    assert 0.5 * upper < lower < upper == pytest.approx(seen[1])
    assert lower < seen[0] == pytest.approx(seen[1], rel=1e-2)


def test_silos_drawn_in_the_open_cost_less_than_all_rounds_and_more_than_their_mean():
    def part(share: float, rounds: int = 10) -> tuple[float, float]:
        sampling = POISSON | {"silos": share}
        return ends(made(REMOVED, STEP, sampling=sampling, steps={"local": 10, "rounds": rounds}))

    half, whole, mean = part(0.5), part(1.0), part(1.0, 5)
    assert mean[0] < half[0] < whole[0]
    assert mean[1] < half[1] < whole[1]


def test_hidden_silos_are_poisson_sampled():
    keys = {"sampling": {"silos": 0.1, "hidden": True}, "steps": {"rounds": 20}, "view": "final_model"}
    hidden = ends(made(REMOVED | {"unit": "silo"}, **keys))
    records = ends(made(REMOVED, STEP, sampling=POISSON, steps={"rounds": 20}))
    assert hidden == pytest.approx(records)


def test_shuffled_records_count_once_an_epoch_from_above():
    sampling = {"records": "shuffled", "rate": 0.1}
    lower, upper = ends(made(REMOVED, STEP, sampling=sampling, steps={"local": 10, "rounds": 4}))
    assert upper == pytest.approx(gaussian_epsilon(1e-5, math.sqrt(5) * 2 / 2))
    replaced = ends(made({}, STEP, sampling=sampling, steps={"local": 10, "rounds": 4}))
    assert replaced[1] == pytest.approx(gaussian_epsilon(1e-5, 2 * 2 / 2))
    assert lower == pytest.approx(gaussian_epsilon(1e-5, 2 / math.sqrt(10) / 2))
    # An epoch that has begun counts.
    half = ends(made({}, STEP, sampling=sampling, steps={"local": 5, "rounds": 3}))
    assert half[1] == pytest.approx(gaussian_epsilon(1e-5, 2 * math.sqrt(2) / 2))


def test_a_record_that_is_added_shifts_others_over_the_batches():
    """Three records of gradient −C with or without one of +C, one epoch of two batches, the last one short, σ = C."""
    keys = {"settings": {"z": 1.0, "C": 1.0}, "sampling": {"records": "shuffled", "rate": 0.5}, "view": "each_step"}
    upper = ends(made(REMOVED, STEP, steps={"local": 2, "rounds": 1}, **keys))[1]
    axis = np.linspace(-14, 14, 2801)
    cell = (axis[1] - axis[0]) ** 2

    def density(*centre: float) -> np.ndarray:
        return np.outer(*(norm.pdf(axis, loc=place) for place in centre))

    # The added record is in the first batch or in the last.
    with_it, without = (density(0, -2) + density(-2, 0)) / 2, density(-2, -1)

    def delta(epsilon: float) -> float:
        pairs = ((with_it, without), (without, with_it))
        return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell) for p, q in pairs)

    assert delta(gaussian_epsilon(1e-5, 1.0)) > 100 * 1e-5  # a sensitivity of C an epoch is not enough
    assert delta(9.5) > 1e-5 > delta(upper)


def test_a_count_is_public_where_a_record_is_replaced_and_own_standardising_is_not_covered():
    count = {"name": "record count", "counts_records": True}
    assert ends(made(released=[MESSAGE, count])) == ends(made())
    assert bound_mechanism(made(REMOVED, released=[MESSAGE, count])).interval.witness == "exact"
    assert bound_mechanism(made(standardised_by="own_records")).interval.witness == "unbounded"
    assert ends(made(standardised_by="public_bounds")) == ends(made())


def test_subset_is_replace_one_without_replacement():
    lower, upper = ends(made({}, STEP, sampling={"records": "subset", "rate": 0.1}, steps={"rounds": 5}))
    assert 0 < lower <= upper < gaussian_epsilon(1e-5, math.sqrt(5))


def test_sum_of_sampled_steps_without_momentum_is_binomial():
    law = message_occurrences(0.1, 10, 0.0, 0.5)
    assert law.weights == pytest.approx(binom.pmf(np.arange(len(law.weights)), 10, 0.1), abs=1e-12)
    assert law.shift == pytest.approx(0.5 / math.sqrt(10))


def test_momentum_moves_the_sum_less_for_its_noise():
    plain, heavy = (message_occurrences(0.1, 40, momentum, 0.5) for momentum in (0.0, 0.9))
    mean = [float(law.weights @ np.arange(len(law.weights))) * law.shift for law in (plain, heavy)]
    assert 0.9 * mean[0] < mean[1] < mean[0]
    assert heavy.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_laplace_losses_are_a_pair_of_distributions_below_the_true_ones(mu):
    losses = laplace_losses(mu)
    assert losses.masses.sum() == pytest.approx(1)
    assert losses.masses @ np.exp(-losses.losses) == pytest.approx(1)  # as many under Q
    truth = mu + math.exp(-mu) - 1
    assert 0.999 * truth < losses.masses @ losses.losses < truth


def test_laplace_bounds_meet_pure_composition_at_small_delta():
    lower, upper = ends(made({"delta": 1e-12}, {"noise": "laplace", "moves": "z*C"}, steps={"rounds": 4}))
    assert upper == 4
    assert 3.99 < lower < 4


@pytest.mark.parametrize(
    ("entry", "witness"),
    [
        ({"noise": "none"}, "exact"),
        ({"clip": "none"}, "unbounded"),
        ({"seed": "public"}, "known"),
        ({"threshold": "data_dependent"}, "scale"),
        ({"independent_across": ["rounds"]}, "cancels"),
        ({"independent_across": ["silos"]}, "cancels"),
    ],
)
def test_infinite_epsilon_has_its_witness(entry, witness):
    result = bound_mechanism(made({}, entry, silos_seen=2, steps={"rounds": 2}))
    assert result.interval == (math.inf, math.inf, witness)


def test_special_entry_stands_beside_the_interval():
    mechanism = made(released=[MESSAGE, {"name": "loss", "when": "metrics are sent"}])
    result = bound_mechanism(mechanism)
    assert math.isfinite(result.interval.upper)
    assert result.special == (("loss", "metrics are sent", "exact"),)


def test_same_noise_is_no_matter_where_one_silo_is_seen():
    assert bound_mechanism(made({}, {"independent_across": ["rounds"]}, silos_seen=1)).interval.witness == ""


def test_budget_gives_the_last_round_and_the_noise_that_keep_it():
    mechanism = made(steps={"rounds": 50})
    rounds, factor = most_rounds(mechanism, 5.0), noise_factor(mechanism, 5.0, 50)
    assert (
        bound_mechanism(mechanism, rounds).interval.upper <= 5 < bound_mechanism(mechanism, rounds + 1).interval.upper
    )
    assert 4.99 < bound_mechanism(mechanism, 50, louder=factor).interval.upper <= 5
    assert noise_factor(made({}, {"noise": "none"}), 5.0, 50) == math.inf
    assert most_rounds(mechanism, 0.01) == 0


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sampling": POISSON}, "needs add_remove"),
        ({"sampling": {"silos": 0.5}}, "sampling.silos"),
        ({"sampling": {"silos": 0.5, "hidden": True}}, "claim.unit silo"),
        ({"settings": {"z": 0.0, "C": 1.0}}, "must be positive"),
        ({"settings": {"z": 1.0}}, "unknown name C"),
    ],
)
def test_unsupported_mechanisms_say_so(keys, message):
    with pytest.raises(ValueError, match=message):
        bound_mechanism(made(**keys))
