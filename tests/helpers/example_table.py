"""A results table of the size of the breast-cancer experiment: five private algorithms, seven ε, two baselines."""

import numpy as np
import pandas as pd

from silodp.experiments.columns import TABLE_COLUMNS

EPSILONS = (0.75, 1.0, 1.5, 3.0, 6.0, 12.0, 18.0)
PRIVATE = ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider", "spider")
BASELINES = ("minibatch_sgd", "local_sgd")
# Columns that no test is about.
FIXED = {"n": 170, "K": 83, "selection": "pooled", "evaluation": "fresh", "stepsize": 0.1, "clip": 1.0, "trials": 10}
FIXED |= {"phase_length": np.nan, "diverged": 0, "seconds": 1.5, "proven": True}


def filled(points, error, low, high, **columns):
    """`TABLE_COLUMNS` of points (algorithm, epsilon) with these test errors."""
    table = points.assign(**FIXED, private=points["epsilon"].notna(), delivered_epsilon=0.9 * points["epsilon"])
    return table.assign(test_error_mean=error, test_error_p05=low, test_error_p95=high, **columns)[TABLE_COLUMNS]


def results_table(private=PRIVATE, baselines=BASELINES, epsilons=EPSILONS, M=2, R=25, reading=""):
    rows = [(name, epsilon, 0.1 + i / 50) for i, name in enumerate(private) for epsilon in epsilons]
    rows += [(name, np.nan, 0.03 + i / 50) for i, name in enumerate(baselines)]
    points = pd.DataFrame(rows, columns=["algorithm", "epsilon", "error"])
    error = points["error"] + 0.2 / (1 + points["epsilon"].fillna(1e9))
    names = {"experiment": "wbcd_mlp", "reading": reading, "M": M, "R": R, "N": M, "train_loss_mean": 2 * error}
    delta = np.where(points["epsilon"].notna(), 3e-5, np.nan)
    return filled(points, error, 0.7 * error, 1.4 * error, **names, delta=delta)
