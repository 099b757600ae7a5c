"""Training on a GPU against all cores of the same machine, and a GPU's forms by themselves, against targets.

    python benchmarks/gpu.py [--output benchmarks/RESULTS.md]

A piece of work is one trial of an experiment's algorithm: its step sizes and clips at one ε, as the job `train` has
them. Records are Gaussian, of the experiment's number and shape: the bench needs no download. `--quick` is for tests.
Without a GPU the table of targets has an empty column where it would be measured, beside what prototypes reached.
"""

import argparse
import datetime
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gpu_forms import TARGETS, measure_forms, targets_table
from marked import GPU, GPU_TARGETS, write_between
from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.experiments.devices import gpu_gain
from silodp.experiments.task import Task, task_of
from silodp.experiments.training import run_trial
from silodp.experiments.validation import experiment_of, load, silo_sizes
from silodp.federation.messages import Messages
from silodp.models.gpu import forbid_tf32
from silodp.models.threads import use_threads
from silodp.partition.trial_data import TrialData
from silodp.workflow.cost import estimate, measured_rate
from silodp.workflow.job_digest import RunPlan
from timing import Work, interleaved

# Run file, experiment, setting, N silos, n records of each, features, classes, algorithms.
FULL = (
    ("config/paper.yaml", "wbcd_mlp", "M2_R25", 2, 169, (30,), 2, ("minibatch_sgd", "local_sgd")),
    ("config/cifar.yaml", "cifar10_cnn", "M10_R50", 10, 1000, (3, 32, 32), 10, ("minibatch_sgd", "local_sgd")),
    ("config/paper.yaml", "mnist_mlp", "M25_R25", 25, 1238, (50,), 2, ("local_sgd",)),
)
# Row of the table of targets that a piece of work gives: GPU over cores.
_ROWS = dict(
    zip(
        [("cifar10_cnn", "minibatch_sgd"), ("cifar10_cnn", "local_sgd"), ("mnist_mlp", "local_sgd")],
        list(TARGETS)[6:9],
        strict=True,
    )
)
SMALL, RUN_COST = list(TARGETS)[9:]
QUICK = FULL[:1]
EPSILON, ROUNDS = 3.0, 5
# MB that the convolutional network may take on a GPU at once, in place of 256 a core.
WORKSPACE = 8192


@dataclass(frozen=True)
class Piece:
    """One trial of an algorithm at one ε."""

    task: Task
    run: Run
    points: pd.DataFrame
    data: TrialData

    def on(self, device: str) -> pd.DataFrame:
        """The trained points with their results."""
        train = [(x.to(device), y.to(device)) for x, y in self.data.train]
        there = TrialData(train, train, self.data.features, self.data.classes)
        task, model = self.task, self.task.config.model
        if device != "cpu" and model.name == "convnet":
            model = model.model_copy(update={"workspace_mb": WORKSPACE})
            task = replace(task, config=task.config.model_copy(update={"model": model}))
        return run_trial(task, self.run, there, 0, self.points)


def short(task: Task, records: int) -> Task:
    """The task with ROUNDS rounds and the batches of all its rounds."""
    whole = task.setting
    batch = math.floor(records * math.sqrt(24) / (2 * math.sqrt(whole.R)))
    setting = whole.model_copy(update={"R": ROUNDS})
    return replace(task, setting=setting, config=task.config.model_copy(update={"batch_records": batch}))


def pieces(table: tuple) -> list[Piece]:
    """Every algorithm of every row of FULL or QUICK."""
    found = []
    for file, name, setting, silos, records, shape, classes, algorithms in table:
        run, config = experiment_of(Path(file), name)
        generator = np.random.default_rng(0)
        train = []
        for _ in range(silos):
            x = torch.from_numpy(generator.standard_normal((records, *shape), dtype=np.float32))
            train.append((x, torch.from_numpy(generator.integers(0, classes, records))))
        data = TrialData(train, train, int(np.prod(shape)), classes)
        for algorithm in algorithms:
            task = short(task_of(name, config, algorithm, setting, "default"), records)
            grid = task.grid()
            found.append(Piece(task, run, grid[grid["epsilon"] == EPSILON], data))
    return found


def auto_cost(cores: int) -> float:
    """Minutes that a rebuild of config/cifar.yaml is expected to take where `device: auto` may take a GPU."""
    found = load(Path("config/cifar.yaml"))
    on_gpu = {name: of.model_copy(update={"device": "cuda"}) for name, of in found.experiments.items() if is_faster(of)}
    plan = RunPlan(replace(found, experiments=found.experiments | on_gpu))
    return estimate(plan, cores, measured_rate()).seconds / 60


