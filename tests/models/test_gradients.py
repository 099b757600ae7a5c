"""Losses, outputs, errors and clipped gradient sums of every model against their plain form."""

import math

import numpy as np
import pytest
import small
import textbook
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small import DTYPES, KINKED_CASES, MODEL_CASES, TOLERANCE

from silodp.models import MODELS
from silodp.models.base import within_reach

ALL_CASES = MODEL_CASES | KINKED_CASES
# Label and loss of an output of 1,000; models with an output for each class have −1,000 for the others.
FAR_OUT = {"linear": (-1000.0, 2e6), "logistic": (0.0, 1000.0), "sigmoid": (0.0, 1.0)}


def plain_sum(case, w, x, y, clip):
    total = torch.zeros(len(w), dtype=torch.float64)
    for record in range(len(x)):
        g = textbook.gradient(case.loss, w.double(), x[record].double(), y[record])
        total += textbook.clip_to(g, clip)
    return total


def example(case, records, points, dtype, seed=0, scale=1.0):
    ((x, y),) = small.records(case, (records,), dtype, seed)
    model = case.model()
    weights = np.random.default_rng(seed + 1).standard_normal((points, model.size)) * scale
    return model, torch.from_numpy(weights).to(dtype), x, y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALL_CASES)
@pytest.mark.parametrize(("records", "points"), [(1, 5), (13, 1), (7, 3)])
def test_clipped_gradient_sums_are_those_of_autograd(name, dtype, records, points):
    case = ALL_CASES[name]
    tolerance = 1e-12 if name in KINKED_CASES and dtype == "float64" else TOLERANCE[dtype]
    model, weights, x, y = example(case, records, points, DTYPES[dtype])
    for clips in ([math.inf] * points, [1e3] * points, [0.01] * points, [0.3 * (g + 1) for g in range(points)]):
        clip = torch.tensor(clips, dtype=torch.float64).to(DTYPES[dtype])
        found = model.clipped_gradient_sum(weights, x, y, clip)
        assert found.shape == (points, model.size)
        assert found.dtype == DTYPES[dtype]
        for g in range(points):
            wanted = plain_sum(case, weights[g], x, y, clip[g].item())
            assert textbook.relative_error(found[g], wanted) <= tolerance


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALL_CASES)
@pytest.mark.parametrize("pair", [True, False])
def test_joint_sums_clip_the_whole_difference(name, dtype, pair):
    """Σ clip(a·gradient − b·gradient at the point before), each gradient by autograd; a record not finite adds 0."""
    case, (a, b) = ALL_CASES[name], (3.0, 2.0)
    model, weights, x, y = example(case, 7, 3, DTYPES[dtype])
    previous = weights.flip(0) if pair else None
    spoiled = {2: math.nan, 4: math.inf} if name != "l1" else {}  # its gradient is signs, of NaN 0
    for record, value in spoiled.items():
        x[record, 0] = value
    for clips in ([math.inf] * 3, [0.01] * 3, [0.3, 1.0, 30.0]):
        clip = torch.tensor(clips, dtype=torch.float64).to(DTYPES[dtype])
        found = model.joint_gradient_sum(weights, previous, (a, b), x, y, clip)
        for g in range(3):
            wanted = torch.zeros(model.size, dtype=torch.float64)
            for record in set(range(7)) - set(spoiled):
                place = x[record].double(), y[record]
                whole = a * textbook.gradient(case.loss, weights[g].double(), *place)
                if previous is not None:
                    whole = whole - b * textbook.gradient(case.loss, previous[g].double(), *place)
                wanted += textbook.clip_to(whole, clip[g].item())
            assert textbook.relative_error(found[g], wanted) <= 10 * TOLERANCE[dtype]


@pytest.mark.parametrize("clip", [0.3, math.inf])
@pytest.mark.parametrize("name", ["linear", "softmax"])
def test_a_joint_sum_leaves_out_a_record_whose_multiple_or_its_norm_overflows(name, clip):
    model, weights, x, y = example(ALL_CASES[name], 2, 1, torch.float64)
    clip = torch.tensor([clip], dtype=torch.float64)
    alone = model.joint_gradient_sum(weights, None, (3.0, 0.0), x[:1], y[:1], clip)
    for large in (1e120, 1e170, 1e300):
        x[1] = large
        found = model.joint_gradient_sum(weights, None, (3.0, 0.0), x, y, clip)
        assert torch.isfinite(found).all()
    assert torch.equal(found, alone)
    assert not model.joint_gradient_sum(weights, None, (math.inf, 0.0), x, y, clip).any()


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(sorted(MODEL_CASES)),
    st.floats(-3, 3),
    st.floats(-3, 3),
    st.integers(1, 9),
    st.integers(0, 2**31),
)
def test_clipped_gradient_sums_over_many_scales(name, log_scale, log_clip, records, seed):
    """Weights and clips over six orders of magnitude, float64."""
    case = MODEL_CASES[name]
    model, weights, x, y = example(case, records, 2, torch.float64, seed, 10**log_scale)
    clip = torch.full((2,), 10**log_clip, dtype=torch.float64)
    found = model.clipped_gradient_sum(weights, x, y, clip)
    assert (found.norm(dim=1) <= records * clip * (1 + 1e-12)).all()
    for g in range(2):
        wanted = plain_sum(case, weights[g], x, y, clip[g].item())
        # The sum may cancel, so the error is measured in units of what is summed.
        assert (found[g] - wanted).norm() <= 1e-9 * max(records * min(clip[g].item(), 1), wanted.norm().item())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALL_CASES)
