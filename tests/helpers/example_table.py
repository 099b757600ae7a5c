"""A results table of the size of the breast-cancer experiment: five private algorithms, seven ε, two baselines."""

import numpy as np
import pandas as pd

from silodp.files import TABLE_COLUMNS

EPSILONS = (0.75, 1.0, 1.5, 3.0, 6.0, 12.0, 18.0)
PRIVATE = ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider", "spider")
BASELINES = ("minibatch_sgd", "local_sgd")


def results_table(private=PRIVATE, baselines=BASELINES, epsilons=EPSILONS, M=2, R=25, reading=""):
    rows = [
        {"algorithm": name, "private": True, "epsilon": epsilon,
         "delivered_epsilon": 0.9 * epsilon, "error": 0.1 + i / 50}
        for i, name in enumerate(private)
        for epsilon in epsilons
    ] + [
        {"algorithm": name, "private": False, "epsilon": np.nan, "delivered_epsilon": np.nan, "error": 0.03 + i / 50}
        for i, name in enumerate(baselines)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    error = table["error"] + 0.2 / (1 + table["epsilon"].fillna(1e9))
    return table.assign(
        experiment="wbcd_mlp", reading=reading, M=M, R=R, N=M, n=170, K=83,
        delta=np.where(table["private"], 3e-5, np.nan),
        selection="pooled", evaluation="fresh", stepsize=0.1, clip=1.0, phase_length=np.nan, trials=10, diverged=0,
        train_loss_mean=2 * error, test_error_mean=error, test_error_p05=0.7 * error, test_error_p95=1.4 * error,
        seconds=1.5, proven=True,
    )[TABLE_COLUMNS]  # fmt: skip