def is_faster(config: Experiment) -> bool:
    """Whether `device: auto` takes a GPU."""
    return gpu_gain(config, silo_sizes(config)[1]) > 1


def line(piece: Piece, devices: Sequence[str], repeats: int) -> tuple[str, float]:
    """A row of the table, and how many times as fast the second device is."""
    kept: dict[str, pd.DataFrame] = {}
    work = {device: Work(lambda device=device: kept.update({device: piece.on(device)})) for device in devices}
    seconds = interleaved(work, repeats)
    first, second = (kept[device] for device in devices)
    both = ~(first["diverged"] | second["diverged"])
    difference = (first["train_loss"] / second["train_loss"] - 1).abs()[both]
    gain = seconds[devices[0]].per(seconds[devices[1]]).median
    cells = [
        piece.task.experiment,
        piece.task.setting.name,
        f"`{piece.task.algorithm}`",
        str(len(first)),
        *(f"{seconds[device].median:.3g}" for device in devices),
        f"{gain:.3g}",
        f"{difference.median():.1g}",
        f"{difference.max():.1g}",
        str(int((first["diverged"] == second["diverged"]).sum())),
        "yes" if first["train_loss"].idxmin() == second["train_loss"].idxmin() else "no",
    ]
    return f"| {' | '.join(cells)} |", gain


def main(arguments: list[str] | None = None) -> int:
    """Measure and print or write the tables; returns 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="turns of every piece of work")
    parser.add_argument("--devices", nargs=2, default=["cpu", "cuda"], help="what is held against what")
    parser.add_argument("--quick", action="store_true", help="a small problem; the figures mean nothing")
    parser.add_argument("--output", type=Path, help="Markdown file with the marks; default: the terminal")
    options = parser.parse_args(arguments)
    cores = len(os.sched_getaffinity(0))
    use_threads(cores)
    forbid_tf32()
    here = torch.cuda.is_available()
    name = torch.cuda.get_device_name() if here else "no GPU"
    measured = measure_forms(torch.device("cuda")) if here and not options.quick else {}
    if here or "cuda" not in options.devices:
        Messages.host_noise = True  # the same draws on both
        try:
            measured |= compare_devices(options, cores, name)
        finally:
            Messages.host_noise = False
    if here and not options.quick:
        measured[RUN_COST] = auto_cost(cores)
    lines = [f"## GPU: targets\n\nMade by `benchmarks/gpu.py` on {datetime.date.today().isoformat()}: {name}.\n"]
    lines += targets_table(measured)
    print(*lines, sep="\n", flush=True)
    if options.output:
        write_between(options.output, *GPU_TARGETS, "\n".join(lines))
    return 0


def compare_devices(options: argparse.Namespace, cores: int, name: str) -> dict[str, float]:
    """Print, or write, the table of pieces of work; returns the gains that the table of targets asks for."""
    gains: dict[str, float] = {}
    lines = [
        f"## GPU\n\nMade by `benchmarks/gpu.py` on {datetime.date.today().isoformat()}: {cores} cores, {name}, "
        f"PyTorch {torch.__version__}.\n",
        "| experiment | setting | algorithm | points | s, cores | s, GPU | cores over GPU | losses differ by, median "
        "| at most | as many diverge | same best point |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print(*lines, sep="\n", flush=True)
    for piece in pieces(QUICK if options.quick else FULL):
        text, gain = line(piece, options.devices, options.repeats)
        lines.append(text)
        print(text, flush=True)
        row = _ROWS.get((piece.task.experiment, piece.task.algorithm))
        if row is not None:
            gains[row] = gain
        if piece.task.experiment == "wbcd_mlp":
            gains[SMALL] = min(gains.get(SMALL, math.inf), gain if is_faster(piece.task.config) else 1.0)
    lines += [
        "",
        f"- One trial at ε = {EPSILON:g}, {ROUNDS} rounds, batches as of all rounds; turns: {options.repeats}, median.",
        f"- The convolutional network's `workspace_mb` is {WORKSPACE:,} on the GPU and 256 a core.",
        "- Losses: training losses, relative, of the points that did not diverge. Noise is drawn on the CPU for both.",
    ]
    if options.output:
        write_between(options.output, *GPU, "\n".join(lines))
    return gains


if __name__ == "__main__":
    sys.exit(main())
