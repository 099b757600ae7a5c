"""The guard: what claims an ε must be proven to keep it, unless an experiment says `allow_unproven: true`.

At load the accountant works out every plan of an experiment that does not say so (20 to 100 ms each, from the largest ε
down, as that is where a formula no longer holds), and a training job does it again for its own silos.
"""

import functools
import math

from silodp.config.experiment import Experiment
from silodp.experiments.task import Task
from silodp.experiments.variants import trained_as
from silodp.privacy.plan import PrivacyPlan


def unproven(name: str, experiment: Experiment, sizes: list[int]) -> str | None:
    """What is allowed in place of the first claim that is not proven, for a message; None where all may stand.

    Private algorithms are checked in every setting and reading; `sizes` are training records of each silo.
    """
    unequal = experiment.silos.scheme in ("column", "dirichlet")
    private = [algorithm for algorithm, options in experiment.algorithms.items() if options.private != "non_private"]
    settings = {setting.R: setting for setting in reversed(experiment.settings)}.values()
    for algorithm in [] if experiment.allow_unproven else private:
        labels = [label for label in experiment.variants() if trained_as(experiment, algorithm, label) == label]
        for task in [Task(name, experiment, algorithm, setting, label) for setting in settings for label in labels]:
            # Noise made for every silo's own size takes a second each; a training job checks its own.
            if task.calibrated and unequal and _provable(task):
                continue
            if (allowed := unproven_task(task, sizes)) is not None:
                return allowed
    return None


def unproven_task(task: Task, sizes: list[int]) -> str | None:
    if task.config.allow_unproven:
        return None
    grid = task.grid().dropna(subset="epsilon").sort_values("epsilon", ascending=False, kind="stable")
    for point in grid.drop_duplicates(["epsilon", "phase_length"]).to_dict("records"):
        delivered = math.inf
        if _provable(task):
            plans = task.plans(point["epsilon"], int(point["phase_length"]), sizes)
            delivered = max(_upper(plan) for plan in set(plans))
        if not delivered <= point["epsilon"]:
            where = f"{task.algorithm} {task.setting.name}" + (f" {task.label}" if task.label else "")
            return (
                f"must be true, as {where} is not certified at its claim of {point['epsilon']:g} (true epsilon in "
                f"[0, {delivered:.4g}]); or noise must be calibrated, or that claim be left out"
            )
    return None


def _provable(task: Task) -> bool:
    return task.readings.clip_rule == "grid" and not task.readings.resample


@functools.cache
def _upper(plan: PrivacyPlan) -> float:
    from silodp.privacy.true_epsilon import upper_end  # slow to import, and most experiments need not ask

    return upper_end([plan])
