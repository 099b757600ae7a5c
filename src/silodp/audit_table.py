"""Audited lower bounds beside delivered ε, for every private algorithm of an experiment at a few points."""

import pandas as pd

from silodp.audit import CONFIDENCE, audit
from silodp.dag import Plan
from silodp.privacy.accounting import upper_epsilon
from silodp.results import AUDIT_COLUMNS
from silodp.rng import Streams
from silodp.tasks import POINT, Task
from silodp.training import stacks


def audit_rows(plan: Plan, experiment: str, sizes: list[int], runs: int | None = None) -> pd.DataFrame:
    """One row for each private algorithm at the smallest, middle and largest ε, and at the longest phase.

    Each algorithm is audited in the first setting of every R (a silo that always takes part sends the same whatever M
    is), under the default reading, at the smallest silo. Behind a shuffler it is the silo's own messages that are
    audited, against what they deliver by themselves; sums through P_vec have no such messages, and no row.

    Args:
        plan: the run.
        experiment: its name.
        sizes: training records of each silo.
        runs: independent runs in either world; default: the run's `audit_runs`.

    Returns:
        `AUDIT_COLUMNS`.
    """
    config, runs = plan.experiments[experiment], runs or plan.run.audit_runs
    first = {setting.R: setting.name for setting in reversed(config.settings)}
    rows = []
    for algorithm, options in config.algorithms.items():
        for setting in first.values() if options.private != "non_private" else ():
            streams = Streams(plan.run.seed).child(experiment, "audit", algorithm, setting)
            rows += _task_rows(plan.task(experiment, algorithm, setting, "default"), sizes, runs, streams)
    return pd.DataFrame(rows, columns=AUDIT_COLUMNS)


def _task_rows(task: Task, sizes: list[int], runs: int, streams: Streams) -> list[dict]:
    smallest = sizes.index(min(sizes))
    rows = []
    for number, (points, plans, algorithm) in enumerate(stacks(task, _points(task), sizes)):
        own = [plan[smallest] for plan in plans]
        if own[0].shuffled_sum is not None:
            continue
        found = audit(algorithm, own, runs, streams.child(number))
        for point, one, lower in zip(points.to_dict("records"), own, found, strict=True):
            delivered = upper_epsilon(one, one.budget.delta)
            rows.append(
                {
                    "experiment": task.experiment,
                    "algorithm": task.algorithm,
                    "setting": task.setting.name,
                    "phase_length": int(point["phase_length"]),
                    "claimed_epsilon": point["epsilon"],
                    "delta": one.budget.delta,
                    "delivered_epsilon": delivered,
                    "audited_lower": lower,
                    "confidence": CONFIDENCE,
                    "runs": runs,
                    "holds": lower <= delivered,
                }
            )
    return rows


def _points(task: Task) -> pd.DataFrame:
    """The points that are audited, one of each privacy plan: step size and clip do not matter to it."""
    epsilons = task.config.epsilons
    wanted = {min(epsilons), sorted(epsilons)[len(epsilons) // 2], max(epsilons)}
    grid = task.grid()
    grid = grid[grid["epsilon"].isin(wanted) & (grid["phase_length"] == grid["phase_length"].max())]
    return grid.drop_duplicates(["epsilon", "phase_length"])[POINT].reset_index(drop=True)
