"""The forms for a device, on a CPU: eager, and Triton's programs by its interpreter; and on CUDA where it is.

Without CUDA `runs_on_host` is replaced, so that the device's way through a round is taken with the CPU's tensors.
"""

import dataclasses
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
import small
import torch
from small import ALGORITHM_CASES, DTYPES, KINKED_CASES, MODEL_CASES, Point

from silodp.experiments.training import train_stack
from silodp.federation.messages import Messages
from silodp.models import MODELS, gpu
from silodp.models.base import Steps, sequential_steps, zero_unless_finite
from silodp.models.gpu import convnet_tensors
from silodp.models.gpu.convnet_tensors import piece_sum

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton's programs are imported

CASES = MODEL_CASES | KINKED_CASES
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]
NEAR = {"float64": 1e-11, "float32": 2e-5}
# Not finite, an infinite square, an infinite norm.
BAD = [math.nan, math.inf, -math.inf, 1e25]


@pytest.fixture
def on_device(monkeypatch):
    monkeypatch.setattr(gpu, "runs_on_host", lambda values: False)


def example(name, dtype, silos=2, records=5):
    """Model, points, and (S, K, …) records; the third record of the first silo is not sound."""
    generator = np.random.default_rng(3)
    case = CASES.get(name)
    model = MODELS["convnet"](3 * 16 * 16, 3) if case is None else case.model()
    features, classes = (768, 3) if case is None else (small.FEATURES, case.classes or 2)
    x = torch.from_numpy(generator.standard_normal((silos, records, features))).to(DTYPES[dtype])
    y = torch.from_numpy(generator.integers(0, classes, (silos, records)))
    weights = torch.from_numpy(0.3 * generator.standard_normal((3, model.size))).to(DTYPES[dtype])
    whole = name.startswith(("softmax", "perceptron", "convnet"))
    return model, weights, x, y if whole else y.to(x), torch.tensor([0.2, 2.0, math.inf], dtype=DTYPES[dtype])


def close(found, wanted, dtype):
    scale = float(wanted.abs().max())
    torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=NEAR[dtype] * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [*CASES, "convnet"])
def test_sums_leave_out_records_that_are_not_finite_without_a_look_at_the_sum(name, device, dtype, monkeypatch):
    model, weights, x, y, clip = example(name, dtype)
    x, y = x[0], y[0]
    for value in [0.5, *BAD] if dtype == "float32" else [0.5, *BAD[:3]]:
        x[2, 1] = value
        wanted = sum(model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], clip) for k in range(len(x)))
        with monkeypatch.context() as patch:
            patch.setattr(gpu, "runs_on_host", lambda values: False)
            patch.setattr(torch.Tensor, "item", None)
            found = model.clipped_gradient_sum(*(part.to(device) for part in (weights, x, y, clip)))
        close(found, wanted, dtype)


@pytest.mark.parametrize("device", DEVICES)
def test_outputs_of_the_convnet_are_those_of_the_cpu(device, monkeypatch):
    model, weights, x, _, _ = example("convnet", "float32")
    wanted = model.outputs(weights, x[0])
    monkeypatch.setattr(gpu, "runs_on_host", lambda values: False)
    close(model.outputs(weights.to(device), x[0].to(device)), wanted, "float32")


@pytest.mark.usefixtures("on_device")
def test_a_device_adds_up_a_limited_number_of_records_at_once(monkeypatch):
    monkeypatch.setattr("silodp.models.base.RECORDS_AT_ONCE", 4)
    asked, clip = [], torch.tensor([1.0, 3.0])

    @zero_unless_finite
    def gradient_sum(model, weights, x, y, clip):
        asked.append(len(x))
        return clip[:, None] * (x * y[:, None]).sum(0)

    for parts in ([4], [4, 1], [4, 4, 1]):
        x, y = torch.arange(2.0 * sum(parts)).reshape(-1, 2), torch.arange(1.0 + sum(parts))[1:]
        found = gradient_sum(None, torch.zeros(2, 2), x, y, clip)
        assert torch.equal(found, clip[:, None] * (x * y[:, None]).sum(0))
        assert asked[-len(parts) :] == parts


