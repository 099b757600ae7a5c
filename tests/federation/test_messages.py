"""How far one record can move a silo's message, and which records a message draws."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import small
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small import DTYPES, MODEL_CASES, TOLERANCE, Point

from silodp.algorithms import ALGORITHMS
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.privacy.plan import Budget, Release
from silodp.streams import Streams

STREAMS = Streams(11).child("messages")
FREE, NONE = torch.full((1,), math.inf, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)


def release_of(name, kind, n=8, K=6, **options):
    algorithm = ALGORITHMS[name].with_options({"rounds": 3, **options})
    return algorithm.plan(Budget(n, 3, 1.0, 0.01, 1.0, K))[kind]


GRADIENT = release_of("minibatch_sgd", "gradient")
DIFFERENCE = release_of("fedprox_spider", "difference", phase_length=3)


def moves(model, silo, j, old, new, query, release, clip, noise=None):
    """(times that record j is drawn, ‖difference‖ (G,)) of the messages with record j as `old` and as `new`."""
    sent = []
    for x, y in (old, new):
        features, labels = silo[0].clone(), silo[1].clone()
        features[j], labels[j] = torch.tensor(x).to(features), torch.tensor(y).to(labels)
        messages = Messages(model, [(features, labels)], STREAMS)
        sent.append(messages.message(query, 0, release, clip, clip if noise is None else noise))
    assert all(torch.isfinite(message).all() for message in sent)
    drawn = messages.draw(0, release, query.round)
    return int((drawn == j).sum()), (sent[0] - sent[1]).double().norm(dim=1)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(MODEL_CASES)),
    st.sampled_from([GRADIENT, DIFFERENCE]),
    *(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4) for _ in range(2)),
    *(st.integers(0, 10**6) for _ in range(2)),
    st.floats(-6, 6),
    st.floats(-6, 6),
    st.integers(0, 1000),
)
def test_no_message_moves_by_more_than_its_sensitivity(name, release, x, x_new, y, y_new, log_w, log_clip, seed):
    """Any records and weights, clips over twelve orders of magnitude; a record that is not drawn moves nothing."""
    case, generator = MODEL_CASES[name], np.random.default_rng(seed)
    y, y_new = (float(label % case.classes if case.classes else label) for label in (y, y_new))
    model, clip = case.model(), torch.tensor([10**log_clip, 1.0], dtype=torch.float64)
    (silo,) = small.records(case, (8,), torch.float64, seed)
    w, previous = (torch.from_numpy(generator.standard_normal((2, model.size)) * s) for s in (10**log_w, 1.0))
    for r in range(4):
        query = Query(w, r, release.kind, previous if release.gradients > 1 else None)
        times, distance = moves(model, silo, 3, (x, y), (x_new, y_new), query, release, clip, 0 * clip)
        assert (distance <= clip * (release.sensitivity * times + 1e-12)).all()
        assert times > 0 or not distance.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("K", [1, 2, 9])
def test_the_sensitivity_of_a_gradient_is_attained(K, dtype):
    """Least squares with targets of ±∞ in all but name: gradients +L·x and −L·x, so each occurrence moves 2L/K."""
    case, release = MODEL_CASES["linear"], release_of("minibatch_sgd", "gradient", n=10, K=K)
    (silo,), clip = small.records(case, (4,), DTYPES[dtype]), torch.tensor([0.7], dtype=DTYPES[dtype])
    attained, x, w = 0, [0.5, 0, 0, 0], torch.zeros((1, 4), dtype=DTYPES[dtype])
    for r in range(40):
        times, distance = moves(case.model(), silo, 1, (x, 1e4), (x, -1e4), Query(w, r), release, clip)
        assert float(distance) == pytest.approx(release.sensitivity * 0.7 * times, rel=1e-5, abs=1e-7)
        attained += times > 1
    assert attained > 0 or K == 1


@pytest.mark.parametrize("name", ["fedprox_spider", "fed_spider"])
def test_the_sensitivity_of_a_difference_is_attained(name):
    """Two records whose gradients turn from −L to +L between the weights, in almost opposite directions.

    A convex loss's gradient grows along the move, so the two cannot be opposite, but they can be as good as that.
    """
    case, release = MODEL_CASES["linear"], release_of(name, "difference", n=10, K=5, phase_length=2)
    (silo,), clip = small.records(case, (4,), torch.float64), torch.tensor([0.7], dtype=torch.float64)
    previous, w = torch.tensor([[[0, -1e8, 0, 0]], [[0, 1e8, 0, 0]]], dtype=torch.float64)
    old, new = (([sign, 1e-4, 0, 0], 0.0) for sign in (1.0, -1.0))
    drawn = 0
    for r in range(10):
        query = Query(w, r, "difference", previous)
        times, distance = moves(case.model(), silo, 1, old, new, query, release, clip)
        assert float(distance) == pytest.approx(release.sensitivity * 0.7 * times, rel=1e-7, abs=1e-12)
        drawn = max(drawn, times)
    assert drawn > 1


def test_a_clipped_mean_moves_by_two_clips_however_large_the_batch():
    """The sensitivity that a release with clipping = batch_mean states is attained, and is not 2L/K."""
    case, w = MODEL_CASES["linear"], torch.zeros((1, 4), dtype=torch.float64)
    by_record = release_of("minibatch_sgd", "gradient", n=50, K=40)
    release = dataclasses.replace(by_record, clipping="batch_mean")
    assert release.sensitivity == 2
    (silo,), clip, x = small.records(case, (50,), torch.float64), torch.tensor([0.7]).double(), [0.5, 0, 0, 0]
    moved = [moves(case.model(), silo, 1, (x, 1e9), (x, -1e9), Query(w, r), release, clip)[1] for r in range(20)]
    assert float(max(moved)) == pytest.approx(2 * 0.7, rel=1e-5)
    messages = Messages(case.model(), [silo], STREAMS)
    assert float(messages.message(Query(w, 0), 0, release, clip * 1e-3, NONE).norm()) == pytest.approx(0.7e-3)
    a, b = (messages.message(Query(w, 0), 0, how, FREE, NONE) for how in (release, by_record))
    torch.testing.assert_close(a, b, rtol=1e-12, atol=0)


@pytest.mark.parametrize("mixing", [(1.0,), (1.0, -0.5), (1.0, -0.5, -0.125)])
def test_a_message_asked_again_is_the_same_whatever_was_sent_meanwhile(mixing):
    """Message r has Σ_s b_s z_{r−s}, also where later ones were sent before it is asked again."""
    case = MODEL_CASES["linear"]
    messages = Messages(case.model(), small.records(case, (9,), torch.float64), STREAMS)
    one, w = torch.ones(1).double(), torch.ones(1, 4).double()
    release = Release("gradient", 3, 2, 1.0, sampler="disjoint", **({"mixing": mixing} if len(mixing) > 1 else {}))
    first, again, quiet = (
        [messages.message(Query(w, r), 0, release, one, scale * one) for r in range(4)] for scale in (1, 1, 0)
    )
    noise = [messages.noise(1, w, 0, r, "gradient") for r in range(4)]
    for r in range(4):
        assert torch.equal(first[r], again[r])
        added = sum(b * noise[r - s] for s, b in enumerate(mixing) if s <= r)
        torch.testing.assert_close(first[r] - quiet[r], added)


def test_disjoint_batches_cover_the_silo_once_and_then_end():
    case = MODEL_CASES["linear"]
    (silo,), model = small.records(case, (7,), torch.float64), case.model()
    messages, w = Messages(model, [silo], STREAMS), torch.zeros((1, 4), dtype=torch.float64)
    parts = [2 * small.sent(messages, w, 0, 2, FREE, NONE, round=r, sampler="disjoint") for r in range(3)]
    parts.append(small.sent(messages, w, 0, 1, FREE, NONE, round=6, sampler="disjoint"))
    torch.testing.assert_close(sum(parts), model.clipped_gradient_sum(w, *silo, FREE), rtol=1e-12, atol=0)
    with pytest.raises(ValueError, match="round 3: 2 new records a round: silo 0 has only 7"):
        small.sent(messages, w, 0, 2, FREE, NONE, round=3, sampler="disjoint")


def test_a_subset_is_drawn_anew_for_every_message_and_holds_no_record_twice():
    """Linear records x_i = e_i at w = 0: the mean of K gradients −y_i e_i shows which were drawn."""
    n, K = 9, 4
    silo = (torch.eye(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64))
    messages = Messages(MODEL_CASES["linear"].model(n), [silo], STREAMS)
    w = torch.zeros((1, n), dtype=torch.float64)
    drawn = -K * np.stack(
        [
            small.sent(messages, w, 0, K, FREE, NONE, round=r, kind=kind, sampler="subset")[0].numpy()
            for kind, r in itertools.product(("difference", "anchor"), range(200))
        ]
    )
    assert (np.isclose(drawn, 0) | np.isclose(drawn, 1)).all()
    assert np.allclose(drawn.sum(1), K)
    assert (abs(drawn.sum(0) - 400 * K / n) < 4 * math.sqrt(400 * K / n * (1 - K / n))).all()
    assert len({tuple(np.round(row)) for row in drawn}) > 100


@pytest.mark.parametrize(("sampler", "K"), [("subset", 5), ("replacement", 5), ("all", 8)])
def test_the_vectors_of_a_shuffled_sum_are_those_that_a_message_averages(sampler, K):
    case, clip = MODEL_CASES["linear"], torch.tensor([0.5, 2.0], dtype=torch.float64)
    messages = Messages(case.model(), small.records(case, (8,), torch.float64), STREAMS)
    w, before = torch.ones((2, 4), dtype=torch.float64), torch.zeros((2, 4), dtype=torch.float64)
    query, release = Query(w, 3, "difference", before), Release("difference", 1, K, 0.0, sampler=sampler)
    vectors = messages.record_gradients(query, 0, release, clip)
    assert vectors.shape == (K, 2, 4)
    torch.testing.assert_close(vectors.mean(0), messages.message(query, 0, release, clip, 0 * clip))
    assert (vectors.norm(dim=2) <= 2 * clip + 1e-12).all()


def noise_of(messages, w, clip, scale, silo, r, kind, K=3, previous=None):
    """A message's noise: what is left when the same message without it is taken away; (G, d)."""
    loud = small.sent(messages, w, silo, K, clip, scale, round=r, kind=kind, previous=previous)
    quiet = small.sent(messages, w, silo, K, clip, scale * 0, round=r, kind=kind, previous=previous)
    return (loud - quiet).double()


