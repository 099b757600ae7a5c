"""The other ε of a reported run: a person's, the chosen run's, and by round; docs/privacy.md says what each means."""

import functools
import math

import numpy as np
import pandas as pd

from silodp.algorithms.base import Algorithm
from silodp.config.experiment import Experiment
from silodp.experiments.by_round import epsilon_by_round
from silodp.experiments.task import Task
from silodp.files import BY_ROUND_COLUMNS
from silodp.privacy.person import persons_epsilon
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.selection import selection_epsilon

# Rounds of which `by_round_rows` gives the ε.
_ROUNDS = 13


def with_other_epsilons(
    rows: pd.DataFrame, experiment: str, config: Experiment, sizes: list[int], held: tuple[int, int]
) -> pd.DataFrame:
    """`privacy_rows` with their last columns filled in where a row is reported.

    Args:
        rows: of `silodp.experiments.delivered.privacy_rows`.
        experiment: its name.
        config: the experiment.
        sizes: training records of each silo; where silos have plans of their own, the largest ε is given.
        held: in how many silos a record lies at most, and how often in one of them: what a person has.
    """
    found = []
    for row in rows.to_dict("records"):
        setting = next(one for one in config.settings if (row["M"], row["R"]) == (one.M, one.R))
        task = Task(experiment, config, row["algorithm"], setting, row["reading"])
        beside = row | {"person_silos": held[0], "person_records": held[1]}
        # A clip threshold read off the data makes every ε infinite.
        if row["reported"] and task.readings.clip_rule == "grid":
            beside |= _others(task, row["epsilon"], int(row["phase_length"]), sizes, held)
        found.append(beside)
    return pd.DataFrame(found, columns=list(rows.columns))


def _others(task: Task, epsilon: float, phase_length: int, sizes: list[int], held: tuple[int, int]) -> dict[str, float]:
    plans = tuple(dict.fromkeys(task.plans(epsilon, phase_length, sizes)))
    if task.readings.resample:  # of one record nothing is proven, of all copies of it something is
        return {"epsilon_person": persons_epsilon(plans, *held)}
    grid = task.grid()
    points = grid[grid["epsilon"] == epsilon]
    candidates: list[PrivacyPlan] = []
    for phase in sorted({int(one) for one in points["phase_length"]}):
        candidates += dict.fromkeys(task.plans(epsilon, phase, sizes))
    algorithm = task.make(phase_length, epsilon, min(sizes))
    return _of_plans(algorithm, plans, tuple(candidates), len(points), held)


# Settings that differ in M alone have the same plans.
@functools.cache
def _of_plans(
    algorithm: Algorithm,
    plans: tuple[PrivacyPlan, ...],
    candidates: tuple[PrivacyPlan, ...],
    points: int,
    held: tuple[int, int],
) -> dict[str, float]:
    wanted = (1, max(algorithm.rounds // 2, 1))
    by_round = [[value for _, value in epsilon_by_round(algorithm, plan, wanted)] for plan in plans]
    return {
        "epsilon_person": persons_epsilon(plans, *held),
        "selection_points": points,
        # Of silos with δ of their own each is asked by itself.
        "epsilon_selection": _largest(
            [
                selection_epsilon([one for one in candidates if one.budget.delta == delta], points)
                for delta in {one.budget.delta for one in candidates}
            ]
        ),
        "epsilon_first_round": _largest([first for first, _ in by_round]),
        "epsilon_half_rounds": _largest([half for _, half in by_round]),
    }


def by_round_rows(experiment: str, config: Experiment, sizes: list[int]) -> pd.DataFrame:
    """ε so far at the end of the first, the last and up to eleven rounds between, as `BY_ROUND_COLUMNS`.

    Of each private algorithm in the experiment's first setting, at its middle ε, longest phase and default reading; no
    rows where that has no proof.

    Args:
        experiment: its name.
        config: the experiment.
        sizes: training records of each silo; where silos have plans of their own, the largest ε is given.
    """
    setting, rows = config.settings[0], []
    claimed = sorted(config.epsilons)[len(config.epsilons) // 2]
    for name, own in config.algorithms.items():
        task = Task(experiment, config, name, setting)
        if own.private == "non_private" or task.readings.resample or task.readings.clip_rule != "grid":
            continue
        phase = int(task.grid()["phase_length"].max())
        algorithm, plans = task.make(phase, claimed, min(sizes)), list(dict.fromkeys(task.plans(claimed, phase, sizes)))
        wanted = sorted({round(number) for number in np.linspace(1, algorithm.rounds, _ROUNDS)})
        each = [epsilon_by_round(algorithm, plan, wanted) for plan in plans]
        for place, number in enumerate(wanted):
            so_far = _largest([found[place][1] for found in each])
            delta = max(plan.budget.delta for plan in plans)
            rows.append([experiment, name, setting.M, setting.R, phase, claimed, delta, number, so_far])
    return pd.DataFrame(rows, columns=BY_ROUND_COLUMNS)


def _largest(values: list[float]) -> float:
    """The largest; NaN, which is not proven, beats all."""
    return math.nan if np.isnan(values).any() else max(values)
