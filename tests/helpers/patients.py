"""A small file of patients and its run file."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

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
            "columns": {
                "hospital": "name",
                "age": "number",
                "smoker": {"type": "boolean", "values": ["no", "yes"]},
                "readmitted": {"type": "category", "values": ["no", "yes"]},
            },
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