def test_chains_are_contracted_by_a_models_curvature_where_that_is_asked(monkeypatch):
    monkeypatch.setattr(gpu, "triton_steps", SimpleNamespace(chain_steps=lambda *given: given[-1]), raising=False)
    chains = {name: MODEL_CASES[name].model().chain_steps for name in ("linear", "logistic", "softmax")}
    asked = (None,) * 7
    assert [chain(*asked) for chain in chains.values()] == [0, 0, 0]
    assert [chains[name](*asked, contracted=True) for name in ("linear", "logistic")] == [1, 0.25]
    with pytest.raises(ValueError, match="softmax: local steps of this model may expand distances"):
        chains["softmax"](*asked, contracted=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, by which the interpreter works
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [*MODEL_CASES, "contracted-linear", "contracted-logistic", "convnet"])
def test_steps_of_all_chains_are_those_of_each_silo(name, device, dtype):
    contracted, name = name.startswith("contracted"), name.removeprefix("contracted-")
    if name != "convnet":
        pytest.importorskip("triton", reason="requirements/triton.lock is not installed")
    model, weights, x, y, clip = example(name, dtype)
    x[0, 2, 1], x[1, 0, 0] = math.inf, math.nan
    stepsize = torch.tensor([0.3, 0.05, 0.01], dtype=x.dtype)
    scale = torch.tensor([[0.5, 0.0, 0.1], [0.2, 0.3, 0.0]], dtype=x.dtype)
    draws = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 5, model.size))).to(x)
    curvature = (model.curvature or 0.0) if contracted else 0.0
    for base in (draws, None):
        arguments = (weights, x, y, clip, stepsize, scale, base)
        moved = [None if part is None else part.to(device) for part in arguments]
        found = model.chain_steps(*moved, contracted=contracted)
        if name == "sigmoid":
            assert found is None
            continue
        for silo, after in enumerate(found):
            noise = None if base is None else base[silo]
            steps = Steps(x[silo], y[silo], clip, stepsize, scale[silo], noise, curvature)
            close(after, sequential_steps(model, weights, steps), dtype)


def test_chains_of_a_convnet_are_the_same_point_by_point():
    model, weights, x, y, clip = example("convnet", "float64")
    given = (weights, x, y, clip, torch.tensor([0.3, 0.05, 0.01]).double(), torch.full((2, 3), 0.1).double(), None)
    whole = model.chain_steps(*given)
    close(dataclasses.replace(model, workspace=1).chain_steps(*given), whole, "float64")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in MODEL_CASES if name != "sigmoid"])
def test_the_bits_of_a_triton_chain_do_not_depend_on_what_stands_beside_it(name):
    pytest.importorskip("triton", reason="requirements/triton.lock is not installed")
    model, weights, x, y, clip = example(name, "float32")
    stepsize, scale = torch.tensor([0.3, 0.05, 0.01]), torch.tensor([[0.5, 0.0, 0.1], [0.2, 0.3, 0.0]])
    draws = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 5, model.size))).to(x)
    together = model.chain_steps(weights, x, y, clip, stepsize, scale, draws)
    for silo in range(2):
        for point in range(3):
            one, own = slice(point, point + 1), slice(silo, silo + 1)
            alone = (weights[one], x[own], y[own], clip[one], stepsize[one], scale[own, one], draws[own])
            assert torch.equal(model.chain_steps(*alone)[0, 0], together[silo, point])


def federation(name, model="logistic", sizes=(9, 9, 12), host_noise=True, device="cpu"):
    points = [Point(None, 0.1, math.inf), Point(1.0, 0.1, 0.5), Point(6.0, 0.2, 3.0)]
    case = MODEL_CASES[model]
    made, method = case.model(), ALGORITHM_CASES[name].make(4)
    silos = [(x.to(device), y.to(device)) for x, y in small.records(case, sizes, torch.float64)]
    found = small.federation(made, silos, small.plans(method, points, sizes), points, 2)
    found.messages.host_noise = host_noise
    return method, found, small.start(made, torch.float64).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ALGORITHM_CASES)
