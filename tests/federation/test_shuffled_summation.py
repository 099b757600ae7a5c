"""The SDP algorithms over P_vec: the join of protocol, federation and plan."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
import small
import torch
from scipy.stats import chi2
from small import MODEL_CASES, Point
from small_sums import analyse, coordinate_law, shuffle, vector_messages

from silodp.algorithms import ALGORITHMS
from silodp.federation.interface import Query
from silodp.federation.shuffled_sum import ShuffledSummation, _rounded, shuffled_summation, vector_sum
from silodp.privacy.plan import Budget
from silodp.privacy.shuffling.p_vec import SumParameters
from silodp.privacy.shuffling.shuffled_plan import sent_bits, shuffled_plan
from silodp.privacy.true_epsilon import ends
from silodp.streams import Streams

SIZES = (12, 12, 13)
POINTS = [Point(None, 0.1, 1.0), Point(None, 0.1, 5.0)]
CLIPS = np.array([1.0, 5.0])
# Algorithm, its options, and for each kind of message its gradients and the records of all three silos.
CASES = {
    "sdp_prox_sgd": ({}, {"gradient": (1, 9)}),
    "sdp_prox_svrg": ({"phase_length": 2}, {"difference": (2, 18), "anchor": (1, 36)}),
    "sdp_prox_pl_svrg": ({"phase_length": 2}, {"difference": (2, 18), "anchor": (1, 36)}),
    "sdp_fedprox_spider": ({"phase_length": 2}, {"gradient": (1, 36), "difference": (2, 27)}),
}
KINDS = [(name, kind) for name, (_, kinds) in CASES.items() for kind in kinds]


def method(name):
    return ALGORITHMS[name].with_options({"rounds": 4, "silos": 3, "cohort": 3} | CASES[name][0])


def sampled(plan, sampler):
    """The plan with this sampler for what is not disjoint."""
    drawn = (one if one.sampler == "disjoint" else dataclasses.replace(one, sampler=sampler) for one in plan.releases)
    return dataclasses.replace(plan, releases=tuple(drawn))


def federation(name, summation=None):
    """Three silos, the last with a record more than the plans know of; drawn as under shuffled sums."""
    silos = small.records(MODEL_CASES["linear"], SIZES, torch.float64)
    plans = [[sampled(plan, "subset") for plan in own] for own in small.plans(method(name), POINTS, (12, 12, 12))]
    return small.federation(MODEL_CASES["linear"].model(), silos, plans, POINTS, summation=summation)


def mean(name, kind, summation=None, factor=None):
    weights = small.start(MODEL_CASES["linear"].model(), torch.float64).expand(2, -1)
    previous = -weights if kind == "difference" else None
    return federation(name, summation).mean_message(weights, 1, kind, previous, factor).numpy()


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_fine_levels_without_noise_are_the_ideal_sum(name, kind):
    """Rounding to g levels moves a coordinate's mean by less than the range over g."""
    gradients, records = CASES[name][1][kind]
    found = mean(name, kind, ShuffledSummation({kind: [SumParameters(records, 1 << 20, 0)] * 2}, Streams(1)))
    error = np.abs(found - mean(name, kind)).max(1)
    assert (error < 2 * gradients * CLIPS / (1 << 20) + 1e-12).all()
    assert error.max() > 0


@pytest.mark.parametrize(("name", "kind"), [KINDS[0], ("sdp_prox_svrg", "difference"), ("sdp_prox_svrg", "anchor")])
def test_the_mean_of_a_round_is_unbiased_with_the_stated_variance(name, kind):
    gradients, records = CASES[name][1][kind]
    parameters = SumParameters(records, 8, 20)
    sums = [ShuffledSummation({kind: [parameters] * 2}, Streams(seed)) for seed in range(300)]
    draws = np.stack([mean(name, kind, one) for one in sums])
    spread = np.sqrt(parameters.variance(2.0 * gradients)) * CLIPS[:, None] / records
    assert (np.abs(draws.mean(0) - mean(name, kind)) < 5 * spread / np.sqrt(300)).all()
    assert (draws.std(0) > 0.7 * spread).all()
    assert (draws.std(0) < 1.3 * spread).all()


