"""How far one record can move a silo's message."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import small
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small import DTYPES, MODEL_CASES

from silodp.algorithms import ALGORITHMS
from silodp.federation.messages import Messages
from silodp.federation.rng import Streams
from silodp.privacy.plan import Budget

STREAMS = Streams(11).child("messages")
# Rounding of a sum of clipped gradients, in units of the clip.
SLACK = {"float64": 1e-12, "float32": 2e-5}


def release_of(name, kind, n=8, K=6, **options):
    algorithm = ALGORITHMS[name].with_options({"rounds": 3, **options})
    return algorithm.plan(Budget(n, 3, 1.0, 0.01, 1.0, K))[kind]


GRADIENT = release_of("minibatch_sgd", "gradient")
DIFFERENCES = [release_of("fedprox_spider", "difference", phase_length=3), release_of("fed_spider", "difference")]
STEP = release_of("local_sgd", "step")


def drawn(n, K, r, kind):
    """Record numbers of a message, from its stream."""
    return STREAMS.generator("records", 0, r, kind).integers(0, n, size=K)


def neighbours(silo, j, x, y):
    """The silo with record j replaced."""
    features, labels = silo[0].clone(), silo[1].clone()
    features[j], labels[j] = (
        torch.tensor(x, dtype=torch.float64).to(features),
        torch.tensor(y, dtype=torch.float64).to(labels),
    )
    return features, labels


def extreme(case, dtype, j):
    """Records made to pull as far as they can: opposite, huge, tiny, zero."""
    huge = 1e12 if dtype == "float32" else 1e60
    xs = [
        [1, 0, 0, 0],
        [-1, 0, 0, 0],
        [huge] * 4,
        [-huge, huge, -huge, huge],
        [1e-20] * 4,
        [0, 0, 0, 0],
        [1e4, 0, 0, -1e4],
    ]
    ys = [-huge, -1.0, 0.0, 3.0, huge] if case.classes is None else range(case.classes)
    found = list(itertools.product(xs, ys))
    return found[j % len(found)]


def moved(case, dtype, kind, sensitivity, x_old, y_old, x_new, y_new, scales, clips, noise, seed):
    """Largest move of a silo's message over the bound 2·gradients·L·J/K, when one record is replaced."""
    n, K, generator = 8, 6, np.random.default_rng(seed)
    model = case.model()
    ((x, y),) = small.records(case, (n,), DTYPES[dtype], seed)
    silo = neighbours((x, y), 3, x_old, y_old)
    other = neighbours((x, y), 3, x_new, y_new)
    w = torch.from_numpy(generator.standard_normal((len(clips), model.size)) * np.array(scales)[:, None]).to(
        DTYPES[dtype]
    )
    previous = torch.from_numpy(generator.standard_normal((len(clips), model.size))).to(DTYPES[dtype])
    clip = torch.tensor(clips, dtype=torch.float64).to(DTYPES[dtype])
    worst = 0.0
    for r in range(4):
        times = int((drawn(n, K, r, kind) == 3).sum())
        a, b = (
            Messages(model, [records], STREAMS).message(
                w, 0, K, clip, clip * noise, round=r, kind=kind, previous=previous if kind == "difference" else None
            )
            for records in (silo, other)
        )
        assert torch.isfinite(a).all()
        assert torch.isfinite(b).all()
        distance = (a - b).double().norm(dim=1) / clip.double()
        if times == 0:
            assert torch.equal(a, b), "a record that was not drawn moves nothing"
        else:
            assert (distance <= sensitivity * times + SLACK[dtype] * (1 + 10 * noise)).all()
            worst = max(worst, float(distance.max()) / (sensitivity * times))
    return worst


