"""Claimed ε and bounds on the true ε of every private point of an experiment that a table reports.

Beside them a person's ε, the chosen run's, and ε by round: docs/privacy.md says what each means.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from silodp.algorithms.base import Algorithm
from silodp.config.experiment import Experiment
from silodp.experiments.columns import BY_ROUND_COLUMNS, PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.experiments.table import KEY
from silodp.experiments.task import Task, task_at
from silodp.federation.recorder import Recorder
from silodp.privacy.message_counts import Whom
from silodp.privacy.person import persons_epsilon
from silodp.privacy.plan import ADJACENCY, PrivacyPlan, at_largest_delta
from silodp.privacy.private_selection import selection_epsilon
from silodp.privacy.shuffling.shuffled_plan import sent_bits
from silodp.privacy.standing import standing
from silodp.privacy.true_epsilon import ends, refuting_epsilon, upper_end


def privacy_rows(experiment: str, config: Experiment, chosen: pd.DataFrame, sizes: list[int]) -> pd.DataFrame:
    """One row for each private point that was chosen, up to what its privacy does not depend on (step size and clip).

    `chosen` is what `selection.select` gives, `sizes` are training records of each silo; the worst silo counts.
    Columns: `PRIVACY_COLUMNS`, `PRIVACY_EXTRA`, phase_length, reported (chosen under the first report).
    """
    private = chosen[chosen["epsilon"].notna()]
    private = private.assign(reported=private["selection"] == config.reports[0].selection)
    delivered_by, reached_by = functools.cache(lambda plan: ends([plan])), functools.cache(refuting_epsilon)
    rows = []
    for point in private.groupby(KEY, as_index=False)["reported"].max().to_dict("records"):
        task = task_at(experiment, config, point)
        plans = at_largest_delta(task.plans(point["epsilon"], point["phase_length"], sizes))
        # NaN, which is not proven, counts as the largest.
        worst = max(plans, key=lambda plan: np.nan_to_num(delivered_by(plan).upper, nan=math.inf))
        result = delivered_by(worst)
        epsilon, method = result.upper, result.method
        # The silo with the largest upper end need not have the largest lower one.
        lower = np.max([reached_by(plan, delivered_by(plan), point["M"] == len(sizes)) for plan in plans])
        if task.readings.resample:
            # A record that was drawn into a silo several times moves a message several times as far as the plan counts.
            epsilon, method, lower = math.inf, "none: resampled records occur several times in a silo", math.nan
        if task.readings.clip_rule != "grid":
            epsilon, method, lower = math.inf, "not private: the clip threshold is read off the data", math.nan
        rows.append(
            point
            | {
                "experiment": experiment,
                "claimed_epsilon": point["epsilon"],
                "delivered_epsilon": epsilon,
                "delta": worst.budget.delta,
                "accountant": method,
                "adjacency": ADJACENCY,
                "sampling": worst.sampling,
                "noise_multiplier": worst.as_seen_by_adversary.noise_multiplier,
                "holds": epsilon <= point["epsilon"],
                "delivered_lower": lower,
                "claim": standing(point["epsilon"], lower, epsilon),
                "shuffled_bits": sent_bits(worst),
            }
        )
    frame = pd.DataFrame(rows, columns=[*PRIVACY_COLUMNS, *PRIVACY_EXTRA, "phase_length", "reported"])
    # Where trials chose different phase lengths, the row of the merged table is the one that promises least.
    row = ["algorithm", "reading", "M", "R", "epsilon", "reported"]
    frame = frame.sort_values([*row, "delivered_epsilon"], kind="stable")
    return frame.assign(reported=frame["reported"] & ~frame.duplicated(row, keep="last")).reset_index(drop=True)


def sent_by_round(algorithm: Algorithm, plan: PrivacyPlan) -> list[dict[str, int]]:
    """For every round: how many messages of each kind a silo has sent when it is over, having taken part in all."""
    recorder, totals = Recorder([plan]), []
    state = algorithm.start(torch.zeros(1, 1, dtype=torch.float64))
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, recorder)
        sent = Counter(query.kind for query, _ in recorder.asked[0])
        totals.append({release.kind: sent[release.kind] * release.steps for release in plan.releases})
    return totals


def epsilon_by_round(
    algorithm: Algorithm, plan: PrivacyPlan, rounds: Iterable[int] | None = None
) -> list[tuple[int, float]]:
    """(round, ε at the plan's δ of all messages up to its end), upper ends; `rounds` from 1 on, default all."""
    totals = sent_by_round(algorithm, plan)
    numbers = range(1, algorithm.rounds + 1) if rounds is None else rounds
    return [(number, _epsilon(plan, tuple(totals[number - 1].values()))) for number in numbers]


@functools.cache
def _epsilon(plan: PrivacyPlan, sent: tuple[int, ...]) -> float:
    """Upper ε of the plan with no more messages of each kind than were sent; 0 before the first."""
    cut = zip(plan.releases, sent, strict=True)
    releases = tuple(replace(release, count=min(count, release.count)) for release, count in cut)
    if not any(release.count for release in releases):
        return 0.0
    return upper_end([replace(plan, releases=releases)])


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
            row |= _other_epsilons(task, row["epsilon"], int(row["phase_length"]), sizes, held)
        filled.append(row)
    return pd.DataFrame(filled, columns=list(rows.columns))


def _other_epsilons(
    task: Task, epsilon: float, phase_length: int, sizes: list[int], held: tuple[int, int]
) -> dict[str, float]:
    plans = _distinct_plans(task, epsilon, phase_length, sizes)
    if task.readings.resample:  # nothing is proven of one record, but of all copies of a record
        return {"epsilon_person": persons_epsilon(plans, Whom(*held))}
    # In a study of one's own data the rounds are chosen too.
    settings = task.config.settings if task.config.is_own else [task.setting]
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
        "epsilon_person": persons_epsilon(plans, Whom(*held)),
        "selection_points": points,
        "epsilon_selection": float(np.max([selection_epsilon(same, points) for same in by_delta])),
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
    """The largest ε so far over silos, at their largest δ, after each of `rounds`; NaN, not proven, beats all."""
    alike = at_largest_delta(plans)
    by_plan = [[epsilon for _, epsilon in epsilon_by_round(algorithm, plan, rounds)] for plan in alike]
    return np.max(by_plan, axis=0).tolist()
