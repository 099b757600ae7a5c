"""Trial tables small enough to select from by hand."""

import math

import pandas as pd
import small

from silodp.experiments.selection import choose
from silodp.experiments.table import report_rows

INF, NAN = math.inf, math.nan


def rows(algorithm, losses, *, epsilon=1.0, stepsizes=None, q=1, M=2, R=3, reading="", errors=None, clip=1.0, **more):
    """Grid rows: `losses[trial][point]`; a point is a step size, its test error ten times its loss unless given."""
    named = {"experiment": "e", "algorithm": algorithm, "reading": reading, "M": M, "R": R, "epsilon": epsilon}
    other = {"clip": clip, "phase_length": q, "K": 5, "train_error": 0.0, "test_loss": 0.0, "left_after": -1}
    other |= {"seconds": 2.0, "N": 4, "n": 100, "delta": 1e-4}
    steps = stepsizes or [0.1, 0.2, 0.3, 0.4]
    points = [
        {"trial": trial, "stepsize": steps[point], "train_loss": loss, "diverged": not math.isfinite(loss)}
        | {"test_error": 10 * loss if errors is None else errors[trial][point]}
        for trial, each in enumerate(losses)
        for point, loss in enumerate(each)
    ]
    return pd.DataFrame([named | point | other | more for point in points])


def experiment(**changes):
    names = ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider")
    keys = {"reports": [{"selection": "pooled", "evaluation": "same"}], "algorithms": {name: {} for name in names}}
    return small.experiment(**keys | changes)


def spiders(prox, fed, **more):
    return pd.concat(
        [rows("fedprox_spider", prox, q=2, **more), rows("fed_spider", fed, clip=3.0, **more)], ignore_index=True
    )


def reported(frame, selection="pooled", fresh=None, evaluation="same"):
    chosen = choose(frame, selection).assign(selection=selection)
    return report_rows(frame, fresh, chosen, selection, evaluation)
