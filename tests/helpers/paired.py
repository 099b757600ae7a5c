"""Folders of results with two algorithms, trial by trial, under several readings."""

import json

import pandas as pd

from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.loading import load_claims

CLAIM = """
paper: test paper
claims:
  - id: X1
    source: test paper
    statement: MB-SGD beats local SGD.
    statistic: {statistic}
    rule: r
    experiments: [wbcd_mlp, mnist_mlp]
    {more}
"""


def claims(
    tmp_path, more="", statistic="{name: paired_difference, pairs: [{first: minibatch_sgd, second: local_sgd}]}"
):
    """A claim that minibatch SGD beats local SGD in two experiments, as it is read; `more`: YAML of further keys."""
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / "x.yaml").write_text(CLAIM.format(statistic=statistic, more=more))
    return load_claims(folder)


def rows(experiment, errors, epsilon=1.0, settings=((2, 25),)):
    """errors: reading → (minibatch_sgd, local_sgd)."""
    fixed = {"epsilon": epsilon, "stepsize": 1.0, "clip": 1.0, "phase_length": 1, "train_loss": 0.1, "diverged": False}
    return [
        {"experiment": experiment, "algorithm": name, "reading": reading, "M": M, "R": R, "trial": trial}
        | {"test_error": error + 0.001 * trial * (name == "local_sgd")}
        | fixed
        for M, R in settings
        for reading, pair in errors.items()
        for name, error in zip(("minibatch_sgd", "local_sgd"), pair, strict=True)
        for trial in range(4)
    ]


def run(tmp_path, tables, settings=None):
    """A folder of `tables`: experiment → errors; `settings`: experiment → its (M, R) where it is not (2, 25)."""
    (tmp_path / "reported").mkdir()
    for name, errors in tables.items():
        own = (settings or {}).get(name, ((2, 25),))
        pd.DataFrame(rows(name, errors, settings=own)).to_csv(tmp_path / f"reported/{name}.csv", index=False)
    (tmp_path / "config.json").write_text(json.dumps({"experiments": {name: {} for name in tables}}))
    return RunFolder(tmp_path)
