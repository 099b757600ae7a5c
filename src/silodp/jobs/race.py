"""Train one rung of a race over the grid."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from silodp.config.run_keys import Run
from silodp.experiments.planned_rows import read_trials
from silodp.experiments.race import points as race_points
from silodp.experiments.race import rungs
from silodp.experiments.task import Task
from silodp.experiments.training import run_trials
from silodp.jobs.train import check_silos, write_rows
from silodp.partition.trial_data import stored_trials

log = logging.getLogger("silodp")


def race(
    run_file: Path,
    experiment: str,
    algorithm: str,
    setting: str,
    silos: Path,
    output: Path,
    rung: int,
    earlier: Sequence[Path],
    reading: str = "default",
    threads: int | None = None,
) -> None:
    """Train the points of one rung, from 0, in the rung's trial; files of `earlier` rungs decide which points."""

    def rows(run: Run, task: Task) -> pd.DataFrame:
        steps = rungs(task.config.race)
        check_silos(run_file, run, task, silos, 0)
        before = read_trials(earlier, task.experiment, task.config, run) if earlier else None
        points = race_points(task.config.race, rung, task.grid(), before)
        log.info("%s %s %s: rung %d, %d points", task.experiment, task.algorithm, task.setting.name, rung, len(points))
        # A search whose neighbours have all run adds nothing.
        if before is not None and points.empty:
            return before.iloc[:0].assign(rung=rung)
        prepared = stored_trials(silos, task.config, task.readings, run)
        purpose = f"race{rung}" if task.on_own_data else "grid"
        return run_trials(task, run, prepared, [steps[rung].trial], points, purpose).assign(rung=rung)

    write_rows(rows, run_file, output, threads, experiment, algorithm, setting, reading)