@pytest.mark.parametrize("noise", [0.0, pytest.param(3.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODEL_CASES)
def test_no_message_moves_by_more_than_its_sensitivity_between_the_worst_neighbours(name, dtype, noise):
    case, clips, scales = MODEL_CASES[name], [0.01, 1.0, 100.0], [0.1, 1.0, 30.0]
    worst = {"gradient": 0.0, "difference": 0.0}
    total = 35 if case.classes is None else 7 * case.classes
    for j in range(total):
        for step in (1, 3, total // 2):
            old, new = extreme(case, dtype, j), extreme(case, dtype, j + step)
            for kind, release in [("gradient", GRADIENT), *(("difference", one) for one in DIFFERENCES)]:
                found = moved(case, dtype, kind, release.sensitivity, *old, *new, scales, clips, noise, j)
                worst[kind] = max(worst[kind], found)
    # The search is worth something: it finds pairs that come near the bound.
    assert worst["gradient"] > 0.7


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(MODEL_CASES)),
    st.sampled_from(["gradient", "difference"]),
    *(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4) for _ in range(2)),
    *(st.integers(0, 10**6) for _ in range(2)),
    st.floats(-6, 6),
    st.floats(-6, 6),
    st.integers(0, 1000),
)
def test_no_message_moves_by_more_than_its_sensitivity(name, kind, x_old, x_new, y_old, y_new, log_w, log_clip, seed):
    """Any records and weights, clips over twelve orders of magnitude."""
    case = MODEL_CASES[name]
    if case.classes is not None:
        y_old, y_new = y_old % case.classes, y_new % case.classes
    release = GRADIENT if kind == "gradient" else DIFFERENCES[0]
    moved(
        case,
        "float64",
        kind,
        release.sensitivity,
        x_old,
        y_old,
        x_new,
        y_new,
        [10**log_w] * 2,
        [10**log_clip, 1.0],
        0,
        seed,
    )


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(MODEL_CASES)),
    st.sampled_from(sorted(DTYPES)),
    *(st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4) for _ in range(2)),
    *(st.integers(0, 1000) for _ in range(2)),
    st.floats(-4, 4),
    st.floats(-4, 1),
    st.integers(0, 1000),
)
@example("perceptron-2", "float32", [1e6] * 4, [-1e6] * 4, 0, 1, 0.0, 0.0, 0)
@example("logistic", "float32", [1.0] * 4, [-1.0] * 4, 0, 0, 0.0, -2.0, 0)
def test_no_local_step_moves_by_more_than_its_sensitivity(
    name, dtype, x_old, x_new, y_old, y_new, log_clip, log_eta, seed
):
    """One step from the same weights with the same noise: w moves by at most η·2L."""
    case, kind = MODEL_CASES[name], "step"
    if case.classes is not None:
        y_old, y_new = y_old % case.classes, y_new % case.classes
    model, one = case.model(), DTYPES[dtype]
    ((x, y),) = small.records(case, (1,), one, seed)
    w = small.start(model, one, seed)[None]
    clip, eta = torch.tensor([10**log_clip], dtype=one), torch.tensor([10**log_eta], dtype=one)
    a, b = (
        Messages(model, [neighbours((x, y), 0, *record)], STREAMS).local_model(
            w, 0, 1, clip, 2 * clip, eta, round=0, kind=kind
        )
        for record in ((x_old, y_old), (x_new, y_new))
    )
    assert STEP.records == 1
    bound = STEP.sensitivity * clip.double() * eta.double()
    # What the subtraction from the weights rounds off, beside the clip's own rounding.
    rounding = torch.finfo(one).eps * 10 * (w.norm() + eta * clip * 30)
    assert float((a - b).double().norm()) <= float(bound * (1 + SLACK[dtype]) + rounding)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 2, 9])
def test_the_sensitivity_of_a_gradient_is_attained(K, dtype):
    """Least squares with targets of ±∞ in all but name: gradients +L·x and −L·x, so each occurrence moves 2L/K."""
    case, n = MODEL_CASES["linear"], 4
    silo = small.records(case, (n,), DTYPES[dtype])[0]
    clip = torch.tensor([0.7], dtype=DTYPES[dtype])
    attained = 0
    for r in range(40):
        times = int((drawn(n, K, r, "gradient") == 1).sum())
        a, b = (
            Messages(case.model(), [neighbours(silo, 1, [0.5, 0, 0, 0], y)], STREAMS).message(
                torch.zeros((1, 4), dtype=DTYPES[dtype]), 0, K, clip, clip, round=r
            )
            for y in (1e4, -1e4)
        )
        bound = release_of("minibatch_sgd", "gradient", n=10, K=K).sensitivity * 0.7 * times
        assert float((a - b).norm()) == pytest.approx(bound, rel=1e-5, abs=1e-7)
        attained += times > 1
    assert attained > 0 or K == 1


