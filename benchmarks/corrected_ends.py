"""Ends of ε of published rows, held against today's code: what moves, why, and whether the claim's word changes.

    python benchmarks/corrected_ends.py results/published* > corrected.csv

A row's ends were once the worst silo's, at that silo's own δ, beside the largest δ. They are the largest at that δ.
Nothing is trained: plans follow from the published config and the sizes of the silos of trial 0.
"""

import csv
import functools
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from silodp.config.experiment import Experiment
from silodp.config.loading import Resolved
from silodp.config.run import Run
from silodp.experiments.own_data_rules import own_sizes
from silodp.experiments.privacy_table import plans_at_largest_delta
from silodp.experiments.task import Task, task_at
from silodp.experiments.validation import load
from silodp.federation.experiment_data import dataset_of, number_of_silos
from silodp.federation.partition import partition
from silodp.federation.streams import Streams
from silodp.federation.trial_data import load_dataset
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.standing import standing
from silodp.privacy.true_epsilon import epsilon_bounds, violating_epsilon

COLUMNS = ["publication", "experiment", "algorithm", "reading", "M", "R", "epsilon", "delta", "silos"]
COLUMNS += ["old_lower", "new_lower", "old_upper", "new_upper", "old_claim", "new_claim", "why"]
Ends = tuple[float, float]

_delivered, _reached = functools.cache(epsilon_bounds), functools.cache(violating_epsilon)


def training_sizes(name: str, config: Experiment, run: Run, resample: bool, split: str) -> list[int]:
    """Training records of each silo of trial 0, as the partition job cuts them."""
    sizes = own_sizes(config, dataset_of(config))
    if sizes is not None:
        return sizes
    data, plan = load_dataset(config, run), config.silos
    part = partition(
        data.y,
        scheme=plan.scheme,
        silos=number_of_silos(config),
        train_share=plan.train_share,
        mixed=plan.mixed,
        per_class=plan.per_class,
        resample=resample,
        split=split,
        official_test=data.official_test if plan.official_test else None,
        assigned=data.silo if len(data.silo) else None,
        person=data.person,
        generator=Streams(run.seed).generator(name, 0, "partition"),
    )
    return [len(records) for records in part.train]


def row_ends(plans: list[PrivacyPlan], everyone: bool) -> tuple[Ends, PrivacyPlan]:
    """(lower, upper) end of a row and the silo's plan behind the upper one."""
    worst = max(plans, key=lambda plan: np.nan_to_num(_delivered(plan).upper, nan=math.inf))
    lower = float(np.max([_reached(plan, _delivered(plan), everyone) for plan in plans]))
    return (lower, _delivered(worst).upper), worst


def old_row_ends(plans: list[PrivacyPlan], everyone: bool) -> Ends:
    worst = max(plans, key=lambda plan: np.nan_to_num(_delivered(plan).upper, nan=math.inf))
    return _reached(worst, _delivered(worst), everyone), _delivered(worst).upper


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9)


def moved_rows(publication: Path) -> Iterator[dict]:
    """Rows of a publication's privacy.csv whose ends, sampling or noise multiplier are not what they were."""
    resolved = load(publication / "config.json")
    rows = pd.read_csv(publication / "privacy.csv")
    rows["reading"] = rows["reading"].astype(object).fillna("")
    sizes = functools.cache(functools.partial(_sizes_of, resolved))
    for row in rows.to_dict("records"):
        name, config = row["experiment"], resolved.experiments[row["experiment"]]
        task = task_at(name, config, row)
        if task.readings.resample or task.readings.clip_rule != "grid":
            continue
        records = sizes(name, task.readings.split)
        apart = row["delivered_epsilon"] > 1.1 * row["delivered_lower"]
        if len(set(records)) == 1 and not apart:
            continue  # one plan for all silos, and ends too close for another lower end
        for plans in _plans_by_phase(task, row["epsilon"], list(records)):
            everyone = row["M"] == len(records)
            old = old_row_ends(plans, everyone)
            if not math.isclose(old[1], row["delivered_epsilon"], rel_tol=2e-4) and old[1] != row["delivered_epsilon"]:
                continue  # another phase length; a calibrated noise is found to 1e-4
            new, worst = row_ends(plans_at_largest_delta(plans), everyone)
            yield from _moved(publication, row, old, new, plans, worst)
            break
        else:
            yield _line(publication, row, (math.nan, math.nan), 0, "no phase length gives the published upper end")


def _sizes_of(resolved: Resolved, name: str, split: str) -> tuple[int, ...]:
    return tuple(training_sizes(name, resolved.experiments[name], resolved.run, False, split))


def _plans_by_phase(task: Task, epsilon: float, sizes: list[int]) -> Iterator[list[PrivacyPlan]]:
    grid = task.grid()
    for phase in sorted({int(phase) for phase in grid.loc[grid["epsilon"] == epsilon, "phase_length"]}):
        yield list(dict.fromkeys(task.plans(epsilon, phase, sizes)))


def _moved(
    publication: Path, row: dict, old: Ends, new: Ends, plans: list[PrivacyPlan], worst: PrivacyPlan
) -> Iterator[dict]:
    why = []
    if not math.isclose(np.nan_to_num(old[0]), np.nan_to_num(row["delivered_lower"]), rel_tol=2e-4):
        why.append("lower end computed better")
    if not (same(old[0], new[0]) and same(old[1], new[1])):
        why.append("unlike δ" if len({plan.budget.delta for plan in plans}) > 1 else "unlike silos")
    close = math.isclose(worst.as_seen_by_adversary.noise_multiplier, row["noise_multiplier"], rel_tol=2e-4)
    if worst.sampling != row["sampling"] or not close:
        why.append("another silo is worst")
    if why:
        yield _line(publication, row, new, len(plans), "; ".join(why))


def _line(publication: Path, row: dict, new: Ends, silos: int, why: str) -> dict:
    line = {name: row[name] for name in COLUMNS[1:8]} | {"publication": publication.name, "silos": silos, "why": why}
    line |= {"old_lower": row["delivered_lower"], "new_lower": new[0]}
    line |= {"old_upper": row["delivered_epsilon"], "new_upper": new[1]}
    return line | {"old_claim": row["claim"], "new_claim": str(standing(row["epsilon"], *new))}


def main() -> None:
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for folder in sys.argv[1:]:
        for line in moved_rows(Path(folder)):
            writer.writerow(line)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
