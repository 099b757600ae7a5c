"""Training jobs small enough for tests, on the embedded data sets."""

import functools

import pandas as pd
import small

from silodp.datasets import DATASETS
from silodp.experiments.task import Task
from silodp.experiments.training import run_trials
from silodp.partition.experiment_data import number_of_silos
from silodp.partition.partition import partition
from silodp.partition.trial_data import prepare
from silodp.streams import Streams

# The models, each with a data set that fits it; keys of the small experiment.
CASES = {
    "perceptron": {},
    "logistic": {"model": {"name": "logistic"}},
    "softmax": {"model": {"name": "softmax"}},
    "linear": {
        "dataset": "diabetes",
        "label": "target",
        "silos": {"scheme": "sorted_target", "count": 3},
        "preprocess": {"constant_column": True},
        "model": {"name": "linear"},
        "clips": [0.5, 50.0],
    },
}


@functools.cache
def data(name):
    """A data set, read once."""
    return DATASETS[name].load()


def silos_of(config, seed=2023, name="small"):
    """trial → its silos, as the partition job makes them."""

    @functools.cache
    def one(trial):
        return partition(
            data(config.dataset).y,
            scheme=config.silos.scheme,
            silos=number_of_silos(config),
            train_share=config.silos.train_share,
            generator=Streams(seed).generator(name, trial, "partition"),
        )

    return one


def prepared_of(job, run):
    """trial → its records, as a training job gets them."""
    silos = silos_of(job.config)
    return lambda trial: prepare(data(job.config.dataset), job.config, job.readings, silos(trial), run)


def task(algorithm="minibatch_sgd", reading="", **changes):
    """A task of the small experiment, with top-level keys replaced."""
    config = small.experiment(**changes)
    return Task("small", config, algorithm, config.settings[0], reading)


def train(job, trials=range(3), run=None, **more):
    """The table of a task's trials."""
    run = run or small.run()
    return run_trials(job, run, prepared_of(job, run), trials, **more)


def same(a, b, **how):
    """Hold two tables together, all columns but `seconds`."""
    tables = (table.drop(columns="seconds").reset_index(drop=True) for table in (a, b))
    pd.testing.assert_frame_equal(*tables, **how)
