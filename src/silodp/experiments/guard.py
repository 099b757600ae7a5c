"""The guard: what claims an ε must be proven to deliver it, unless an experiment says `allow_unproven: true`.

At load the accountant works out every plan of an experiment that does not say so (20 to 100 ms each, from the largest ε
down, as that is where a formula no longer holds), and a training job does it again for its own silos. An experiment
that says so costs nothing here: its rows, figures and report carry the mark instead.
"""

import functools
import math
from typing import TYPE_CHECKING

from silodp.config.experiment import Experiment
from silodp.experiments.names import trained_as
from silodp.experiments.task import Task
from silodp.privacy.plan import PrivacyPlan

if TYPE_CHECKING:
    from silodp.experiments.task import Task


def unproven(name: str, experiment: Experiment, sizes: list[int]) -> str | None:
    """What is allowed in place of the first claim that is not proven, for a message; None where all are, or may not be.

    Args:
        name: the experiment's.
        experiment: whose private algorithms are looked at, in every setting and reading.
        sizes: training records of each silo.
    """
    if experiment.allow_unproven:
        return None
    unequal = experiment.silos.scheme in ("column", "dirichlet")
    for algorithm, options in experiment.algorithms.items():
        if options.private == "non_private":
            continue
        for setting in {setting.R: setting for setting in reversed(experiment.settings)}.values():
            labels = [label for label in experiment.variants() if trained_as(experiment, algorithm, label) == label]
            for label in labels:
                task = Task(name, experiment, algorithm, setting, label)
                # Noise made for every silo's own size takes a second each; a training job asks for its own.
                if task.calibrated and unequal and task.readings.clip_rule == "grid" and not task.readings.resample:
                    continue
                found = unproven_task(task, sizes)
                if found is not None:
                    return found
    return None


def unproven_task(task: "Task", sizes: list[int]) -> str | None:
    """The same for one task."""
    if task.config.allow_unproven:
        return None
    grid = task.grid().dropna(subset="epsilon").sort_values("epsilon", ascending=False, kind="stable")
    for point in grid.drop_duplicates(["epsilon", "phase_length"]).to_dict("records"):
        delivered = _delivered(task, point["epsilon"], int(point["phase_length"]), sizes)
        if not delivered <= point["epsilon"]:
            where = f"{task.algorithm} {task.setting.name}" + (f" {task.label}" if task.label else "")
            return (
                f"must be true, as {where} delivers epsilon = {delivered:.4g} for a claim of {point['epsilon']:g};"
                " or noise must be calibrated, or that claim be left out"
            )
    return None


@functools.cache
def _upper(plan: PrivacyPlan) -> float:
    from silodp.privacy.adversary import delivered  # slow to import, and most experiments need not ask

    return delivered(plan).upper


def _delivered(task: "Task", epsilon: float, phase_length: int, sizes: list[int]) -> float:
    """Largest proven ε over the silos' plans."""
    if task.readings.clip_rule != "grid" or task.readings.resample:
        return math.inf
    return max(_upper(plan) for plan in set(task.plans(epsilon, phase_length, sizes)))