def wide(dtype):
    """Least squares on 400 features with zero records, so that a message is its noise; and the weights 0."""
    zero = [(torch.zeros((4, 400), dtype=dtype), torch.zeros(4, dtype=dtype)) for _ in range(3)]
    return Messages(MODEL_CASES["linear"].model(400), zero, STREAMS), torch.zeros((1, 400), dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "kind"),
    [("minibatch_sgd", "gradient"), ("fed_spider", "gradient"), ("fed_spider", "difference"), ("local_sgd", "step")],
)
def test_noise_has_the_plans_standard_deviation_and_is_gaussian(name, kind, dtype):
    """16,000 draws: the deviation within 4 standard errors (2.2 %), Kolmogorov–Smirnov at level 0.001.

    K local steps on zero records move a model by −η·σ·Σz: variance K·(ησ)².
    """
    rounds, clip, eta, K = 40, 1.7, 0.3, 3
    messages, w = wide(DTYPES[dtype])
    point = Point(0.8, eta, clip)
    plans = small.plans(ALGORITHMS[name](rounds), [point], (4, 4, 4), batch_records=K)
    federation = small.federation(messages.model, messages.silos, plans, [point])
    sigma = plans[0][1][kind].noise * clip
    if kind == "step":
        sigma *= eta * math.sqrt(K)
        sent = [federation.local_model(w, 1, r) for r in range(rounds)]
    else:
        sent = [federation.message(w, 1, r, kind, w if kind == "difference" else None) for r in range(rounds)]
    draws = torch.cat([message[0].double() for message in sent]).numpy()
    assert len(draws) == 16_000
    assert draws.std() == pytest.approx(sigma, rel=4 / math.sqrt(2 * len(draws)))
    assert abs(draws.mean()) <= 4 * sigma / math.sqrt(len(draws))
    assert stats.kstest(draws / sigma, "norm").pvalue > 1e-3


