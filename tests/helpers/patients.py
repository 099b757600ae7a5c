"""A small file of patients, its run file, and releases of it."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from silodp.experiments.task import task_of
from silodp.experiments.validation import load
from silodp.own_data import release as releases

SIZES = {"North": 60, "South": 40}


def write_records(path, sizes=SIZES, **columns):
    i = np.arange(sum(sizes.values()))
    frame = pd.DataFrame({"hospital": np.repeat(list(sizes), list(sizes.values())), "age": 20.0 + 7 * i % 60})
    frame["smoker"] = np.where(i % 3 == 0, "yes", "no")
    frame["readmitted"] = np.where((i % 3 == 0) | (i % 7 == 0), "yes", "no")
    frame.assign(**columns).to_csv(path, index=False)


def experiment(**changes):
    """A run file's experiment in which every public fact is declared."""
    return {
        "title": "patients",
        "dataset": {
            "file": "patients.csv",
            "target": "readmitted",
            "silo": "hospital",
            "categories": {"smoker": ["no", "yes"]},
            "classes": ["no", "yes"],
        },
        "preprocess": {"standardise": "bounds", "bounds": {"age": [0, 120]}, "constant_column": True},
        "model": {"name": "logistic"},
        "settings": [{"M": 2, "R": 4}],
        "epsilons": [1, 4],
        "trials": 1,
        "batch_share": 0.2,
        "stepsizes": {"low": -1, "high": 0, "points": 2},
        "clips": [1],
        "algorithms": {"minibatch_sgd": {}},
        "readings": {"records": "own", "noise": "calibrated"},
    } | changes


def run_file(folder, text=None, **changes):
    path = Path(folder) / "patients.yaml"
    keys = {"run": "patients", "seed": 7, "experiments": {"patients": experiment(**changes)}}
    path.write_text(text or yaml.safe_dump(keys, sort_keys=False))
    return path


def asked(path, epsilon=1.0, algorithm="minibatch_sgd", person=False, stepsize=0.5, clip=1.0, tries=1):
    """(run, release) of a run file."""
    resolved = load(path)
    config = resolved.experiments["patients"]
    task = task_of("patients", config, algorithm, config.settings[0].name, "default")
    point = {"stepsize": stepsize, "clip": clip, "phase_length": 1}
    return resolved.run, releases.planned(task, epsilon, point, "", person, tries)


def without_noise(release):
    """The same release, whose plan has no noise."""
    kinds = [tuple(dataclasses.replace(kind, noise=0.0) for kind in plan.releases) for plan in release.plans]
    plans = [dataclasses.replace(plan, releases=of) for plan, of in zip(release.plans, kinds, strict=True)]
    return dataclasses.replace(release, plans=plans)
