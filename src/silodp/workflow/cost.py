"""What a run takes, counted before its first job: jobs, trained runs, operations, time here, memory, disk."""

import logging
import math
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from threadpoolctl import threadpool_limits

from silodp.config.errors import ConfigError
from silodp.config.experiment import Experiment
from silodp.experiments.devices import FIRST, ROUND_ON_GPU, gpu_rate, gradient_operations
from silodp.experiments.race import play
from silodp.experiments.task import Task
from silodp.experiments.validation import silo_sizes
from silodp.experiments.variants import trained_tasks
from silodp.workflow.job_digest import RunPlan

log = logging.getLogger("silodp")

# Training reaches this share of a product's rate (benchmarks/RESULTS.md has 61 to 64 %, convolutions 52 %).
_SHARE = 0.55
# Seconds that a job takes beside training, on average: starting, accounting, drawing.
_START = 3.0
# Seconds of a silo's round, of each of its releases, and of each coordinate of a release's noise, beside arithmetic,
# however many points are in the stack.
_ROUND, _RELEASE, _DRAW = 4e-4, 15e-6, 8e-9
# Seconds of an audit, which makes as many messages whatever the run is.
_AUDIT = 3.0
# Seconds of a run beside its jobs: Snakemake's start and end, kernels compiled for the first time.
_AROUND = 30.0
# Bytes of a trained run in its file, and of a file or figure at least, rounded up from finished runs.
_PER_RUN, _PER_FILE = 150, 40_000


@dataclass(frozen=True)
class Cost:
    """What a whole run takes, from nothing, as if no point diverged and without evaluation.

    `seconds` is the expected time on all cores together, `gpu_seconds` what of it is on one GPU such as an H200,
    `memory_mb` the bound of the jobs side by side.
    """

    jobs: int
    runs: int
    operations: float
    seconds: float
    memory_mb: int
    disk_mb: float
    gpu_seconds: float = 0.0

    def text(self) -> str:
        hours = f"{self.seconds / 3600:.1f} h" if self.seconds > 5400 else f"{max(1, round(self.seconds / 60))} min"
        where = f"here, {self.gpu_seconds / 60:.1f} min on a GPU such as an H200" if self.gpu_seconds else "here"
        return (
            f"{self.jobs} jobs, {self.runs} trained runs, {self.operations:.2g} operations, about {hours} {where}, "
            f"memory up to {self.memory_mb} MB, disk about {self.disk_mb:.0f} MB"
        )


def cost_here(plan: RunPlan, cores: str | None = None) -> Cost:
    """The cost of a run on this machine, on all cores where `cores` is no number."""
    number = int(cores) if cores and cores.isdigit() else 0
    return estimate(plan, number or os.cpu_count() or 1, measured_rate())


def measured_rate(products: int = 2000) -> float:
    """Operations a second of processor time on one core of this machine, by products of matrices."""
    left, right = np.ones((256, 128), dtype=np.float32), np.ones((128, 256), dtype=np.float32)
    with threadpool_limits(1):
        begun = time.process_time()
        for _ in range(products):
            left @ right
        used = time.process_time() - begun
    return 2.0 * left.shape[0] * left.shape[1] * right.shape[1] * products / used


def estimate(plan: RunPlan, cores: int, rate: float) -> Cost:
    """The cost of a run on `cores` cores that each do `rate` operations a second."""
    jobs, runs, operations, overhead, files = plan.count_jobs(), 0, 0.0, 0.0, len(plan.asked_outputs())
    on_gpu = {"operations": 0.0, "seconds": 0.0}
    audited: set[tuple[str, str, int]] = set()
    for name, config in plan.experiments.items():
        files += len(plan.grids(name)) + len(plan.figure_names(name)) * 2 + 20
        gradient, (silos, smallest) = gradient_operations(config), silo_sizes(config)
        # Weights of a model, those of a convolution once.
        d = 62_006 if config.model.name == "convnet" else gradient // FIRST
        for algorithm, setting, reading in trained_tasks(config):
            task = plan.task(name, algorithm, setting, reading)
            cohort, R = min(task.setting.M, silos), task.setting.R
            by_phase = _runs(config, task.points_to_train([smallest] * silos))
            runs += round(by_phase.sum())
            for phase, number in sorted(by_phase.items()):
                releases, gradients, in_steps = _counts(task, int(str(phase)), smallest)
                trained, stacks = number * float(gradient * cohort) * gradients, config.trials + len(plan.rungs(name))
                operations += trained
                silo = _ROUND * R + (_RELEASE + _DRAW * d) * releases
                if plan.gpus(name):
                    on_gpu["operations"] += trained
                    on_gpu["seconds"] += trained / gpu_rate(config, in_steps) + stacks * ROUND_ON_GPU * R
                else:
                    overhead += stacks * cohort * silo
            # The audit plays a default reading at its longest phase, in one setting of each R.
            if task.label == "" and config.algorithms[algorithm].private != "non_private":
                audited.add((name, algorithm, R))
    overhead += _AUDIT * len(audited)
    on_cores = (operations - on_gpu["operations"]) / (_SHARE * rate) + overhead + _START * jobs
    seconds = on_cores / cores + on_gpu["seconds"] + _AROUND
    disk = (_PER_RUN * runs + _PER_FILE * files) / 1e6
    memory = min(cores, jobs) * plan.run.memory_mb
    return Cost(jobs, runs, operations, seconds, memory, disk, on_gpu["seconds"])


def refuse(plan: RunPlan, cost: Cost, folder: Path) -> None:
    """ConfigError where the results need more than the disk has free; a word where the machine's memory is short."""
    there = psutil.virtual_memory().total / 1e6
    of = plan.resolved.path, cost.memory_mb, there
    if cost.memory_mb > there:
        log.warning("%s: memory_mb: jobs side by side may need %d MB, this machine has %.0f", *of)
    free = shutil.disk_usage(folder).free / 1e6
    if cost.disk_mb > free:
        raise ConfigError(
            f"{plan.resolved.path}: disk: {folder}: {free:.0f} MB are free: must be {cost.disk_mb:.0f} for the results"
        )


def _runs(config: Experiment, grid: pd.DataFrame) -> pd.Series:
    """Trained runs by phase length: the grid in every trial, or a race of points with random losses and fresh runs."""
    if config.tuning == "full":
        return grid["phase_length"].value_counts() * config.trials
    drawn = np.random.default_rng(0)
    raced = play(config.race, grid, lambda points: points.assign(train_loss=drawn.random(len(points))))
    fresh = grid["epsilon"].nunique(dropna=False) * config.trials
    return raced["phase_length"].value_counts() * (1 + fresh / len(raced))


def _counts(task: Task, phase_length: int, records: int) -> tuple[int, int, bool]:
    """Releases, and gradients of records, of a silo of n = `records` in a run, when it takes part in every round; and
    whether these are of local steps.
    """
    # Batches do not depend on the noise; a schedule of a theorem has none without an ε.
    scheduled = task.config.algorithms[task.algorithm].schedule is not None
    epsilon = float(task.grid()["epsilon"].dropna().iloc[0]) if scheduled else math.nan
    (plan,) = task.plans(epsilon, phase_length, [records])
    counts = [(release.count, release.count * release.records * release.gradients) for release in plan.releases]
    in_steps = any(release.steps > 1 for release in plan.releases)
    return sum(count for count, _ in counts), sum(gradients for _, gradients in counts), in_steps