@pytest.mark.parametrize("name", ["fedprox_spider", "fed_spider"])
def test_the_sensitivity_of_a_difference_is_attained(name):
    """Two records whose gradients turn from −L to +L between the weights, in almost opposite directions.

    A convex loss's gradient grows along the move, so the two cannot be opposite, but they can be as good as that.
    """
    case, n, K, tilt = MODEL_CASES["linear"], 4, 5, 1e-4
    silo = small.records(case, (n,), torch.float64)[0]
    previous, w = torch.zeros((1, 4), dtype=torch.float64), torch.zeros((1, 4), dtype=torch.float64)
    previous[0, 1], w[0, 1] = -1e8, 1e8
    clip = torch.tensor([0.7], dtype=torch.float64)
    sensitivity = release_of(name, "difference", n=10, K=K, phase_length=2).sensitivity
    seen = 0
    for r in range(10):
        times = int((drawn(n, K, r, "difference") == 1).sum())
        a, b = (
            Messages(case.model(), [neighbours(silo, 1, [sign, tilt, 0, 0], 0.0)], STREAMS).message(
                w, 0, K, clip, clip, round=r, kind="difference", previous=previous
            )
            for sign in (1.0, -1.0)
        )
        assert float((a - b).norm()) == pytest.approx(sensitivity * 0.7 * times, rel=1e-7, abs=1e-12)
        seen = max(seen, times)
    assert seen > 1


def test_the_sensitivity_of_a_local_step_is_attained():
    case = MODEL_CASES["linear"]
    silo = small.records(case, (1,), torch.float64)[0]
    clip, eta = torch.tensor([0.7], dtype=torch.float64), torch.tensor([0.1], dtype=torch.float64)
    a, b = (
        Messages(case.model(), [neighbours(silo, 0, [2.0, 0, 0, 0], y)], STREAMS).local_model(
            torch.zeros((1, 4), dtype=torch.float64), 0, 1, clip, clip, eta, round=0
        )
        for y in (1e4, -1e4)
    )
    assert float((a - b).norm()) == pytest.approx(STEP.sensitivity * 0.7 * 0.1, rel=1e-12)


def test_clipping_the_average_would_not_bound_one_record_so():
    """What the bound rests on: with the same records, an averaged gradient clipped as one vector moves by 2L whole."""
    case, K = MODEL_CASES["linear"], 50
    model, x = case.model(), torch.zeros((K, 4), dtype=torch.float64)
    x[:, 0] = 1
    y = torch.zeros(K, dtype=torch.float64)
    clip, w = torch.tensor([1.0], dtype=torch.float64), torch.zeros((1, 4), dtype=torch.float64)
    means = []
    for extreme_y in (1e6, -1e6):
        y[0] = extreme_y
        means.append(model.clipped_gradient_sum(w, x, y, torch.tensor([math.inf], dtype=torch.float64)) / K)
    assert float((means[0] / means[0].norm() - means[1] / means[1].norm()).norm()) == pytest.approx(2.0)
    per_record = []
    for extreme_y in (1e6, -1e6):
        y[0] = extreme_y
        per_record.append(model.clipped_gradient_sum(w, x, y, clip) / K)
    assert float((per_record[0] - per_record[1]).norm()) == pytest.approx(2 / K)


# The convex paper's other ways of drawing and clipping.


