"""Train one algorithm over its grid, or at chosen points."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
import torch

from silodp.config.errors import ConfigError, among
from silodp.config.run_keys import Run
from silodp.experiments.made_for import hold_silos, read_trained, write_trained
from silodp.experiments.planned_rows import CHOSEN
from silodp.experiments.task import Task, task_of
from silodp.experiments.training import run_trials
from silodp.experiments.true_epsilon_guard import unproven_task
from silodp.experiments.validation import experiment_of
from silodp.experiments.variants import readings_of
from silodp.models.threads import use_threads
from silodp.partition.partition import read_partition
from silodp.partition.trial_data import stored_trials

log = logging.getLogger("silodp")


def train(
    run_file: Path,
    experiment: str,
    algorithm: str,
    setting: str,
    silos: Path,
    output: Path,
    reading: str = "default",
    trials: str = "all",
    threads: int | None = None,
    chosen: Path | None = None,
) -> None:
    """Train one algorithm in one setting, as in M12_R25, for some trials, as in 0-4 or all.

    Over its grid, or at the points of `chosen` with fresh noise; `silos` is the folder of the partition.
    """

    def rows(run: Run, task: Task) -> pd.DataFrame:
        numbers = _trials(trials, task.config.trials)
        check_silos(run_file, run, task, silos, numbers[0])
        points = None
        if chosen:
            points = read_trained(chosen, CHOSEN, task.experiment, task.config, run)
            points = points[(points["algorithm"] == task.algorithm) & (points["reading"] == task.label)]
            points = points[(points["M"] == task.setting.M) & (points["R"] == task.setting.R)]
        name = f"{task.experiment} {task.algorithm} {task.setting.name}"

        def progress(numbers: Iterable[int]) -> Iterable[int]:
            for number in numbers:
                log.info("%s: trial %d", name, number)
                yield number

        prepared = stored_trials(silos, task.config, task.readings, run)
        return run_trials(task, run, prepared, numbers, points, "fresh" if chosen else "grid", progress)

    write_rows(rows, run_file, output, threads, experiment, algorithm, setting, reading)


def write_rows(
    rows: Callable[[Run, Task], pd.DataFrame], run_file: Path, output: Path, threads: int | None, *task_words: str
) -> None:
    """Write what `rows` trains of a task; ConfigError where the device lacks memory or is not there."""
    experiment, algorithm, setting, reading = task_words
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
        write_trained(rows(run, task), output, experiment, config, run, device)
    except torch.OutOfMemoryError:
        key, value = "stepsizes", f"{len(task.grid())} points in a stack"
        if config.model.name == "convnet":
            key, value = "model.workspace_mb", str(config.model.workspace_mb)
        place = f"{run_file}: experiments.{experiment}.{key}"
        raise ConfigError(f"{place}: {value}: more than the device's memory: must be less") from None


def check_silos(run_file: Path, run: Run, task: Task, silos: Path, trial: int) -> None:
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
        raise ConfigError(f"command line: trials: {text!r}: must be all, or as in 0-4 with numbers below {total}")
    return range(int(first), int(last or first) + 1)
