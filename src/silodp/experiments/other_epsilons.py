"""The other ε of a reported run: a person's, the chosen run's, and by round; docs/privacy.md says what each means."""

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from silodp.algorithms.base import Algorithm
from silodp.config.experiment import Experiment
from silodp.experiments.by_round import epsilon_by_round
from silodp.experiments.task import Task, task_at
from silodp.files import BY_ROUND_COLUMNS
from silodp.privacy.person import persons_epsilon
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.selection import selection_epsilon

# Rounds of which `by_round_rows` gives the ε.
_ROUNDS = 13


def with_other_epsilons(
    rows: pd.DataFrame, experiment: str, config: Experiment, sizes: list[int], held: tuple[int, int]
) -> pd.DataFrame:
    """`delivered.privacy_rows` with their last columns filled in where a row is reported.

    Args:
        sizes: training records of each silo; the largest ε over silos counts.
        held: in how many silos a record lies at most, and how often in one of them: what a person has.
    """
    filled = []
    for row in rows.to_dict("records"):
        task = task_at(experiment, config, row)
        row |= {"person_silos": held[0], "person_records": held[1]}
        # A clip threshold read off the data makes every ε infinite.
        if row["reported"] and task.readings.clip_rule == "grid":
            row |= _others(task, row["epsilon"], int(row["phase_length"]), sizes, held)
        filled.append(row)
    return pd.DataFrame(filled, columns=list(rows.columns))


def _others(task: Task, epsilon: float, phase_length: int, sizes: list[int], held: tuple[int, int]) -> dict[str, float]:
    plans = _distinct_plans(task, epsilon, phase_length, sizes)
    if task.readings.resample:  # nothing is proven of one record, but of all copies of a record
        return {"epsilon_person": persons_epsilon(plans, *held)}
    # In a study of one's own data the rounds are chosen too.
    settings = [task.setting] if isinstance(task.config.dataset, str) else task.config.settings
    points = 0
    candidates: list[PrivacyPlan] = []
    for choice in [replace(task, setting=setting) for setting in settings]:
        grid = choice.grid()
        of = grid[grid["epsilon"] == epsilon]
        points += len(of)
        for phase in sorted({int(phase) for phase in of["phase_length"]}):
            candidates += _distinct_plans(choice, epsilon, phase, sizes)
    return _of_plans(task.make(phase_length, epsilon, min(sizes)), plans, tuple(candidates), points, held)


def _distinct_plans(task: Task, epsilon: float, phase_length: int, sizes: list[int]) -> tuple[PrivacyPlan, ...]:
    return tuple(dict.fromkeys(task.plans(epsilon, phase_length, sizes)))


# Settings that differ in M alone have the same plans.
@functools.cache
def _of_plans(
    algorithm: Algorithm,
    plans: tuple[PrivacyPlan, ...],
    candidates: tuple[PrivacyPlan, ...],
    points: int,
    held: tuple[int, int],
) -> dict[str, float]:
    first, half = _largest_by_round(algorithm, plans, (1, max(algorithm.rounds // 2, 1)))
    # Silos with a δ of their own select among their own plans.
    deltas = {plan.budget.delta for plan in candidates}
    by_delta = [[plan for plan in candidates if plan.budget.delta == delta] for delta in deltas]
    return {
        "epsilon_person": persons_epsilon(plans, *held),
        "selection_points": points,
        "epsilon_selection": _largest([selection_epsilon(same, points) for same in by_delta]),
        "epsilon_first_round": first,
        "epsilon_half_rounds": half,
    }


def by_round_rows(experiment: str, config: Experiment, sizes: list[int]) -> pd.DataFrame:
    """ε so far at the end of the first, the last and up to eleven rounds between, as `BY_ROUND_COLUMNS`.

    Of each private algorithm in the experiment's first setting, at its middle ε, longest phase and default reading; no
    rows where that has no proof. `sizes` are training records of each silo; the largest ε over silos counts.
    """
    setting, rows = config.settings[0], []
    claimed = sorted(config.epsilons)[len(config.epsilons) // 2]
    for name, options in config.algorithms.items():
        task = Task(experiment, config, name, setting)
        if options.private == "non_private" or task.readings.resample or task.readings.clip_rule != "grid":
            continue
        phase = int(task.grid()["phase_length"].max())
        algorithm, plans = task.make(phase, claimed, min(sizes)), _distinct_plans(task, claimed, phase, sizes)
        rounds = sorted({round(number) for number in np.linspace(1, algorithm.rounds, _ROUNDS)})
        delta = max(plan.budget.delta for plan in plans)
        for number, epsilon in zip(rounds, _largest_by_round(algorithm, plans, rounds), strict=True):
            rows.append([experiment, name, setting.M, setting.R, phase, claimed, delta, number, epsilon])
    return pd.DataFrame(rows, columns=BY_ROUND_COLUMNS)


def _largest_by_round(algorithm: Algorithm, plans: tuple[PrivacyPlan, ...], rounds: Sequence[int]) -> list[float]:
    """The largest ε so far over silos, at the end of each of `rounds`."""
    by_plan = [[epsilon for _, epsilon in epsilon_by_round(algorithm, plan, rounds)] for plan in plans]
    return [_largest(list(values)) for values in zip(*by_plan, strict=True)]


def _largest(values: list[float]) -> float:
    """The largest; NaN, which is not proven, beats all."""
    return float(np.max(values))
