"""Subcommands of training: train, race, select."""

import argparse
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from silodp.cli.options import among, experiment_command, resolved_with
from silodp.config.errors import ConfigError
from silodp.config.loading import Resolved
from silodp.experiments.guard import unproven_task
from silodp.experiments.names import readings_of
from silodp.experiments.selection import select as choose
from silodp.experiments.task import Task, task_of
from silodp.federation.partition import read_partition
from silodp.files import read_parquet, write_parquet

log = logging.getLogger("silodp")

# Columns that chosen points and trained runs must have; a file without them is damaged.
CHOSEN = ("experiment", "algorithm", "reading", "M", "R", "epsilon", "stepsize", "clip", "phase_length")
TRIALS = (*CHOSEN, "trial", "train_loss", "test_error", "diverged")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = experiment_command(add, "train", train, "train one algorithm over its grid")
    sub.add_argument("algorithm")
    sub.add_argument("setting", help="as in M12_R25")
    sub.add_argument("--reading", default="default", help="name of the reading")
    sub.add_argument("--trials", default="all", help="as in 0-4, or all")
    sub.add_argument("--silos", type=Path, required=True, help="folder that `silodp partition` wrote")
    sub.add_argument("--chosen", type=Path, help="train only the points that `silodp select` chose, with fresh noise")
    sub.add_argument("--threads", type=int, help="default: the run file's")
    sub.add_argument("--output", type=Path, required=True, help="parquet file")

    sub = experiment_command(add, "race", race, "train one rung of a race over the grid")
    sub.add_argument("algorithm")
    sub.add_argument("setting", help="as in M12_R25")
    sub.add_argument("--reading", default="default", help="name of the reading")
    sub.add_argument("--rung", type=int, required=True, help="its number, from 0")
    sub.add_argument("--earlier", type=Path, nargs="*", default=[], help="parquet files of the rungs before it")
    sub.add_argument("--silos", type=Path, required=True, help="folder that `silodp partition` wrote")
    sub.add_argument("--threads", type=int, help="default: the run file's")
    sub.add_argument("--output", type=Path, required=True, help="parquet file")

    sub = experiment_command(add, "select", select, "choose points by training loss")
    sub.add_argument("--trials", type=Path, nargs="+", required=True, help="parquet files of the grid runs")
    sub.add_argument("--output", type=Path, required=True, help="parquet file")


def train(options: argparse.Namespace) -> None:
    """Train one algorithm in one setting over its grid, or at chosen points, for some trials."""
    from tqdm import tqdm

    from silodp.experiments.training import run_trials
    from silodp.federation.models.threads import use_threads
    from silodp.federation.trial_data import stored_trials

    resolved, task = _job(options)
    name, experiment = options.experiment, task.config
    trials = _trials(options.trials, experiment.trials)
    _check_proven(options, task, trials[0])
    use_threads(options.threads or resolved.run.threads)
    points = None
    if options.chosen:
        chosen = read_parquet(options.chosen, CHOSEN)
        own = (chosen["algorithm"] == task.algorithm) & (chosen["reading"] == task.label)
        points = chosen[own & (chosen["M"] == task.setting.M) & (chosen["R"] == task.setting.R)]

    def progress(numbers: Iterable[int]) -> Iterable[int]:
        bar = tqdm(
            numbers,
            desc=f"{name} {options.algorithm} {options.setting}",
            unit="trial",
            disable=True if options.quiet else None,
        )
        for number in bar:
            log.info("%s %s %s %s: trial %d", name, options.algorithm, options.setting, options.reading, number)
            yield number

    purpose = "fresh" if options.chosen else "grid"
    prepared = stored_trials(options.silos, experiment, task.readings, resolved.run)
    result = run_trials(task, resolved.run, prepared, trials, points, purpose, progress)
    write_parquet(result, options.output)


def _job(options: argparse.Namespace) -> tuple[Resolved, Task]:
    """The checked run file and the task that a job's words name; ConfigError where there is none, or no device."""
    import torch

    resolved = resolved_with(options)
    experiment = resolved.experiments[options.experiment]
    among("algorithm", options.algorithm, experiment.algorithms)
    among("setting", options.setting, [setting.name for setting in experiment.settings])
    among("reading", options.reading, readings_of(experiment))
    device = experiment.device or resolved.run.device
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"{options.run_file}: device: {device!r}: this machine has no CUDA device: must be cpu")
    return resolved, task_of(options.experiment, experiment, options.algorithm, options.setting, options.reading)


def _check_proven(options: argparse.Namespace, task: Task, trial: int) -> None:
    """ConfigError where the task delivers a larger ε than it claims on a trial's silos, and that is not allowed."""
    found = unproven_task(task, [len(records) for records in read_partition(options.silos, trial).train])
    if found is not None:
        raise ConfigError(f"{options.run_file}: experiments.{task.experiment}.allow_unproven: False: {found}")


def _trials(text: str, total: int) -> range:
    if text == "all":
        return range(total)
    first, _, last = text.partition("-")
    if not (first.isdigit() and (last or first).isdigit()) or not 0 <= int(first) <= int(last or first) < total:
        raise ConfigError(f"command line: --trials: {text!r}: must be all, or as in 0-4 with numbers below {total}")
    return range(int(first), int(last or first) + 1)


def race(options: argparse.Namespace) -> None:
    """Train the points of one rung of a race, in its trial; which they are follows from the rungs before it."""
    from silodp.experiments.race import points, rungs
    from silodp.experiments.training import run_trials
    from silodp.federation.models.threads import use_threads
    from silodp.federation.trial_data import stored_trials

    resolved, task = _job(options)
    experiment = task.config
    among("--rung", str(options.rung), [str(number) for number in range(experiment.race.rungs)])
    if len(options.earlier) != options.rung:
        raise ConfigError(f"command line: --earlier: {len(options.earlier)} files: must be {options.rung}, one a rung")
    _check_proven(options, task, 0)
    earlier = read_trials(options.earlier) if options.earlier else None
    wanted = points(experiment.race, options.rung, task.grid(), earlier)
    use_threads(options.threads or resolved.run.threads)
    prepared = stored_trials(options.silos, experiment, task.readings, resolved.run)
    trial = rungs(experiment.race)[options.rung].trial
    log.info(
        "%s %s %s: rung %d, %d points", options.experiment, task.algorithm, options.setting, options.rung, len(wanted)
    )
    # A search whose neighbours have all run already adds nothing.
    if earlier is not None and wanted.empty:
        result = earlier.iloc[:0]
    else:
        result = run_trials(task, resolved.run, prepared, [trial], wanted)
    write_parquet(result.assign(rung=options.rung), options.output)


def read_trials(paths: Iterable[Path]) -> pd.DataFrame:
    return pd.concat([read_parquet(path, TRIALS) for path in paths], ignore_index=True)


def select(options: argparse.Namespace) -> None:
    """Choose, for every algorithm, setting and epsilon, the point of the grid with the smallest training loss."""
    resolved = resolved_with(options)
    write_parquet(choose(read_trials(options.trials), resolved.experiments[options.experiment]), options.output)
