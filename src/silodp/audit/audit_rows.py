"""The tables of audits: for every private algorithm of an experiment whether its messages are made as planned."""

import logging
from dataclasses import replace

import pandas as pd
import torch

from silodp.algorithms.base import Algorithm
from silodp.audit.audit_columns import AS_PLANNED, AUDIT_COLUMNS
from silodp.audit.mechanism_check import Size, check_mechanism
from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import stacks
from silodp.models import MODELS
from silodp.partition.experiment_data import dataset_of
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.true_epsilon import upper_end
from silodp.streams import Streams

log = logging.getLogger("silodp")

# Columns about one point of an algorithm, whatever experiment it is of.
POINT_COLUMNS = AUDIT_COLUMNS[4:]


def audit_rows(run: Run, name: str, config: Experiment, sizes: list[int]) -> pd.DataFrame:
    """One row for each private algorithm at the smallest, middle and largest ε, and at the longest phase.

    Each algorithm is audited in the first setting of every R, under the default reading, with all its silos; ε is the
    smallest silo's, of its own messages. Sums through P_vec have no such messages, and no row; nor has an algorithm
    whose privacy rests on an assumption about the loss. The log has the rows that fail.
    """
    first = {setting.R: setting for setting in reversed(config.settings)}
    size = Size(model_size(config), getattr(torch, run.dtype))
    rows = []
    for algorithm, options in config.algorithms.items():
        for setting in first.values() if options.private != "non_private" else ():
            streams = Streams(run.seed).child(name, "audit", algorithm, setting.name)
            rows += _task_rows(Task(name, config, algorithm, setting), sizes, streams, size)
    for row in rows:
        warn_of_fault(f"{row['experiment']} {row['algorithm']}", row)
    return pd.DataFrame(rows, columns=AUDIT_COLUMNS)


def warn_of_fault(name: str, row: dict) -> None:
    """Log a row whose messages are not as planned."""
    if row["mechanism"] != AS_PLANNED:
        where = f"{name} at epsilon = {row['claimed_epsilon']:g}"
        log.warning("%s: messages are not made as planned: %s", where, row["mechanism"])


def model_size(config: Experiment) -> int:
    """d of the experiment's model, from what its data set says of itself."""
    dataset, steps = dataset_of(config), config.preprocess
    features = (steps.pca or dataset.features) + steps.constant_column
    classes = len(dataset.class_counts) if dataset.class_counts else None
    return MODELS[config.model.name](features, classes, **config.model.model_dump(exclude={"name"})).size


def _task_rows(task: Task, sizes: list[int], streams: Streams, size: Size) -> list[dict]:
    rows = []
    for number, (points, plans, algorithm) in enumerate(stacks(task, points_of(task), sizes)):
        if plans[0][0].shuffled_sum is not None or plans[0][0].assumption:
            continue
        smallest = sizes.index(min(sizes))
        if algorithm.alone:
            plans, smallest = [[point[smallest]] for point in plans], 0
        results = point_rows(algorithm, plans, streams.child(number), size, smallest)
        for point, row in zip(points.to_dict("records"), results, strict=True):
            names = {"experiment": task.experiment, "algorithm": task.algorithm, "setting": task.setting.name}
            rows.append(names | {"phase_length": int(point["phase_length"])} | row)
    return rows


def point_rows(
    algorithm: Algorithm, plans: list[list[PrivacyPlan]], streams: Streams, size: Size, silo: int = 0
) -> list[dict]:
    """`POINT_COLUMNS` of points that share batch sizes, with the ε of one silo; arguments as in `check_mechanism`."""
    found = check_mechanism(algorithm, plans, streams, size)
    return [
        {
            "claimed_epsilon": plan.budget.epsilon,
            "delta": plan.budget.delta,
            "delivered_epsilon": upper_end([replace(plan, trusted_sum=None)]),
            "mechanism": mechanism.verdict_text,
            "mechanism_p": mechanism.p,
        }
        for plan, mechanism in zip((point[silo] for point in plans), found, strict=True)
    ]


def points_of(task: Task) -> pd.DataFrame:
    """The audited points, one for each privacy plan, which does not depend on step size and clip."""
    epsilons = task.config.epsilons
    wanted = {min(epsilons), sorted(epsilons)[len(epsilons) // 2], max(epsilons)}
    grid = task.grid()
    grid = grid[grid["epsilon"].isin(wanted) & (grid["phase_length"] == grid["phase_length"].max())]
    return grid.drop_duplicates(["epsilon", "phase_length"])[POINT]