def test_disjoint_batches_cover_the_silo_once_and_then_end():
    case, n = MODEL_CASES["linear"], 7
    silo, model = small.records(case, (n,), torch.float64)[0], case.model()
    messages = Messages(model, [silo], STREAMS)
    w = torch.zeros((1, 4), dtype=torch.float64)
    free, none = torch.full((1,), math.inf, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    parts = [messages.message(w, 0, 2, free, none, round=r, sampler="disjoint") for r in range(3)]
    parts.append(messages.message(w, 0, 1, free, none, round=6, sampler="disjoint") / 2)
    whole = model.clipped_gradient_sum(w, *silo, free)
    torch.testing.assert_close(sum(2 * part for part in parts), whole, rtol=1e-12, atol=0)
    with pytest.raises(ValueError, match="round 3: 2 new records a round: silo 0 has only 7"):
        messages.message(w, 0, 2, free, none, round=3, sampler="disjoint")


def test_a_subset_is_drawn_anew_for_every_message_and_holds_no_record_twice():
    """Linear records x_i = e_i at w = 0: the mean of K gradients −y_i e_i shows which were drawn."""
    n, K = 9, 4
    silo = (torch.eye(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64))
    messages = Messages(MODEL_CASES["linear"].model(n), [silo], STREAMS)
    w, free = torch.zeros((1, n), dtype=torch.float64), torch.full((1,), math.inf, dtype=torch.float64)
    none, sent = torch.zeros(1, dtype=torch.float64), {}
    for kind, r in itertools.product(("difference", "anchor"), range(200)):
        sent[kind, r] = messages.message(w, 0, K, free, none, round=r, kind=kind, sampler="subset")[0].numpy()
    drawn = np.stack(list(sent.values())) * -K
    assert (np.isclose(drawn, 0) | np.isclose(drawn, 1)).all()
    assert np.allclose(drawn.sum(1), K)
    counts = drawn.sum(0)
    spread = math.sqrt(400 * K / n * (1 - K / n))
    assert (abs(counts - 400 * K / n) < 4 * spread).all()
    assert len({tuple(np.round(row)) for row in drawn}) > 100
    with pytest.raises(ValueError, match="larger sample than population"):
        messages.message(w, 0, n + 1, free, none, round=0, sampler="subset")


@pytest.mark.parametrize("sampler", ["subset", "replacement"])
def test_the_vectors_of_a_shuffled_sum_are_those_that_a_message_averages(sampler):
    case, clip = MODEL_CASES["linear"], torch.tensor([0.5, 2.0], dtype=torch.float64)
    messages = Messages(case.model(), small.records(case, (8,), torch.float64), STREAMS)
    w, before = torch.ones((2, 4), dtype=torch.float64), torch.zeros((2, 4), dtype=torch.float64)
    how = {"round": 3, "kind": "difference", "previous": before, "sampler": sampler}
    vectors = messages.record_gradients(w, 0, 5, clip, **how)
    assert vectors.shape == (5, 2, 4)
    torch.testing.assert_close(vectors.mean(0), messages.message(w, 0, 5, clip, 0 * clip, **how))
    assert (vectors.norm(dim=2) <= 2 * clip + 1e-12).all()


def test_a_clipped_mean_moves_by_two_clips_however_large_the_batch():
    """The sensitivity that a release with clipping = batch_mean states is attained, and is not 2L/K."""
    case, K, w = MODEL_CASES["linear"], 40, torch.zeros((1, 4), dtype=torch.float64)
    release = dataclasses.replace(release_of("minibatch_sgd", "gradient", n=50, K=K), clipping="batch_mean")
    assert release.sensitivity == 2
    silo, clip = small.records(case, (50,), torch.float64)[0], torch.tensor([0.7], dtype=torch.float64)
    moved = []
    for r in range(20):
        a, b = (
            Messages(case.model(), [neighbours(silo, 1, [0.5, 0, 0, 0], y)], STREAMS).message(
                w, 0, K, clip, clip, round=r, clipping="batch_mean"
            )
            for y in (1e9, -1e9)
        )
        moved.append(float((a - b).norm()))
    assert max(moved) == pytest.approx(2 * 0.7, rel=1e-5)
    quiet = Messages(case.model(), [silo], STREAMS).message(
        w, 0, K, clip * 1e-3, clip * 0, round=0, clipping="batch_mean"
    )
    assert float(quiet.norm()) == pytest.approx(0.7e-3)
    free = torch.tensor([math.inf], dtype=torch.float64)
    a, b = (
        Messages(case.model(), [silo], STREAMS).message(w, 0, K, free, clip * 0, round=0, clipping=how)
        for how in ("batch_mean", "record")
    )
    torch.testing.assert_close(a, b, rtol=1e-12, atol=0)


@pytest.mark.parametrize("model", MODEL_CASES)
def test_tensors_clipped_one_by_one_move_the_mean_by_their_root_as_much(model):
    """Each tensor is within L, a record's gradient within √tensors·L, and a clip that binds nothing changes nothing."""
    case, K = MODEL_CASES[model], 5
    made, silo = case.model(), small.records(case, (9,), torch.float64)[0]
    messages, w = Messages(made, [silo], STREAMS), small.start(made, torch.float64)[None]
    free, clip = torch.tensor([math.inf], dtype=torch.float64), torch.tensor([1e-3], dtype=torch.float64)
    a, b = (messages.message(w, 0, K, free, clip * 0, round=0, clipping=how) for how in ("per_tensor", "record"))
    torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-14)
    one = messages.message(w, 0, 1, clip, clip * 0, round=1, clipping="per_tensor")
    raw = messages.message(w, 0, 1, free, clip * 0, round=1)
    for block in made.blocks:
        part, whole = one[0, block.start : block.stop], raw[0, block.start : block.stop]
        wanted = whole * min(1.0, 1e-3 / float(whole.norm()))
        torch.testing.assert_close(part, wanted, rtol=1e-9, atol=1e-15)
    assert float(one.norm()) <= math.sqrt(len(made.blocks)) * 1e-3 * (1 + 1e-9)
    release = dataclasses.replace(GRADIENT, clipping="per_tensor", tensors=len(made.blocks))
    assert release.sensitivity == pytest.approx(math.sqrt(len(made.blocks)) * GRADIENT.sensitivity)