def test_an_algorithm_on_a_device_with_the_cpus_draws_is_that_of_the_cpu(name, device, monkeypatch):
    method, plain, first = federation(name)
    wanted = small.iterates(method, plain, first, 3)
    monkeypatch.setattr(gpu, "runs_on_host", lambda values: False)
    method, other, first = federation(name, device=device)
    other.hold_to_plans()
    found = small.iterates(method, other, first, 3)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-9, atol=1e-12)


def test_local_steps_of_unlike_silos_are_taken_in_groups(on_device, monkeypatch):
    """Silos with another number of records take another number of steps."""
    asked = []

    def chain_steps(self, weights, x, *rest, contracted):
        asked.append(tuple(x.shape[:2]))
        return weights.expand(len(x), -1, -1) + x.sum((1, 2))[:, None, None]

    monkeypatch.setattr(type(MODEL_CASES["logistic"].model()), "chain_steps", chain_steps)
    _, fed, first = federation("local_sgd", sizes=(9, 40, 9))
    fed.M = 3
    weights = first.expand(3, -1)
    found = fed.mean_local_model(weights, 0)
    drawn = [fed.messages.take_records([i], [fed.messages.draw(i, fed.releases[i]["step"], 0)])[0] for i in range(3)]
    assert sorted(asked) == sorted([(2, len(drawn[0][0])), (1, len(drawn[1][0]))])
    torch.testing.assert_close(found, weights + sum(x.sum() for x, _ in drawn) / 3)


def test_a_point_that_diverges_stays_in_a_devices_stack(on_device):
    """The others' bits would follow the size of the stack."""
    outcomes = []
    for stepsizes in ([0.1, 1e6, 0.1], [0.1, 0.1, 0.1]):
        method, fed, first = federation("minibatch_sgd", "linear")
        fed.stepsize = torch.tensor(stepsizes, dtype=torch.float64)[:, None]
        outcomes.append(train_stack(method, fed, fed.messages.model, first, fed.messages.silos))
        assert len(fed.clip) == 3
    (mixed, left), (alike, none) = outcomes
    assert left[1] >= 0
    assert left[0] == left[2] == -1
    assert torch.equal(mixed[[0, 2]], alike[[0, 2]])
    assert torch.equal(none, torch.full((3,), -1))


def test_a_devices_noise_is_a_stream_of_its_own_that_its_name_decides(on_device):
    zero = [(torch.zeros((4, 400)), torch.zeros(4))]
    messages = Messages(MODEL_CASES["linear"].model(400), zero, small.STREAMS)
    like = torch.zeros((1, 400))
    draws = torch.cat(
        [messages.noise(5, like, *names) for names in ((0, 0, "a"), (1, 0, "a"), (0, 1, "a"), (0, 0, "b"))]
    )
    assert torch.equal(messages.noise(5, like, 0, 0, "a"), draws[:5])
    assert abs(float(draws.std()) - 1) < 4 / math.sqrt(2 * draws.numel())
    agreement = torch.corrcoef(draws)[np.triu_indices(20, 1)]
    assert float(agreement.abs().max()) < 4.5 / math.sqrt(400)
    messages.host_noise = True
    of_the_cpu = messages.noise(5, like, 0, 0, "a")
    assert not torch.equal(of_the_cpu, draws[:5])


@pytest.mark.slow
def test_the_compiler_follows_a_piece_of_the_sums_as_one_graph():
    model, weights, x, y, clip = example("convnet", "float32")
    arguments = model.shape, model.unpacked(weights), x[0], y[0], clip
    compiled = torch.compile(piece_sum, fullgraph=True, dynamic=False, backend="eager")
    torch.testing.assert_close(compiled(*arguments), piece_sum(*arguments))


@pytest.mark.slow
def test_every_shape_of_a_piece_is_compiled(monkeypatch):
    model, weights, x, y, clip = example("convnet", "float32")
    graphs, compile_with = [], torch.compile
    monkeypatch.setattr(
        torch,
        "compile",
        lambda form, **options: compile_with(form, backend=lambda g, i: graphs.append(g) or g, **options),
    )
    compiled = convnet_tensors._compiled_piece_sum.__wrapped__()
    for records in range(2, 14):
        images, labels = x[0, :1].repeat(records, 1), y[0, :1].repeat(records)
        compiled(model.shape, model.unpacked(weights), images, labels, clip)
    assert len(graphs) == 12
