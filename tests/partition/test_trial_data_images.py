"""Images from the config to a trained stack: CIFAR-10's protocol, and what does not fit images."""

import numpy as np
import pandas as pd
import pytest
import small
import torch

import silodp.partition.trial_data as trialdata
from silodp.datasets.base import Data
from silodp.experiments.task import Task
from silodp.experiments.training import run_trial
from silodp.partition.trial_data import build_model, partition_and_measure, prepare

CIFAR = {
    "dataset": "cifar10",
    "silos": {"scheme": "by_class", "train_share": 0.5},
    "model": {"name": "convnet", "workspace_mb": 4},
    "settings": [{"M": 10, "R": 2}],
    "epsilons": [8.0],
    "trials": 1,
    "batch_records": 2,
    "stepsizes": {"low": -2, "high": -2, "points": 1},
    "phase_lengths": [2],
}


@pytest.fixture(scope="module")
def images() -> Data:
    """Eight images of each of ten classes; a class shows in a corner's brightness."""
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 8)
    x = generator.random((80, 3, 32, 32), dtype=np.float32)
    x[:, :, :8, :8] += y[:, None, None, None] / 10
    return Data(x=x, y=y, classes=10)


# Those of the paper's experiment in every run of the tests.
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] * (name != "minibatch_sgd"))
    for name in small.experiment(**CIFAR).algorithms
]


@pytest.mark.parametrize("algorithm", NAMES)
def test_images_are_trained_by_every_algorithm_whatever_the_workspace(images, algorithm):
    # In float32 a point that noise has thrown far out turns rounding into digits.
    run = small.run(dtype="float64")
    tables = []
    for workspace in (1, 64):
        config = small.experiment(**CIFAR | {"model": {"name": "convnet", "workspace_mb": workspace}})
        (part,), _, kept = partition_and_measure("cifar", config, config.readings, run, images)
        assert kept == [None]
        task = Task("cifar", config, algorithm, config.settings[0])
        prepared = prepare(images, config, task.readings, part, run)
        tables.append(run_trial(task, run, prepared, 0, task.grid()).drop(columns="seconds"))
    narrow, wide = tables
    assert narrow["n"].eq(4).all()
    # The shuffled algorithm draws one record a message, and DP-SCAFFOLD shares K among two local steps.
    assert narrow["K"].eq(1 if algorithm in ("shuffled_minibatch_sgd", "dp_scaffold") else 2).all()
    assert np.isfinite(narrow["train_loss"]).all()
    pd.testing.assert_frame_equal(narrow, wide, rtol=1e-9)


def test_a_prepared_trial_feeds_whole_images_to_the_network(images):
    config, run = small.experiment(**CIFAR), small.run()
    (part,), (spread,), _ = partition_and_measure("cifar", config, config.readings, run, images)
    trial = prepare(images, config, config.readings, part, run)
    assert trial.features == 3 * 32 * 32
    model = build_model(config, trial)
    assert model.size == 62_006
    x, y = trial.train[3]
    assert x.shape == (4, 3, 32, 32)
    assert y.dtype == torch.int64
    assert set(y.tolist()) == {3}
    together = torch.cat([x for x, _ in trial.train])
    torch.testing.assert_close(together.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(together.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-5, rtol=0)
    assert spread.value > 0


def test_heterogeneity_of_images_is_that_of_their_windows_means():
    x = np.arange(2 * 3 * 9 * 8, dtype=np.float32).reshape(2, 3, 9, 8)
    found = trialdata._windows(x)
    assert found.shape == (2, 48)
    # Rows of a window are 2 high and 2 wide; the ninth row is left out.
    assert found[1, 0] == x[1, 0, :2, :2].mean()
    assert found[1, 16 + 5] == x[1, 1, 2:4, 2:4].mean()
    assert found[0, 47] == x[0, 2, 6:8, 6:8].mean()
