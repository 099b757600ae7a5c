"""Runs whose tables are planted, so that it is known what each claim's verdict must be."""

import json

import numpy as np
import pandas as pd

from silodp.experiments.columns import PRIVACY_COLUMNS, PRIVACY_EXTRA, REPORTED_COLUMNS
from silodp.files import write_csv
from silodp.verdicts.checks.bound_columns import BOUNDS_COLUMNS
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.claim_file import Claim


def trials(experiment, errors, reading="", M=2, R=5):
    """Rows of reported/<experiment>.csv; `errors` is (algorithm, ε or None) → one test error a trial."""
    filled = dict.fromkeys(REPORTED_COLUMNS, 0) | {"experiment": experiment, "reading": reading, "M": M, "R": R}
    return [
        filled | {"algorithm": algorithm, "epsilon": epsilon, "trial": trial, "test_error": float(error)}
        for (algorithm, epsilon), values in errors.items()
        for trial, error in enumerate(values)
    ]


def noisy(mean, trials=12, spread=0.01, seed=0):
    """Test errors around a mean; the same seed gives the same deviations, as pairs of trials have."""
    return mean + spread * np.random.default_rng(seed).standard_normal(trials)


def folder(path, reported=(), privacy=(), bounds=(), **files):
    """A run's folder with what is given; `files` are other CSV files by their stem."""
    (path / "tables").mkdir(parents=True, exist_ok=True)
    (path / "tables" / "planted.csv").touch()  # without a table it is no run
    (path / "config.json").write_text(json.dumps({"run": "planted", "experiments": {}}))
    table = pd.DataFrame(list(reported), columns=REPORTED_COLUMNS)
    for name, rows in table.groupby("experiment"):
        write_csv(rows, path / "reported" / f"{name}.csv")
    if len(privacy):
        write_csv(pd.DataFrame(list(privacy), columns=[*PRIVACY_COLUMNS, *PRIVACY_EXTRA]), path / "privacy.csv")
    for check, rows in pd.DataFrame(list(bounds), columns=BOUNDS_COLUMNS).groupby("check"):
        write_csv(rows, path / "bounds" / f"{check}.csv")
    for name, rows in files.items():
        write_csv(pd.DataFrame(rows), path / f"{name}.csv")
    return RunFolder(path)


def claim(statistic, **other):
    about = {"id": "X1", "source": "a paper", "statement": "a statement", "rule": "a rule"}
    return Claim(**about, statistic=statistic, **other)


def bound(verdict, check="rates_convex", theorem="convex-2.1", parameter="slope in n (private)", value=-1.0, **numbers):
    """A row of bounds/<check>.csv."""
    plain = {"lower": -1.5, "measured": -1.0, "measured_low": -1.1, "measured_high": -0.9, "upper": -0.5, "form": ""}
    names = {"check": check, "theorem": theorem, "parameter": parameter, "value": value, "verdict": verdict}
    return plain | numbers | names
