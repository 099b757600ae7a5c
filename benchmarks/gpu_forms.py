"""A GPU's forms by themselves: sums and local steps of the two networks, against this device's own matrix product."""

import statistics
import time
from collections.abc import Callable

import torch

from silodp.models.convnet import ConvNet
from silodp.models.perceptron import Perceptron

# Row of the table → target, its unit, what the prototype reached on an H200 (fp32 product 51 TFLOP/s, PyTorch 2.11).
TARGETS: dict[str, tuple[str, str, str]] = {
    "matrix product, fp32, 8192³": ("", "TFLOP/s", "51"),
    "convolutional sums, 72 points, 3,460 records": ("≥ 15", "% of it", "18"),
    "convolutional local steps, 720 chains": ("≤ 2.5", "µs a step of a chain", "1.92"),
    "perceptron sums, 175 points, 15,100 records": ("", "TFLOP/s", "4.3"),
    "perceptron local steps, 4,375 chains": ("≤ 6", "ns a step of a chain", "4.6"),
    "standard normals": ("", "ns each", "0.0023"),
    "trial of CIFAR-10, `minibatch_sgd`, over 16 cores": ("≥ 20", "times", ""),
    "trial of CIFAR-10, `local_sgd`, over 16 cores": ("≥ 10", "times", ""),
    "trial of MNIST's perceptron, `local_sgd`, over 16 cores": ("≥ 8", "times", ""),
    "trial of breast cancer on what `device: auto` takes, over 16 cores": ("≥ 1", "times", ""),
    "`silodp cost config/cifar.yaml`, device: auto": ("≤ 25", "min", ""),
}
# Operations of a record's gradient: convolutional network, and perceptron 50-64-2.
CONVOLUTIONAL, PERCEPTRON = 3_204_720, 13_568


def seconds(call: Callable[[], object], device: torch.device, repeats: int = 5) -> float:
    """Median seconds of a call, after one to warm up."""
    found = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return statistics.median(found[1:])


def measure_forms(device: torch.device, shrink: int = 1) -> dict[str, float]:
    """Row of the table → what was measured, in its unit; every size is divided by `shrink`, for a test on a CPU."""
    rows, generator = list(TARGETS), torch.Generator(device).manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device)

    def classes(*shape: int, number: int) -> torch.Tensor:
        return torch.randint(0, number, shape, generator=generator, device=device)

    size = 8192 // shrink
    square = normal(size, size)
    product = 2 * size**3 / seconds(lambda: square @ square, device) / 1e12
    net, points, records = ConvNet(32, 10, workspace=8 * 2**30), max(72 // shrink, 2), max(3460 // shrink, 4)
    weights, clip = 0.05 * normal(points, net.size), torch.ones(points, device=device)
    batch = normal(records, 3072), classes(records, number=10)
    spent = seconds(lambda: net.plain_clipped_gradient_sum(weights, *batch, clip), device, 3)
    share = 100 * points * records * CONVOLUTIONAL / spent / 1e12 / product
    silos, steps, scale = max(10 // shrink, 2), max(32 // shrink, 2), 1e-4
    chains = normal(silos, steps, 3072), classes(silos, steps, number=10)
    rates, draws = (clip, 0.01 * clip, scale * clip.expand(silos, -1)), normal(silos, steps, net.size)
    spent = seconds(lambda: net.chain_steps(weights, *chains, *rates, draws), device, 3)
    step = 1e6 * spent / (silos * points * steps)
    mlp, points, records = Perceptron(50, 64, 2), max(175 // shrink, 2), max(15_100 // shrink, 4)
    weights, clip = 0.1 * normal(points, mlp.size), torch.full((points,), 5.0, device=device)
    batch = normal(records, 50), classes(records, number=2)
    spent = seconds(lambda: mlp.clipped_gradient_sum(weights, *batch, clip), device)
    sums = points * records * PERCEPTRON / spent / 1e12
    found = dict(zip(rows, [product, share, step, sums], strict=False))
    silos, steps = max(25 // shrink, 2), max(604 // shrink, 2)
    chains, draws = (normal(silos, steps, 50), classes(silos, steps, number=2)), normal(silos, steps, mlp.size)
    rates = clip, 0.002 * clip, 0.002 * clip.expand(silos, -1)
    if mlp.chain_steps(weights, *chains, *rates, draws) is not None:  # Triton is there
        spent = seconds(lambda: mlp.chain_steps(weights, *chains, *rates, draws), device, 3)
        found[rows[4]] = 1e9 * spent / (silos * points * steps)
    number = 2**28 // shrink**2
    values = torch.empty(number, device=device)
    return found | {rows[5]: 1e9 * seconds(lambda: values.normal_(generator=generator), device) / number}


def targets_table(measured: dict[str, float]) -> list[str]:
    """Rows of Markdown: target, what was measured here, whether the target is met, and what a prototype reached."""
    lines = ["| | unit | target | measured | met | prototype, H200 |", "| --- | --- | --- | --- | --- | --- |"]
    for name, (target, unit, prototype) in TARGETS.items():
        value, met = measured.get(name), ""
        if value is not None and target:
            bound = float(target[2:])
            met = "yes" if (value >= bound if target[0] == "≥" else value <= bound) else "no"
        lines.append(
            f"| {name} | {unit} | {target} | {'' if value is None else f'{value:.3g}'} | {met} | {prototype} |"
        )
    return lines