def test_a_difference_whose_noise_shrinks_with_the_step_has_its_range_shrink():
    """Where β‖w − w′‖ < 2L the range is that; what is longer is scaled down to it, and noise follows it."""
    name, kind = "sdp_fedprox_spider", "difference"
    factor = torch.tensor([1e-3, 0.0], dtype=torch.float64)
    sums = [ShuffledSummation({kind: [SumParameters(27, 8, 20)] * 2}, Streams(seed)) for seed in range(200)]
    draws = np.stack([mean(name, kind, one, factor) for one in sums])
    assert np.abs(draws[:, 0].mean(0)).max() <= 2 * 1e-3 * 1.1
    spread = np.sqrt(SumParameters(27, 8, 20).variance(4e-3)) / 27
    assert draws[:, 0].std(0) == pytest.approx(spread, rel=0.35)
    assert np.abs(draws[:, 1]).max() < 1e-100


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_one_record_moves_one_vector_by_at_most_the_range(name, kind):
    """Adversarial records, a million long, either way: one of MK vectors differs, by at most 2L (4L) in ℓ2."""
    rows = []
    for extreme in (1e6, -1e6):
        one = federation(name)
        one.messages.silos[0][0][3], one.messages.silos[0][1][3] = 1e3, extreme
        w = small.start(MODEL_CASES["linear"].model(), torch.float64).expand(2, -1)
        previous = w + torch.tensor([50.0, 0, 0, 0]) if kind == "difference" else None
        release = one.releases[0][kind]
        draws = [
            one.messages.record_gradients(Query(w, r, kind, previous), 0, release, one.clip)
            for r in range(4 if release.sampler == "disjoint" else 8)
        ]
        rows.append(torch.stack(draws))
    moved = (rows[0] - rows[1]).norm(dim=3).numpy()
    assert ((moved > 0).sum(1) <= 1).all(), "one vector a sum"
    assert moved.max() > 0
    assert (moved.max((0, 1)) <= 2 * CASES[name][1][kind][0] * CLIPS * (1 + 1e-12)).all()
    if name == "sdp_prox_sgd":
        assert ((moved > 0).sum((0, 1)) <= 1).all(), "and one sum a run"


def made(name, dimension=3, epsilon=2.0):
    algorithm = ALGORITHMS[name].with_options({"rounds": 10, "silos": 5, "cohort": 5, "phase_length": 5})
    return shuffled_plan(algorithm.plan(Budget(70, 10, epsilon, 1e-4, 9.0)), 5, dimension)


@pytest.mark.parametrize("name", CASES)
def test_the_delivered_epsilon_is_the_claim_and_near_it(name):
    plan = made(name)
    found = ends([plan])
    assert 0.85 * 2.0 < found.upper <= 2.0
    assert found.lower < found.upper < 2 * found.lower
    assert "P_vec" in found.method
    assert plan.trusted_sum == 5
    for release in plan.releases:
        numbers = plan.shuffled_sum[release.kind]
        assert numbers.participants == 5 * release.records
        bits = release.records * numbers.bits(plan.shuffled_sum.dimension)
        assert bits == release.records * 3 * (numbers.levels + numbers.noise_bits)


@pytest.mark.parametrize("name", ["sdp_prox_svrg", "sdp_fedprox_spider"])
def test_the_noise_of_a_plan_is_what_the_federation_adds(name):
    """From 6 rounds of 30 coordinates at records of gradient zero, which round to a level (g is even): less by that."""
    plan = made(name, 30)
    releases = {one.kind: one for one in plan.releases}
    model = MODEL_CASES["linear"].model(30)
    silos = [(torch.zeros((70, 30), dtype=torch.float64), torch.zeros(70, dtype=torch.float64))] * 5
    w = torch.zeros((1, 30), dtype=torch.float64)
    point = [Point(2.0, 0.1, 4.0)]
    for kind, release in releases.items():
        draws = []
        for seed in range(6):
            summation = shuffled_summation([plan], 30, Streams(seed))
            one = small.federation(model, silos, [[plan] * 5], point, summation=summation)
            draws.append(one.mean_message(w, 0, kind, w if kind == "difference" else None).numpy()[0])
        numbers, stated = plan.shuffled_sum[kind], release.noise * 4.0 / np.sqrt(5)
        rounding = numbers.participants / 4 / (numbers.participants / 4 + numbers.trials / 4)
        measured = np.std(draws) / stated
        # 180 draws: four standard errors.
        assert np.sqrt(1 - rounding) - 0.21 < measured < 1.21
        assert abs(np.mean(draws)) < 5 * stated / np.sqrt(180)