def test_losses_are_the_plain_ones(name, dtype):
    case = ALL_CASES[name]
    model, weights, x, y = example(case, 11, 3, DTYPES[dtype])
    found = model.losses(model.outputs(weights, x), y)
    assert found.shape == (3, 11)
    records = [(features.double(), label) for features, label in zip(x, y, strict=True)]
    wanted = torch.stack([torch.stack([case.loss(w.double(), *record) for record in records]) for w in weights])
    assert textbook.relative_error(found, wanted) <= TOLERANCE[dtype]


@pytest.mark.parametrize("name", MODEL_CASES)
def test_errors_count_wrong_classes_or_square_deviations(name):
    case = MODEL_CASES[name]
    model, weights, x, y = example(case, 50, 2, torch.float64)
    weights[1] = 0  # where all classes tie, the first is predicted
    outputs = model.outputs(weights, x)
    errors = model.errors(outputs, y)
    assert errors.shape == (2, 50)
    for g in range(2):
        for i in range(50):
            # The predicted class is the one under which the record's loss is smallest.
            if case.classes is None:
                wanted = 2 * float(case.loss(weights[g], x[i], y[i]))
                assert float(errors[g, i]) == pytest.approx(wanted, rel=1e-10)
            else:
                losses = [float(case.loss(weights[g], x[i], torch.tensor(c))) for c in range(case.classes)]
                assert float(errors[g, i]) == float(np.argmin(losses) != int(y[i]))


@pytest.mark.parametrize("number", [1e153, -1e153])
@pytest.mark.parametrize("where", ["x", "y", "weights"])
def test_a_number_of_either_sign_may_be_out_of_a_kernels_reach(where, number):
    parts = {"x": torch.ones(3, 2), "y": torch.ones(3), "weights": torch.ones(1, 2)}
    parts = {name: part.double() for name, part in parts.items()}
    clip = torch.ones(1, dtype=torch.float64)
    assert within_reach(*parts.values(), clip, 2).all()
    parts[where].view(-1)[0] = number
    assert not within_reach(*parts.values(), clip, 2).any()
    for wider in (1e10, torch.inf):
        assert within_reach(*parts.values(), wider * clip, 2).all()


@pytest.mark.parametrize("name", MODEL_CASES)
def test_a_loss_far_out_is_finite_and_right(name):
    """Logits of ±1,000, where exponentials overflow: the loss of the wrong class is their distance."""
    case, outputs = MODEL_CASES[name], torch.tensor([[1000.0]])
    label, wanted = FAR_OUT.get(name, (1, 2000.0))
    if name not in FAR_OUT:
        outputs = torch.full((1, 1, case.classes), -1000.0)
        outputs[..., 0] = 1000.0
    assert case.model().losses(outputs, torch.tensor([label])).item() == pytest.approx(wanted)


@pytest.mark.parametrize("name", MODEL_CASES)
def test_local_steps_follow_the_plain_chain(name):
    case = MODEL_CASES[name]
    model, weights, x, y = example(case, 9, 3, torch.float64)
    clip = torch.tensor([math.inf, 0.3, 2.0], dtype=torch.float64)
    stepsize = torch.tensor([0.1, 0.3, 0.02], dtype=torch.float64)
    noise = torch.tensor([0.0, 0.5, 3.0], dtype=torch.float64)
    base = torch.from_numpy(np.random.default_rng(0).standard_normal((9, model.size)))
    before = weights.clone()
    found = model.local_steps(weights, x, y, clip, stepsize, noise, base)
    assert torch.equal(weights, before), "the weights that were sent are the server's"
    for g in range(3):
        w = weights[g]
        for k in range(9):
            g_k = textbook.clip_to(textbook.gradient(case.loss, w, x[k], y[k]), clip[g].item())
            w = w - stepsize[g] * (g_k + noise[g] * base[k])
        assert textbook.relative_error(found[g], w) <= 1e-10


def test_a_perceptron_starts_within_one_over_the_root_of_each_layers_inputs():
    model = MODELS["perceptron"](30, 2, hidden=50)
    w = model.initial(np.random.default_rng(0))
    for block, inputs in zip(model.blocks, (30, 30, 50, 50), strict=True):
        part = np.abs(w[block.start : block.stop])
        assert part.max() <= inputs**-0.5
        if part.size > 50:
            assert part.max() > 0.9 * inputs**-0.5
            assert part.mean() == pytest.approx(inputs**-0.5 / 2, rel=0.2)


def test_the_papers_networks_have_the_papers_sizes():
    """50-64-2 has 3,394 parameters, 30-5-2 has 167 (non-convex paper, Appendix H)."""
    assert MODELS["perceptron"](50, 2, hidden=64).size == 3394
    assert MODELS["perceptron"](30, 2, hidden=5).size == 30 * 5 + 5 + 5 * 2 + 2