def test_noise_is_independent_over_silos_rounds_kinds_and_purposes():
    """Correlations of 400 coordinates of 24 messages: none beyond what 276 pairs allow (level 0.001)."""
    messages, w = wide(torch.float64)
    other = Messages(messages.model, messages.silos, STREAMS.child("fresh"))
    scale = torch.tensor([1.0], dtype=torch.float64)
    draws = np.stack(
        [
            noise_of(source, w, scale, scale, silo, r, kind, previous=w)[0].numpy()
            for source in (messages, other)
            for silo in range(3)
            for r in range(2)
            for kind in ("gradient", "difference")
        ]
    )
    correlations = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    assert len(correlations) == 276
    assert np.abs(correlations).max() <= stats.norm.isf(0.001 / 2 / 276) / math.sqrt(400)


def test_a_questions_factor_multiplies_the_noise():
    x, y = torch.zeros(8, 4).double(), torch.zeros(8).double()
    messages = Messages(MODEL_CASES["linear"].model(4), [(x, y)], STREAMS)
    weights, one = torch.zeros(1, 4).double(), torch.ones(1).double()
    sent = [
        messages.message(Query(weights, 0, noise_factor=factor), 0, GRADIENT, one, one)
        for factor in (None, 3 * one, 0 * one)
    ]
    assert torch.equal(3 * sent[0], sent[1])
    assert not sent[2].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_points_share_one_draw_up_to_their_scale_and_a_point_without_noise_has_none(dtype):
    case = MODEL_CASES["logistic"]
    model, silos = case.model(), small.records(case, (6,), DTYPES[dtype])
    w = small.start(model, DTYPES[dtype]).expand(4, -1).clone()
    clip = torch.tensor([1.0, 1.0, math.inf, 1.0], dtype=torch.float64).to(DTYPES[dtype])
    scale = torch.tensor([1.0, 2.5, 0.0, 0.0], dtype=torch.float64).to(DTYPES[dtype])
    messages = Messages(model, silos, STREAMS)
    noise = noise_of(messages, w, clip, scale, 0, 3, "gradient")
    assert float(noise[0].norm()) > 0
    torch.testing.assert_close(noise[1], 2.5 * noise[0], rtol=1e-5, atol=1e-6)
    loud = small.sent(messages, w, 0, 3, clip, scale, round=3)
    quiet = small.sent(messages, w, 0, 3, clip, scale * 0, round=3)
    assert torch.equal(loud[2:], quiet[2:])
    stepsize = torch.full_like(clip, 0.1)
    loud = small.stepped(messages, w, 0, 3, clip, scale, stepsize, round=3)
    quiet = small.stepped(messages, w, 0, 3, clip, scale * 0, stepsize, round=3)
    assert torch.equal(loud[2:], quiet[2:])
    assert not torch.isclose(loud[:2], quiet[:2]).any()