def test_a_plan_whose_sums_are_for_another_model_is_refused():
    plan = made("sdp_prox_svrg")
    with pytest.raises(ValueError, match="dimension = 3: must be 4, the model's"):
        shuffled_summation([plan], 4, STREAMS)
    with pytest.raises(ValueError, match="dimension = None: must be 3"):
        shuffled_summation([dataclasses.replace(plan, shuffled_sum=None)], 3, STREAMS)


def test_a_point_that_leaves_a_stack_takes_its_numbers_of_every_kind_with_it():
    plans = [made("sdp_prox_svrg", epsilon=epsilon) for epsilon in (1.0, 2.0, 4.0)]
    summation = shuffled_summation(plans, 3, STREAMS)
    summation.keep_points(torch.tensor([True, False, True]))
    assert summation.parameters == shuffled_summation(plans[::2], 3, STREAMS).parameters
    assert summation.parameters != shuffled_summation(plans[:2], 3, STREAMS).parameters
    assert set(summation.parameters) == {"difference", "anchor"}


def test_one_silo_a_round_may_send_alone():
    options = {"rounds": 10, "silos": 5, "cohort": 1, "phase_length": 5}
    plan = shuffled_plan(ALGORITHMS["sdp_prox_sgd"].with_options(options).plan(Budget(70, 10, 2.0, 1e-4, 9.0)), 1, 3)
    silos = [(torch.ones((70, 3), dtype=torch.float64), torch.ones(70, dtype=torch.float64))] * 5
    summation, w = shuffled_summation([plan], 3, STREAMS), torch.zeros((1, 3), dtype=torch.float64)
    model, point = MODEL_CASES["linear"].model(3), [Point(2.0, 0.1, 4.0)]
    one = small.federation(model, silos, [[plan] * 5], point, 1, summation=summation)
    assert one.mean_message(w, 0, plan.releases[0].kind).isfinite().all()


def test_records_drawn_with_replacement_prove_nothing():
    """A record that is drawn twice is two participants of a sum, which no bound here covers."""
    found = ends([sampled(made("sdp_prox_svrg"), "replacement")])
    assert found.upper == np.inf
    assert "several participants" in found.method


@pytest.mark.parametrize("name", CASES)
def test_a_whole_run_over_shuffled_sums_stays_near_the_ideal_one_without_noise(name, monkeypatch):
    """ε = 200: both kinds of noise are small; every message goes through the protocol, and its bits are counted."""
    sent = []

    def counting(vectors, bound, parameters, generator):
        (point,) = parameters
        assert len(vectors) == point.participants
        sent.append(vectors[:, 0].numel() * (point.levels + point.noise_bits))
        return vector_sum(vectors, bound, parameters, generator)

    monkeypatch.setattr("silodp.federation.shuffled_sum.vector_sum", counting)
    algorithm, silos = method(name), small.records(MODEL_CASES["linear"], (12, 12, 12), torch.float64)
    model, point = MODEL_CASES["linear"].model(), [Point(200.0, 0.05, 5.0)]
    plans = [[shuffled_plan(plan, 3, 4) for plan in own] for own in small.plans(algorithm, point, (12, 12, 12))]
    first = small.start(model, torch.float64)
    summed = small.federation(model, silos, plans, point, summation=shuffled_summation([plans[0][0]], 4, Streams(3)))
    plain = small.federation(model, silos, small.plans(algorithm, [Point(None, 0.05, 5.0)], (12, 12, 12)), point)
    found = small.iterates(algorithm, summed, first, 1)[-1]
    wanted = small.iterates(algorithm, plain, first, 1)[-1]
    assert 0 < float((found - wanted).norm()) < 0.5 * float((wanted - first).norm())
    assert sent_bits(plans[0][0]) == sum(sent) / 3
    assert math.isnan(sent_bits(small.plans(algorithm, point, (12, 12, 12))[0][0]))


