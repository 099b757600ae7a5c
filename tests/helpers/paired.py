"""Folders of results with two algorithms, trial by trial, under several readings."""

import json

import pandas as pd

from silodp.verdicts.claims.base import RunFolder


def rows(experiment, errors, epsilon=1.0):
    """errors: reading → (minibatch_sgd, local_sgd)."""
    return [
        {"experiment": experiment, "algorithm": name, "reading": reading, "M": 2, "R": 25, "epsilon": epsilon,
         "trial": trial, "stepsize": 1.0, "clip": 1.0, "phase_length": 1, "train_loss": 0.1,
         "test_error": error + 0.001 * trial * (name == "local_sgd"), "diverged": False}
        for reading, pair in errors.items()
        for name, error in zip(("minibatch_sgd", "local_sgd"), pair, strict=True)
        for trial in range(4)
    ]  # fmt: skip


def run(tmp_path, tables):
    (tmp_path / "reported").mkdir()
    for name, errors in tables.items():
        pd.DataFrame(rows(name, errors)).to_csv(tmp_path / f"reported/{name}.csv", index=False)
    (tmp_path / "config.json").write_text(json.dumps({"experiments": {name: {} for name in tables}}))
    return RunFolder(tmp_path)
