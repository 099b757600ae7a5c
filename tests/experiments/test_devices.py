"""The estimate behind `device: auto`: operations as PyTorch counts them, gains as a sum by hand has them."""

import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from silodp.experiments.devices import gpu_gain, gradient_operations
from silodp.experiments.validation import load

NETWORKS = {
    "wbcd_mlp": ((30,), nn.Sequential(nn.Linear(30, 5), nn.ReLU(), nn.Linear(5, 2))),
    "mnist_mlp": ((50,), nn.Sequential(nn.Linear(50, 64), nn.ReLU(), nn.Linear(64, 2))),
    "insurance_linear": ((7,), nn.Linear(7, 1, bias=False)),
    "obesity_softmax": ((20,), nn.Linear(20, 7)),
    "cifar10_cnn": (
        (3, 32, 32),
        nn.Sequential(
            *(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
        ),
    ),
}


def experiment(tmp_path, name, options="~"):
    path = tmp_path / "run.yaml"
    path.write_text(f"run: r\nexperiments: {{{name}: {options}}}\n")
    return load(path).experiments[name]


@pytest.mark.parametrize("name", NETWORKS)
def test_operations_of_a_gradient_are_those_that_pytorch_counts(name, tmp_path):
    shape, network = NETWORKS[name]
    with FlopCounterMode(display=False) as counted:
        network(torch.zeros(1, *shape)).sum().backward()
    assert gradient_operations(experiment(tmp_path, name)) == counted.get_total_flops()


@pytest.mark.parametrize(
    ("name", "batch", "records"),
    [
        ("cifar10_cnn", "batch_epsilon: 24", math.ceil(1000 * math.sqrt(24 / 8) / 2)),
        ("cifar10_cnn", "batch_epsilon: 400", 1000),
        ("cifar10_cnn", "batch_epsilon: ~, batch_records: 7", 7),
        ("wbcd_mlp", "batch_epsilon: ~, batch_records: 7", 7),
    ],
)
def test_a_gains_records_are_those_of_a_round_of_the_largest_setting(name, batch, records, tmp_path):
    """Sixteen cores at 25e9 operations a second against 1.5 ms and a GPU's rate, for six points."""
    options = f"epsilons: [1, 2], clips: [1], stepsizes: {{low: 0.1, high: 1, points: 3}}, {batch}"
    settings = "settings: [{M: 1, R: 8, phase_lengths: [1]}, {M: 2, R: 8, phase_lengths: [1]}]"
    config = experiment(tmp_path, name, f"{{{options}, {settings}}}")
    operations = gradient_operations(config) * 6 * records * 2
    rate = {"convnet": 9.1e12, "perceptron": 4.3e12}[config.model.name]
    assert gpu_gain(config, 1000) == pytest.approx(operations / 4e11 / (1.5e-3 + operations / rate))