def test_other_ways_to_clip_are_refused():
    plan = ALGORITHMS["sdp_prox_svrg"](10, phase_length=2, silos=5, cohort=5).plan(Budget(70, 10, 2.0, 1e-4, 9.0))
    releases = tuple(dataclasses.replace(one, clipping="per_tensor") for one in plan.releases)
    with pytest.raises(ValueError, match="summation: 'shuffled': must be ideal where clipping is per_tensor"):
        shuffled_plan(dataclasses.replace(plan, releases=releases), 5, 3)


STREAMS = Streams(11)
CLIP = torch.tensor([1.5])


@pytest.mark.parametrize("way", ["binomial", "bitwise"])
def test_both_ways_have_the_enumerated_law(way):
    """Chi-square of 3,000 draws against the convolution of all bits; both coordinates."""
    parameters = SumParameters(3, levels=4, noise_bits=5, chance=0.3)
    rows = STREAMS.generator("vectors").standard_normal((3, 1, 2))
    messages = torch.from_numpy(1.2 * rows / np.linalg.norm(rows, axis=2, keepdims=True))
    generator = STREAMS.generator("law", way)
    drawn = []
    for _ in range(3000):
        if way == "binomial":
            drawn.append(vector_sum(messages, CLIP, [parameters], generator))
        else:
            bits = vector_messages(messages, CLIP, parameters, generator)
            drawn.append(analyse(shuffle(bits, generator), CLIP, parameters))
    # How many bits were 1, from estimates of the sum.
    ones = (torch.stack(drawn)[:, 0].numpy() + 3 * 1.5) * parameters.levels / 3 + parameters.trials * parameters.chance
    counts = np.round(ones).astype(int)
    assert np.allclose(ones, counts, atol=1e-6)
    for j in range(2):
        law = coordinate_law(messages[:, 0, j].numpy() + 1.5, parameters, 3.0)
        seen = np.bincount(counts[:, j], minlength=len(law))
        kept = law * 3000 >= 5
        assert seen[law == 0].sum() == 0
        wanted, found = np.append(law[kept], law[~kept].sum()) * 3000, np.append(seen[kept], seen[~kept].sum())
        statistic = ((found - wanted) ** 2 / np.maximum(wanted, 1e-9)).sum()
        assert chi2.sf(statistic, len(wanted) - 1) > 1e-4


def test_a_point_does_not_depend_on_its_stack():
    points = [SumParameters(5, 8, 3), SumParameters(5, 16, 40, 0.25)]
    clip = torch.tensor([1.0, 2.0])
    messages = torch.randn(5, 2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    both = vector_sum(messages, clip, points, STREAMS.generator("stack"))
    for g in range(2):
        alone = vector_sum(messages[:, g : g + 1], clip[g : g + 1], points[g : g + 1], STREAMS.generator("stack"))
        assert torch.equal(alone[0], both[g])
    assert both.shape == (2, 7)


def test_a_value_on_a_level_keeps_it_whatever_is_drawn():
    values = np.arange(6.0).reshape(3, 1, 2)
    np.testing.assert_array_equal(_rounded(values, SimpleNamespace(random=np.zeros)), values)


def test_longer_vectors_are_scaled_to_the_bound():
    """Privacy is stated for norm ≤ L, so the participant enforces it; single precision may exceed it by a hair."""
    parameters = SumParameters(2, levels=64, noise_bits=1)
    long = torch.tensor([[[30.0, 40.0]], [[0.3, 0.4]]])
    scaled = torch.tensor([[[0.9, 1.2]], [[0.3, 0.4]]])
    first = vector_sum(long, CLIP, [parameters], STREAMS.generator("long"))
    assert torch.allclose(first, vector_sum(scaled, CLIP, [parameters], STREAMS.generator("long")), atol=2 * 3 / 64)
    assert abs(float(first[0, 0]) - 1.2) <= 3 / 64 * 3
