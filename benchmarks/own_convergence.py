"""Federated training without noise beside a pooled scikit-learn fit, on twelve tables that no default was chosen by.

`python benchmarks/own_convergence.py [--only NAME] [--trials 2]` writes each table as a CSV file, makes its run file as
`silodp init` does, trains minibatch SGD without noise over its grid and rounds, and prints a Markdown table: the test
error of guessing (majority or mean), of the pooled fit and of federated training at the smallest training loss,
and the share of the pooled fit's gain over guessing that federated training loses.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn import datasets

from silodp.datasets.own.guessing import Wishes
from silodp.experiments.task import task_of
from silodp.experiments.training import run_trial
from silodp.experiments.validation import load
from silodp.own_data.first_run_file import run_file, survey
from silodp.own_data.study import Trials, baselines
from silodp.partition.trial_data import load_dataset, partition_and_measure, prepare


def _bundled(loader: Callable) -> pd.DataFrame:
    bunch = loader()
    names = [f"x{i}" for i in range(bunch.data.shape[1])]
    words = bunch.target_names[bunch.target] if hasattr(bunch, "target_names") else bunch.target
    return pd.DataFrame(bunch.data, columns=names).assign(y=words)


def _digits() -> pd.DataFrame:
    frame = _bundled(datasets.load_digits)
    return frame.assign(y=[f"digit {y}" for y in frame["y"]])


def _made(seed: int, n: int, features: int, outcome: Callable, spread: Callable = np.asarray) -> pd.DataFrame:
    """Normal features through `spread`, and what `outcome` makes of them and a generator."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n, features))
    frame = pd.DataFrame(spread(x), columns=[f"x{i}" for i in range(features)])
    return frame.assign(y=outcome(x, generator))


def _two(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    w = np.random.default_rng(9).standard_normal(x.shape[1]) * 3 / np.sqrt(x.shape[1])
    return np.where(x @ w + generator.logistic(size=len(x)) > 0, "yes", "no")


def _rare(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return np.where(2 * x[:, 0] + x[:, 1] - 4 + generator.logistic(size=len(x)) > 0, "event", "none")


def _real(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return 50 + 10 * (x @ np.linspace(1, 0.1, x.shape[1])) + 15 * generator.standard_normal(len(x))


def _heavy(x: np.ndarray) -> np.ndarray:
    return np.exp(1.5 * x)


def _scales(x: np.ndarray) -> np.ndarray:
    return x * 10.0 ** np.linspace(-3, 5, x.shape[1]) + 10.0 ** np.linspace(-2, 6, x.shape[1])


def _related(x: np.ndarray) -> np.ndarray:
    return x @ (np.eye(x.shape[1]) + 0.7)


def _outliers(x: np.ndarray) -> np.ndarray:
    """A reading in a thousand is a thousand times too large: bounds by it leave the others in a thousandth of them."""
    wrong = np.random.default_rng(3).random(x.shape) < 1e-3
    return np.where(wrong, 1000 * x, x)


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "breast cancer": lambda: _bundled(datasets.load_breast_cancer),
    "wine": lambda: _bundled(datasets.load_wine),
    "iris": lambda: _bundled(datasets.load_iris),
    "digits": _digits,
    "diabetes": lambda: _bundled(datasets.load_diabetes),
    "two classes": lambda: _made(1, 2000, 10, _two),
    "108 features, wide bounds": lambda: _made(2, 3000, 108, _two, _outliers),
    "heavy tails": lambda: _made(3, 2000, 12, _two, _heavy),
    "scales from 10⁻³ to 10⁵": lambda: _made(4, 2000, 9, _two, _scales),
    "rare class": lambda: _made(5, 3000, 6, _rare),
    "regression": lambda: _made(6, 1500, 15, _real),
    "regression, related features": lambda: _made(7, 1500, 8, _real, _related),
}


def lost(frame: pd.DataFrame, trials: int) -> dict[str, float]:
    """Errors of guessing, the pooled fit and federated training in five silos, and the rounds chosen."""
    with tempfile.TemporaryDirectory() as folder:
        here = os.getcwd()
        os.chdir(folder)
        try:
            frame.to_csv("table.csv", index=False)
            found = survey(Path("table.csv"), Wishes("y"))
            Path("table.yaml").write_text(run_file(found, "table", Path("table.yaml")), encoding="utf-8")
            resolved = load("table.yaml")
            config = resolved.experiments["table"].model_copy(update={"trials": trials})
            data = load_dataset(config, resolved.run)
            parts, _, _ = partition_and_measure("table", config, config.readings, resolved.run, data)
            prepared = [prepare(data, config, config.readings, part, resolved.run) for part in parts]
            rows = []
            for setting in config.settings:
                task = task_of("table", config, "minibatch_sgd", setting.name, "default")
                points = task.grid()
                points = points[points["epsilon"].isna()].reset_index(drop=True)
                rows += [
                    run_trial(task, resolved.run, one, k, points).assign(R=setting.R) for k, one in enumerate(prepared)
                ]
            trials_of = Trials(prepared)
            judged = {name: trials_of.errors(said)[0].mean() for name, said in baselines(trials_of).items()}
        finally:
            os.chdir(here)
    table = pd.concat(rows).groupby(["R", "stepsize", "clip"], as_index=False)[["train_loss", "test_error"]].mean()
    best = table.loc[table["train_loss"].fillna(np.inf).idxmin()]
    guess, pooled = judged["guess"], judged["pooled"]
    return {"guess": guess, "pooled": pooled, "federated": best["test_error"], "rounds": best["R"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a table's name")
    parser.add_argument("--trials", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| table | guessing | pooled fit | federated | rounds | share of the gain lost |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, make in TABLES.items():
        if options.only in name:
            row = lost(make(), options.trials)
            share = (row["federated"] - row["pooled"]) / (row["guess"] - row["pooled"])
            errors = " | ".join(f"{row[key]:.3f}" for key in ("guess", "pooled", "federated"))
            print(f"| {name} | {errors} | {row['rounds']:.0f} | {100 * share:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