@pytest.mark.parametrize(("dtype", "update"), [("float64", "mean"), ("float32", "sum")])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("minibatch_sgd", "gradient"),
        ("fedprox_spider", "gradient"),
        ("fedprox_spider", "difference"),
        ("one_pass_accelerated_sgd", "gradient"),
    ],
)
@pytest.mark.parametrize("model", MODEL_CASES)
def test_the_mean_is_that_of_the_messages(model, name, kind, dtype, update):
    """Of small messages that are made together, and of the same messages made one by one."""
    points, sizes = [Point(None, 0.1, math.inf), Point(1.0, 0.1, 0.5), Point(6.0, 0.2, 3.0)], (6, 6, 6)
    silos, made = small.records(MODEL_CASES[model], sizes, DTYPES[dtype]), MODEL_CASES[model].model()
    plans, start = small.plans(ALGORITHMS[name](3), points, sizes), small.start(made, DTYPES[dtype])
    together, apart = (small.federation(made, silos, plans, points, 2, server_update=update) for _ in range(2))
    assert kind in together.together
    apart.together = set()
    weights = start.expand(3, -1) + torch.arange(3)[:, None].to(start) / 10
    previous = weights - 0.2 if kind == "difference" else None
    factor = torch.tensor([1.0, 0.5, 2.0]).to(weights) if kind == "difference" else None
    ours, theirs = (f.mean_message(weights, 1, kind, previous, factor) for f in (together, apart))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE[dtype] * float(theirs.abs().max()))
    assert not torch.equal(ours[1], ours[2])
