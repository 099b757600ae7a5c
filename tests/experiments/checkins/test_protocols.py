"""Random check-ins: who reports when, what that is worth, and the reports themselves."""

import math

import numpy as np
import pytest
import torch

from silodp.experiments.checkins import protocols as checkin_protocols
from silodp.experiments.checkins.protocols import (
    PROTOCOLS,
    Points,
    Shape,
    averaging,
    fixed_check_ins,
    in_random_order,
    local_epsilon,
    private_vectors,
    sampled,
    sliding,
    train,
)
from silodp.models.linear import Linear, Logistic
from silodp.privacy.shuffling.local_reports import clones_epsilon
from silodp.privacy.shuffling.unit_vectors import best_cap
from silodp.streams import Streams
from silodp.theory import THEOREMS

DELTA = 1e-6


def generator(*names):
    return Streams(7).generator(*names)


def empty(slots):
    return sum(not len(clients) for clients in slots)


def test_schedules_name_each_client_at_most_once_where_the_local_guarantee_needs_it():
    for name, protocol in PROTOCOLS.items():
        for shape in protocol.shapes:
            slots = protocol.draw(300, shape, generator(name))
            clients = np.concatenate(slots)
            assert clients.min() >= 0
            assert clients.max() < 300
            assert (len(set(clients.tolist())) == len(clients)) == protocol.once


def test_the_random_order_has_all_clients_and_sampling_draws_with_replacement():
    assert sorted(np.concatenate(in_random_order(50, Shape(), generator("o")))) == list(range(50))
    drawn = np.concatenate(sampled(5000, Shape(), generator("s")))
    assert len(set(drawn)) == pytest.approx(5000 * (1 - 1 / math.e), rel=0.03)


@pytest.mark.parametrize("shape", [Shape(), Shape(0.5), Shape(0.25, 0.5)])
def test_a_fix_leaves_as_many_slots_empty_as_proposition_3_4_says(shape):
    n, trials = 200, 300
    m = shape.slots(n)
    found = [empty(fixed_check_ins(n, shape, generator("fix", shape, trial))) for trial in range(trials)]
    exact = THEOREMS["checkins-3.4"](n=n, m=m, p0=shape.p0).value
    assert abs(np.mean(found) - exact) < 5 * np.std(found) / math.sqrt(trials)
    slots = fixed_check_ins(n, shape, generator("one"))
    assert len(slots) == m
    assert max(map(len, slots)) == 1


def test_a_sldw_leaves_as_many_slots_empty_as_proposition_4_4_says():
    n, shape, trials = 200, Shape(0.1), 300
    found = [empty(sliding(n, shape, generator("sldw", trial))) for trial in range(trials)]
    exact = THEOREMS["checkins-4.4"](n=n, m=20).terms["exact"]
    assert abs(np.mean(found) - exact) < 5 * np.std(found) / math.sqrt(trials)
    assert len(sliding(n, shape, generator("sldw"))) == n - 20 + 1


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "none"])
def test_the_local_epsilon_is_the_largest_that_the_bound_allows(name):
    protocol, n, epsilon = PROTOCOLS[name], 20_000, 0.3
    shape = protocol.shapes[-1]
    epsilon0, amplified = local_epsilon(protocol, n, shape, epsilon, DELTA)
    assert amplified
    assert epsilon0 > epsilon
    assert protocol.holds(n, shape, epsilon0, epsilon, DELTA)
    assert not protocol.holds(n, shape, 1.00001 * epsilon0, epsilon, DELTA)


def test_local_epsilons_are_those_of_the_theorems():
    for name, key, more in (
        ("shuffling", "checkins-5.1", {"n": 20_000}),
        ("a_fix", "checkins-3.2", {"m": 20_000, "p0": 1.0}),
        ("a_sldw", "checkins-4.3", {"m": 10_000}),
        ("a_avg", "checkins-4.1", {"n": 20_000, "m": 20_000, "delta2": DELTA / 2}),
    ):
        epsilon0, _ = local_epsilon(PROTOCOLS[name], 20_000, PROTOCOLS[name].shapes[0], 0.3, DELTA)
        delta = DELTA / 2 if name == "a_avg" else DELTA
        assert THEOREMS[key](**more, epsilon0=epsilon0, delta=delta).value == pytest.approx(0.3, rel=1e-4)
    epsilon0, _ = local_epsilon(PROTOCOLS["shuffling_clones"], 20_000, Shape(), 0.3, DELTA)
    assert clones_epsilon(epsilon0, 20_000, DELTA) == pytest.approx(0.3, rel=1e-4)


def test_without_amplification_a_report_keeps_the_central_epsilon():
    assert local_epsilon(PROTOCOLS["none"], 100, Shape(), 2.0, DELTA) == (2.0, False)
    assert local_epsilon(PROTOCOLS["shuffling"], 100, Shape(), 8.0, DELTA) == (8.0, False)
    # Who may be sampled twice has no such guarantee, and at one client no amplification either.
    assert local_epsilon(PROTOCOLS["subsampling"], 1, Shape(), 2.0, DELTA)[0] == pytest.approx(2.0, rel=1e-5)


def reports(vector, epsilon0, draws=40_000):
    """Reports of one vector at one ε0, (draws, d)."""
    rng, d = np.random.default_rng(3), len(vector)
    along = torch.from_numpy(best_cap(epsilon0, d).projection(rng.random(draws)))
    free = torch.from_numpy(rng.standard_normal((draws, d)))
    free = free / free.norm(dim=1, keepdim=True)
    sign, private = torch.from_numpy(rng.random(draws)), torch.tensor([True])
    stack = torch.tensor([vector], dtype=torch.float64)
    made = [private_vectors(stack, along[i : i + 1], sign[i], free[i], private) for i in range(draws)]
    return torch.cat(made).numpy()


