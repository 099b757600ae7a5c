"""The convolutional network over a stack, against automatic differentiation of a network of PyTorch's own layers."""

import math
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import textbook
import torch
from small import DTYPES, TOLERANCE
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from silodp.models import MODELS
from silodp.models.convnet import ConvNet
from silodp.models.threads import use_threads

# Sides that leave a row over at the first maximum, at the second, at both, at none.
SIDES = [16, 17, 18, 23]

# Kernels are compiled for each precision, which takes longer than the tests.
PRECISIONS = ["float32", pytest.param("float64", marks=pytest.mark.slow)]


def layers(net: ConvNet) -> nn.Sequential:
    """The network as the paper describes it, in float64."""
    (f1, f2), (h1, h2) = net.filters, net.hidden
    return nn.Sequential(
        nn.Conv2d(net.channels, f1, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(f1, f2, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LazyLinear(h1),
        nn.ReLU(),
        nn.Linear(h1, h2),
        nn.ReLU(),
        nn.Linear(h2, net.classes),
    ).double()


def loss(net):
    """One record's loss as a function of the flat vector; `layers` keeps its parameters in the vector's order."""
    torch.manual_seed(0)
    plain = layers(net)
    plain(torch.zeros((1, net.channels, net.side, net.side), dtype=torch.float64))
    names = dict(plain.named_parameters())

    def of(w, x, y):
        parts = torch.split(w, [p.numel() for p in names.values()])
        state = {name: part.reshape(p.shape) for (name, p), part in zip(names.items(), parts, strict=True)}
        logits = torch.func.functional_call(plain, state, (x[None],))
        return nn.functional.cross_entropy(logits, y[None])

    return of


def small(side=18, workspace=2**28):
    return ConvNet(side, classes=3, filters=(2, 3), hidden=(5, 4), workspace=workspace)


# Compiled kernels of the CPU, and tensor operations as a GPU has them.
PATHS = {
    "kernels": (ConvNet.clipped_gradient_sum, ConvNet.outputs),
    "tensors": (ConvNet.plain_clipped_gradient_sum, ConvNet.plain_outputs),
}


def example(net, records, points, dtype, seed=0):
    generator = np.random.default_rng(seed)
    x = torch.from_numpy(generator.standard_normal((records, net.channels, net.side, net.side)))
    y = torch.from_numpy(generator.integers(0, net.classes, records))
    weights = torch.from_numpy(np.stack([2 * net.initial(generator) for _ in range(points)]))
    return weights.to(dtype), x.to(dtype), y


def wanted_sum(net, weights, x, y, clip):
    of = loss(net)
    return torch.stack(
        [
            sum(
                textbook.clip_to(textbook.gradient(of, w.double(), x[k].double(), y[k]), c.item())
                for k in range(len(x))
            )
            for w, c in zip(weights, clip, strict=True)
        ]
    )


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(("records", "points"), [(1, 3), (7, 2)])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("path", PATHS)
def test_clipped_gradient_sums_are_those_of_autograd(path, side, records, points, dtype):
    net = small(side)
    weights, x, y = example(net, records, points, DTYPES[dtype], side)
    for clips in ([math.inf] * points, [1e3] * points, [0.01] * points, [0.5 * (g + 1) for g in range(points)]):
        clip = torch.tensor(clips, dtype=DTYPES[dtype])
        found = PATHS[path][0](net, weights, x, y, clip)
        assert found.dtype == DTYPES[dtype]
        for mine, wanted in zip(found, wanted_sum(net, weights, x, y, clip), strict=True):
            assert textbook.relative_error(mine, wanted) <= TOLERANCE[dtype]


@pytest.mark.parametrize("path", PATHS)
def test_the_papers_network_is_exact_over_all_its_62006_parameters(path):
    net = MODELS["convnet"](3 * 32 * 32, 10)
    assert net.size == 62_006
    assert [b.stop - b.start for b in net.blocks] == [450, 6, 2400, 16, 48_000, 120, 10_080, 84, 840, 10]
    weights, x, y = example(net, 3, 2, torch.float64)
    of = loss(net)
    norms = [float(textbook.gradient(of, weights[0], x[k], y[k]).norm()) for k in range(3)]
    clip = torch.tensor([float(np.median(norms)), math.inf], dtype=torch.float64)
    assert min(norms) < clip[0] < max(norms), "some records must be clipped and some not"
    found = PATHS[path][0](net, weights, x, y, clip)
    assert textbook.relative_error(found, wanted_sum(net, weights, x, y, clip)) <= 1e-10


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("path", PATHS)
def test_outputs_and_losses_are_those_of_the_plain_layers(path, dtype):
    net = small(17)
    weights, x, y = example(net, 6, 3, DTYPES[dtype])
    of = loss(net)
    wanted = torch.stack([torch.stack([of(w.double(), x[k].double(), y[k]) for k in range(6)]) for w in weights])
    outputs = PATHS[path][1](net, weights, x)
    assert outputs.shape == (3, 6, 3)
    assert textbook.relative_error(net.losses(outputs, y), wanted.detach()) <= TOLERANCE[dtype]
    classes = [torch.tensor(c) for c in range(3)]
    for g, w in enumerate(weights.double()):
        # The predicted class is the one under which the record's loss is smallest.
        predicted = [int(np.argmin([float(of(w, x[k].double(), c)) for c in classes])) for k in range(6)]
        assert net.errors(outputs, y)[g].tolist() == [float(p != t) for p, t in zip(predicted, y.tolist(), strict=True)]


@pytest.mark.parametrize(("points", "records"), [(1, 1), (3, 40), (12, 3)])
@pytest.mark.parametrize("workspace", [1, 10_000, 1_000_000])
@pytest.mark.parametrize("path", PATHS)
def test_any_cut_gives_the_same_sums(path, points, records, workspace):
    gradient_sum, outputs = PATHS[path]
    net = small(workspace=workspace)
    weights, x, y = example(net, records, points, torch.float64)
    clip = torch.linspace(0.1, 3, points, dtype=torch.float64)
    whole = small(workspace=2**34)
    assert whole.piece_sizes(points, records, 8) == (points, records)
    found, wanted = gradient_sum(net, weights, x, y, clip), gradient_sum(whole, weights, x, y, clip)
    assert textbook.relative_error(found, wanted) <= 1e-13
    assert textbook.relative_error(outputs(net, weights, x), outputs(whole, weights, x)) <= 1e-13


class PeakMemory(TorchDispatchMode):
    """The most bytes that tensors made inside hold together."""

    def __init__(self):
        super().__init__()
        self.held, self.most = {}, 0

    def __torch_dispatch__(self, operation, types, given=(), named=None):
        made = operation(*given, **(named or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor) and (storage := tensor.untyped_storage())._cdata not in self.held:
                self.held[storage._cdata] = storage.nbytes()
                weakref.finalize(storage, self.held.pop, storage._cdata)
        self.most = max(self.most, sum(self.held.values()))
        return made


@pytest.mark.parametrize(("points", "records"), [(1, 8), (4, 8), (2, 32)])
def test_a_piece_is_as_large_as_the_workspace_allows_and_no_larger(points, records):
    net = ConvNet(32, classes=10)
    weights, x, y = example(net, records, points, torch.float64)
    with PeakMemory() as memory:
        net.plain_clipped_gradient_sum(weights, x, y, torch.ones(points, dtype=torch.float64))
    for share, whole in ((0.99, False), (1.15, True)):
        cut = ConvNet(32, classes=10, workspace=round(share * memory.most))
        assert (cut.piece_sizes(points, records, 8) == (points, records)) is whole


def test_numbers_of_a_pair_by_hand():
    """Maps of 28², 14², 10² and 5² numbers, 6, 6, 16 and 16 of them; 120 and 84 hidden units; patches of 5² numbers."""
    maps = 2 * 6 * 28**2 + 3 * 6 * 14**2 + 2 * 16 * 10**2 + 4 * 16 * 5**2
    assert ConvNet(32, classes=10).pair_numbers() == maps + 2 * (120 + 84) + 2 * 6 * 25 * 10**2 + 6 * 25 * (3 + 16)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_points_bits_are_the_same_in_every_stack(threads):
    net = small()
    weights, x, y = example(net, 41, 19, torch.float32)
    clip, stepsize, noise = torch.linspace(0.1, 3, 19), torch.linspace(0.01, 0.5, 19), torch.linspace(0, 1, 19)
    base = torch.randn(41, net.size, generator=torch.Generator().manual_seed(0))
    use_threads(threads)
    try:
        sums, logits = net.clipped_gradient_sum(weights, x, y, clip), net.outputs(weights, x)
        steps = net.local_steps(weights, x, y, clip, stepsize, noise, base)
    finally:
        use_threads(1)
    for some in (slice(0, 1), slice(3, 10), slice(8, 19)):
        assert torch.equal(net.clipped_gradient_sum(weights[some], x, y, clip[some]), sums[some])
        assert torch.equal(net.outputs(weights[some], x), logits[some])
        alone = net.local_steps(weights[some], x, y, clip[some], stepsize[some], noise[some], base)
        assert torch.equal(alone, steps[some])


MEASURE = """
import sys, torch
from pathlib import Path
from silodp.models.convnet import ConvNet

def peak():
    line = next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024

def spent(path, workspace, points, records):
    net = ConvNet.build(3072, 10, workspace)
    weights = 0.05 * torch.randn(points, net.size)
    x, y, clip = torch.randn(records, 3, 32, 32), torch.zeros(records, dtype=torch.long), torch.ones(points)
    result = torch.ones_like(weights)  # room for the result is no temporary memory
    before = peak()
    del result
    prefix = "" if path == "kernels" else "plain_"
    getattr(net, prefix + "clipped_gradient_sum")(weights, x, y, clip)
    getattr(net, prefix + "outputs")(weights, x)
    return peak() - before

torch.set_num_threads(1)
spent(sys.argv[1], 1, 1, 1)
print(spent(sys.argv[1], *map(int, sys.argv[2:])))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.parametrize(("workspace", "points", "records"), [(48, 60, 32)])
@pytest.mark.parametrize(("path", "least"), [("kernels", 0.02), pytest.param("tensors", 0.25, marks=pytest.mark.slow)])
def test_temporary_memory_stays_in_the_workspace_however_much_there_is_to_do(path, least, workspace, points, records):
    command = [sys.executable, "-c", MEASURE, path, str(workspace), str(points), str(records)]
    # Every tensor is a mapping of its own: what is counted is held, no hole of the allocator.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    spent = float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    assert least * workspace <= spent <= workspace


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gpu_gives_the_same_sums(dtype):
    net = MODELS["convnet"](3072, 10)
    weights, x, y = example(net, 40, 5, DTYPES[dtype])
    clip = torch.linspace(0.1, 3, 5, dtype=DTYPES[dtype])
    wanted = net.clipped_gradient_sum(weights, x, y, clip)
    found = net.clipped_gradient_sum(weights.cuda(), x.cuda(), y.cuda(), clip.cuda()).cpu()
    assert textbook.relative_error(found, wanted) <= {"float32": 1e-4, "float64": 1e-10}[dtype]


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("path", PATHS)
def test_a_model_that_is_not_finite_shows_it_and_leaves_the_others_alone(path, value):
    gradient_sum, outputs = PATHS[path]
    net = small()
    weights, x, y = example(net, 4, 2, torch.float64)
    alone = gradient_sum(net, weights[1:], x, y, torch.tensor([1.0]).double())
    weights[0, 0] = value
    found = gradient_sum(net, weights, x, y, torch.tensor([1.0, 1.0]).double())
    assert (found[0] == 0).all()  # no record has a finite gradient there
    assert not torch.isfinite(outputs(net, weights, x)[0]).all()
    assert textbook.relative_error(found[1], alone[0]) <= 1e-13


def test_local_steps_follow_the_plain_chain():
    net = small(16)
    weights, x, y = example(net, 5, 2, torch.float64)
    clip, stepsize, noise = torch.tensor([[0.3, math.inf], [0.1, 0.02], [0.5, 0.0]], dtype=torch.float64)
    base = torch.from_numpy(np.random.default_rng(0).standard_normal((5, net.size)))
    before, of = weights.clone(), loss(net)
    found = net.local_steps(weights, x, y, clip, stepsize, noise, base)
    assert torch.equal(weights, before)
    for g in range(2):
        w = weights[g]
        for k in range(5):
            step = textbook.clip_to(textbook.gradient(of, w, x[k], y[k]), clip[g].item())
            w = w - stepsize[g] * (step + noise[g] * base[k])
        assert textbook.relative_error(found[g], w) <= 1e-10
