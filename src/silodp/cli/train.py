"""The commands of training: train, fresh, race."""

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd
import torch
from tqdm import tqdm

from silodp.cli.options import PATH, among, experiment, job_command, option_of_values, output, run_file, silos
from silodp.cli.options import chosen as chosen_points
from silodp.cli.select import CHOSEN, read_trials
from silodp.config.errors import ConfigError
from silodp.config.run_keys import Run
from silodp.experiments.made_for import hold_silos, read_trained, write_trained
from silodp.experiments.race import points as race_points
from silodp.experiments.race import rungs
from silodp.experiments.task import Task, task_of
from silodp.experiments.training import run_trials
from silodp.experiments.true_epsilon_guard import unproven_task
from silodp.experiments.validation import experiment_of
from silodp.experiments.variants import partitioned_as, readings_of, trained_tasks
from silodp.models.threads import use_threads
from silodp.partition.partition import read_partition
from silodp.partition.trial_data import stored_trials

log = logging.getLogger("silodp")


def _training(function: Callable[..., pd.DataFrame]) -> Callable:
    """The arguments of a training job; `function` gets run file, run, `Task` and silos, and returns the rows."""

    @run_file
    @experiment
    @click.argument("algorithm")
    @click.argument("setting")
    @click.option("--reading", default="default", help="Name of the reading.")
    @silos
    @click.option("--threads", type=int, help="Threads (default: the run file's).")
    @output
    @functools.wraps(function)
    def job(
        run_file: Path,
        experiment: str,
        algorithm: str,
        setting: str,
        reading: str,
        silos: Path,
        threads: int | None,
        output: Path,
        **more: Any,
    ) -> None:
        run, config = experiment_of(run_file, experiment)
        among("algorithm", algorithm, config.algorithms)
        among("setting", setting, [setting.name for setting in config.settings])
        among("reading", reading, readings_of(config))
        device = config.device or run.device
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise ConfigError(f"{run_file}: device: {device!r}: this machine has no CUDA device: must be cpu")
        use_threads(threads or run.threads)
        task = task_of(experiment, config, algorithm, setting, reading)
        try:
            rows = function(run_file, run, task, silos, **more)
            write_trained(rows, output, experiment, config, run, device)
        except torch.OutOfMemoryError:
            key, value = "stepsizes", f"{len(task.grid())} points in a stack"
            if config.model.name == "convnet":
                key, value = "model.workspace_mb", str(config.model.workspace_mb)
            place = f"{run_file}: experiments.{experiment}.{key}"
            raise ConfigError(f"{place}: {value}: more than the device's memory: must be less") from None

    return job


@job_command()
@_training
@click.option("--trials", default="all", help="As in 0-4, or all.")
@click.option("--chosen", type=PATH, help="Train only the points that `silodp select` chose, with fresh noise.")
def train(run_file: Path, run: Run, task: Task, silos: Path, trials: str, chosen: Path | None) -> pd.DataFrame:
    """Train one algorithm in one setting, as in M12_R25, over its grid or at chosen points, for some trials."""
    numbers = _trials(trials, task.config.trials)
    _check_silos(run_file, run, task, silos, numbers[0])
    points = None
    if chosen:
        points = read_trained(chosen, CHOSEN, task.experiment, task.config, run)
        points = points[(points["algorithm"] == task.algorithm) & (points["reading"] == task.label)]
        points = points[(points["M"] == task.setting.M) & (points["R"] == task.setting.R)]
    name = f"{task.experiment} {task.algorithm} {task.setting.name}"

    def progress(numbers: Iterable[int]) -> Iterable[int]:
        for number in tqdm(numbers, desc=name, unit="trial", disable=not log.isEnabledFor(logging.INFO) or None):
            log.info("%s: trial %d", name, number)
            yield number

    prepared = stored_trials(silos, task.config, task.readings, run)
    return run_trials(task, run, prepared, numbers, points, "fresh" if chosen else "grid", progress)


@job_command()
@run_file
@experiment
@chosen_points
@click.option("--silos", type=PATH, required=True, help="Folder of the experiment's partitions.")
@click.option("--trials", default="all", help="As in 0-4, or all.")
@click.option("--threads", type=int, help="Threads (default: the run file's).")
@click.option("--folder", type=PATH, required=True, help="Folder for <algorithm>/<setting>/<reading>_fresh.parquet.")
@click.pass_context
def fresh(
    context: click.Context, run_file: Path, experiment: str, silos: Path, trials: str, folder: Path, **more: Any
) -> None:
    """Train all algorithms of an experiment at the points that `silodp select` chose, with fresh noise."""
    _, config = experiment_of(run_file, experiment)
    name = f"fresh{trials.removeprefix('all')}.parquet"
    for algorithm, setting, reading in trained_tasks(config):
        task = {"algorithm": algorithm, "setting": setting, "reading": reading}
        places = {"silos": silos / partitioned_as(config, reading)}
        places["output"] = folder / algorithm / setting / f"{reading}_{name}"
        context.invoke(train, run_file=run_file, experiment=experiment, trials=trials, **task, **places, **more)


@job_command()
@_training
@click.option("--rung", type=click.IntRange(min=0), required=True, help="Number of the rung, from 0.")
@option_of_values("--earlier", type=PATH, help="Parquet files of the earlier rungs.")
def race(run_file: Path, run: Run, task: Task, silos: Path, rung: int, earlier: Sequence[Path]) -> pd.DataFrame:
    """Train the points of one rung of a race in the rung's trial; the earlier rungs decide which points."""
    steps = rungs(task.config.race)
    among("--rung", str(rung), map(str, range(len(steps))))
    if len(earlier) != rung:
        raise ConfigError(f"command line: --earlier: {len(earlier)} files: must be {rung}, one a rung")
    _check_silos(run_file, run, task, silos, 0)
    before = read_trials(earlier, task.experiment, task.config, run) if earlier else None
    points = race_points(task.config.race, rung, task.grid(), before)
    log.info("%s %s %s: rung %d, %d points", task.experiment, task.algorithm, task.setting.name, rung, len(points))
    # A search whose neighbours have all run adds nothing.
    if before is not None and points.empty:
        return before.iloc[:0].assign(rung=rung)
    prepared = stored_trials(silos, task.config, task.readings, run)
    purpose = f"race{rung}" if task.on_own_data else "grid"
    return run_trials(task, run, prepared, [steps[rung].trial], points, purpose).assign(rung=rung)


def _check_silos(run_file: Path, run: Run, task: Task, silos: Path, trial: int) -> None:
    """ValueError where silos are not the task's, or a trial's do not certify what it claims and the run forbids it."""
    sizes = [len(records) for records in read_partition(silos, trial).train]
    hold_silos(silos, task.experiment, task.config, task.readings, run)
    fault = unproven_task(task, sizes)
    if fault is not None:
        raise ConfigError(f"{run_file}: experiments.{task.experiment}.allow_unproven: False: {fault}")


def _trials(text: str, total: int) -> range:
    if text == "all":
        return range(total)
    first, _, last = text.partition("-")
    if not (first.isdigit() and (last or first).isdigit()) or not 0 <= int(first) <= int(last or first) < total:
        raise ConfigError(f"command line: --trials: {text!r}: must be all, or as in 0-4 with numbers below {total}")
    return range(int(first), int(last or first) + 1)
