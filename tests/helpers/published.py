"""What tests of published tables need: an experiment's data and its silos, and which cases `make test` has."""

from collections.abc import Iterable
from typing import Any

import pytest

from silodp.experiments.task import Task
from silodp.partition.experiment_data import dataset_of
from silodp.partition.trial_data import draw_partition

# Of what a published table goes over, `make test` takes every fifth, and `make test-slow` all.
STEPS = [5, pytest.param(1, marks=pytest.mark.slow)]


def data_of(config, needs_data):
    dataset = dataset_of(config)
    return dataset.load(None if dataset.embedded else needs_data(dataset.name))


def first_partition(task: Task, run, needs_data):
    """The silos of trial 0."""
    return draw_partition(task.experiment, task.config, task.readings, run, data_of(task.config, needs_data), 0)


def one_in_five(cases: Iterable[Any]) -> list[Any]:
    """Parameters of pytest, of which the first and every fifth behind it are fast; `make test-slow` has the others."""
    return [
        pytest.param(*one.values, id=one.id, marks=[*one.marks, *[pytest.mark.slow] * (place % 5 > 0)])
        for place, one in enumerate(cases)
    ]