@pytest.mark.parametrize("vector", [(0.6, 0.0, 0.8), (0.3, -0.2, 0.1), (0.0, 0.0, 0.0)])
def test_a_report_is_a_unit_vector_and_unbiased(vector):
    found = reports(vector, 1.5, draws=8000)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    mean = best_cap(1.5, 3).scale * found.mean(0)
    assert np.abs(mean - vector).max() < 5 * best_cap(1.5, 3).scale / math.sqrt(3 * 8000)


def test_a_report_of_a_short_vector_is_private_too():
    # In two dimensions the angle tells all: no sector is more than e^ε0 likelier under one vector than the other.
    counts = []
    for vector in ((1.0, 0.0), (-0.4, 0.3)):
        found = reports(vector, 1.0, draws=10_000)
        counts.append(np.histogram(np.arctan2(found[:, 1], found[:, 0]), bins=12, range=(-math.pi, math.pi))[0])
    ratio = np.abs(np.log(counts[0] / counts[1]))
    assert 0.6 < ratio.max() < 1.0 + 4 * math.sqrt(2 / min(map(min, counts)))


def records(n=400, d=6):
    rng = np.random.default_rng(5)
    x = torch.from_numpy(rng.standard_normal((n, d)))
    return x, (x @ torch.arange(1.0, d + 1, dtype=torch.float64) > 0).double()


def test_without_noise_training_is_clipped_sgd_with_falling_steps():
    x, y = records(20, 3)
    slots = [np.array([4]), np.array([], dtype=int), np.array([7, 2])]
    found = train(Logistic(3), x, y, slots, Points([math.inf], [0.5]), 0.4, False, Streams(1))[0]
    w = torch.zeros(3, dtype=torch.float64)
    for slot, clients in ((1, [4]), (3, [7, 2])):
        gradients = [(torch.sigmoid(x[k] @ w) - y[k]) * x[k] for k in clients]
        clipped = [gradient * min(1, 0.4 / gradient.norm().item()) / 0.4 for gradient in gradients]
        w = w - 0.5 / math.sqrt(slot) * sum(clipped) / len(clients)
    assert torch.allclose(found, w, atol=1e-12)


def test_a_dummy_update_is_a_step_of_full_length_and_a_skipped_slot_none():
    x, y = records(20, 3)
    points = Points([1.0, math.inf], [0.5, 0.5])
    nobody = [np.array([], dtype=int)] * 1
    with_dummies = train(Logistic(3), x, y, nobody, points, 1.0, True, Streams(1))
    assert with_dummies[0].norm() == pytest.approx(0.5)
    assert with_dummies[1].norm() == 0
    assert not train(Logistic(3), x, y, nobody, points, 1.0, False, Streams(1)).any()


def test_more_epsilon_is_a_smaller_error_and_points_do_not_depend_on_their_stack():
    x, y = records()
    slots = in_random_order(400, Shape(), generator("order"))
    points = Points([0.1, 30.0, math.inf], [0.5, 0.5, 0.5])
    weights = train(Logistic(6), x, y, slots, points, 1.0, False, Streams(2))
    errors = [float(Logistic(6).errors(x @ w, y).mean()) for w in weights]
    assert errors[2] <= errors[1] + 0.02 < errors[0]
    alone = train(Logistic(6), x, y, slots, Points([30.0], [0.5]), 1.0, False, Streams(2))
    assert torch.allclose(alone[0], weights[1], atol=1e-10)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-3)])
@pytest.mark.parametrize("model", [Linear, Logistic])
@pytest.mark.parametrize(("draw", "dummies"), [(fixed_check_ins, True), (averaging, False), (sampled, True)])
def test_the_compiled_walk_is_that_of_tensors(draw, dummies, model, dtype, tolerance, monkeypatch):
    x, y = (part.to(dtype) for part in records(60))
    x[3] = 0  # a report of a zero vector
    slots = draw(60, Shape(0.5), generator("slots"))
    points = Points([0.5, 4.0, math.inf, math.inf], [0.1, 0.1, 0.1, 0.02])
    compiled = train(model(6), x, y, slots, points, 0.7, dummies, Streams(3))
    monkeypatch.setattr(checkin_protocols, "Linear", type("NoModel", (), {}))
    plain = train(model(6), x, y, slots, points, 0.7, dummies, Streams(3))
    torch.testing.assert_close(compiled, plain, rtol=tolerance, atol=tolerance)
    assert (plain.norm(dim=1) > 0.01).all()


@pytest.mark.parametrize(
    ("key", "inside", "outside"),
    [
        ("n", [1, 2], [0]),
        ("epsilon", [1e-9, math.nextafter(checkin_protocols.LARGEST, 0)], [0.0, checkin_protocols.LARGEST, math.nan]),
        ("delta", [1e-300, math.nextafter(1.0, 0.0)], [0.0, 1.0, math.nan]),
    ],
)
def test_clients_epsilon_and_delta_are_taken_up_to_their_limits(key, inside, outside):
    given = {"n": 9, "epsilon": 1.0, "delta": 1e-6}
    for value in inside:
        found, amplified = local_epsilon(PROTOCOLS["none"], shape=Shape(), **given | {key: value})
        assert (found, amplified) == (pytest.approx((given | {key: value})["epsilon"], rel=1e-5), False)
    for value in outside:
        with pytest.raises(ValueError, match="n must be at least 1, epsilon above 0 and below 60"):
            local_epsilon(PROTOCOLS["none"], shape=Shape(), **given | {key: value})
