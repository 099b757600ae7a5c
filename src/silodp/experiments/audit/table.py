"""Audited lower bounds beside the proven upper ones, for every private algorithm of an experiment at a few points."""

import math

import pandas as pd

from silodp.algorithms.base import Algorithm
from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.experiments.audit.lower_bound import CONFIDENCE, audit
from silodp.experiments.audit.mechanism import RUNS, mechanism_test
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import stacks
from silodp.federation.rng import Streams
from silodp.files import AUDIT_COLUMNS, AUDIT_EXTRA
from silodp.privacy.accounting.accountant import upper_epsilon
from silodp.privacy.plan import PrivacyPlan

# Runs of the mechanism test in a workflow, which audits dozens of algorithms.
TESTED = 60
# Columns about one point of an algorithm, whatever experiment it is of.
AUDITED = [*AUDIT_COLUMNS[4:], *AUDIT_EXTRA]


def audit_rows(run: Run, name: str, config: Experiment, sizes: list[int], runs: int | None = None) -> pd.DataFrame:
    """One row for each private algorithm at the smallest, middle and largest ε, and at the longest phase.

    Each algorithm is audited in the first setting of every R (M does not change what a silo sends), under the default
    reading, at the smallest silo. Behind a shuffler the audit sees the silo's own messages, held against their own
    bound. Sums through P_vec have no such messages, and no row; nor has an algorithm whose privacy rests on an
    assumption about the loss.
    """
    runs = runs or run.audit_runs
    first = {setting.R: setting for setting in reversed(config.settings)}
    rows = []
    for algorithm, options in config.algorithms.items():
        for setting in first.values() if options.private != "non_private" else ():
            streams = Streams(run.seed).child(name, "audit", algorithm, setting.name)
            rows += _task_rows(Task(name, config, algorithm, setting), sizes, runs, streams)
    return pd.DataFrame(rows, columns=[*AUDIT_COLUMNS, *AUDIT_EXTRA])


def _task_rows(task: Task, sizes: list[int], runs: int, streams: Streams) -> list[dict]:
    smallest = sizes.index(min(sizes))
    rows = []
    for number, (points, plans, algorithm) in enumerate(stacks(task, _points(task), sizes)):
        audited = [plan[smallest] for plan in plans]
        if audited[0].shuffled_sum is not None or audited[0].assumption:
            continue
        results = point_rows(algorithm, audited, runs, streams.child(number), min(runs, TESTED))
        for point, row in zip(points.to_dict("records"), results, strict=True):
            names = {"experiment": task.experiment, "algorithm": task.algorithm, "setting": task.setting.name}
            rows.append(names | {"phase_length": int(point["phase_length"])} | row)
    return rows


def point_rows(
    algorithm: Algorithm, plans: list[PrivacyPlan], runs: int, streams: Streams, tested: int = RUNS
) -> list[dict]:
    """`AUDITED` of an algorithm at points that share batch sizes; arguments as in `audit`, `tested` runs of the
    mechanism test."""
    audited = audit(algorithm, plans, runs, streams)
    mechanisms = mechanism_test(algorithm, plans, streams.child("mechanism"), runs=tested)
    rows = []
    for plan, bounds, mechanism in zip(plans, audited, mechanisms, strict=True):
        delivered = upper_epsilon(plan, plan.budget.delta)
        rows.append(
            {
                "claimed_epsilon": plan.budget.epsilon,
                "delta": plan.budget.delta,
                "delivered_epsilon": delivered,
                "audited_lower": bounds.lower,
                "confidence": CONFIDENCE,
                "runs": runs,
                "holds": bounds.lower <= delivered,
                "audited_profile": bounds.profile.epsilon,
                "noise_below": bounds.profile.noise if bounds.profile.epsilon else math.nan,
                "profile_holds": not bounds.profile.exceeded,
                "mechanism": mechanism.words,
                "mechanism_p": mechanism.p,
            }
        )
    return rows


def _points(task: Task) -> pd.DataFrame:
    """The audited points, one for each privacy plan, which does not depend on step size and clip."""
    epsilons = task.config.epsilons
    wanted = {min(epsilons), sorted(epsilons)[len(epsilons) // 2], max(epsilons)}
    grid = task.grid()
    grid = grid[grid["epsilon"].isin(wanted) & (grid["phase_length"] == grid["phase_length"].max())]
    return grid.drop_duplicates(["epsilon", "phase_length"])[POINT].reset_index(drop=True)
