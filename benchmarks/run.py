"""Speed and memory of the training engine against its targets and against the ways a user would otherwise train.

    python benchmarks/run.py --threads 2 --output benchmarks/RESULTS.md

Everything is measured in one run, in turn, several times; a row shows the smallest, median and largest value, and a
ratio is taken within each turn. `--quick` is for tests: a small problem whose figures mean nothing.
"""

import argparse
import datetime
import os
import platform
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_info

from convolution import FLOP as IMAGE_FLOP
from convolution import Convolution
from marked import SCALE as MARKS
from memory import job_peaks
from peers import disagreement, jacobian_run, vmap_run
from silodp.datasets.cache import FetchError, local_files
from silodp.models.threads import side_by_side, use_threads
from timing import Figure, Work, interleaved
from workload import FLOP, FULL, QUICK, Workload

# Rounds from the start that show an algorithm's whole cycle.
ROUNDS = {"minibatch_sgd": 1, "fedprox_spider": 2, "fed_spider": 2}
# Bound on a job's memory in MB, the default of run files.
MEMORY = 4000


@dataclass(frozen=True)
class Row:
    """A line of the table; a target is what the median is held against."""

    what: str
    unit: str
    figure: Figure
    target: str = ""
    met: bool | None = None

    def line(self) -> str:
        """As Markdown."""
        values = " | ".join(_short(v) for v in (min(self.figure.values), self.figure.median, max(self.figure.values)))
        verdict = "" if self.met is None else "yes" if self.met else "**no**"
        return f"| {self.what} | {self.unit} | {values} | {self.target} | {verdict} |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _at_least(what: str, unit: str, figure: Figure, bound: float) -> Row:
    return Row(what, unit, figure, f"≥ {_short(bound)}", figure.median >= bound)


def _at_most(what: str, unit: str, figure: Figure, bound: float) -> Row:
    return Row(what, unit, figure, f"≤ {_short(bound)}", figure.median <= bound)


class Products:
    """Square float32 matrix products by each library at hand.

    The kernels hold NumPy's BLAS at one thread and put points side by side: so do its products here.
    """

    def __init__(self, side: int, threads: int):
        self.a, self.b = (torch.randn((side, side)) for _ in range(2))
        self.out = torch.empty_like(self.a)
        self.outs, self.threads = np.empty((threads, side, side), dtype=np.float32), threads
        # Floating-point operations of each.
        self.flop = {f"matrix product {side}³, PyTorch": 2.0 * side**3}
        self.flop[f"matrix product {side}³, NumPy"] = 2.0 * side**3 * threads

    def work(self) -> dict[str, Work]:
        """What is timed."""
        by_torch = Work(lambda: torch.mm(self.a, self.b, out=self.out), self.threads)
        return dict(zip(self.flop, (by_torch, Work(lambda: side_by_side(self._some, self.threads))), strict=True))

    def _some(self, start: int, stop: int) -> None:
        for part in range(start, stop):
            np.dot(self.a.numpy(), self.b.numpy(), out=self.outs[part])


def on_one_thread(call: Callable[[], object], threads: int) -> Callable[[], None]:
    """`call` as the jobs of a run file make it, on one thread; the others have theirs back after it."""

    def alone() -> None:
        use_threads(1)
        call()
        use_threads(threads)

    return alone


def speed(options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Rows of the table, and notes on them."""
    threads = options.threads
    use_threads(threads)
    workload, images = Workload(QUICK if options.quick else FULL), Convolution(options.quick)
    size = workload.size
    distance, apart = disagreement(workload), images.disagreement()
    if not max(distance, apart) <= 1e-4:
        raise SystemExit(
            f"clipped gradient sums are {distance:.1e} and {apart:.1e} from the stack's: must be within 1e-4"
        )
    chunk, tried = best_chunk(workload, options.quick)
    vmap, jacobian = vmap_run(workload, chunk), jacobian_run(workload)
    products = Products(128 if options.quick else 1024, threads)
    seconds = interleaved(
        products.work()
        | {name: Work(workload.rounds(name, count)) for name, count in ROUNDS.items()}
        | {"local_sgd": Work(workload.rounds("local_sgd", 1))}
        | {"local_sgd alone": Work(on_one_thread(workload.rounds("local_sgd", 1), threads))}
        | {
            "convnet": Work(images.sums),
            "convnet, tensors": Work(images.plain_sums),
            "convnet, steps": Work(images.steps),
        }
        | {"vmap": Work(vmap.round), "jacobian": Work(lambda: jacobian.round(silos=1))},
        options.repeats,
    )

    rates = {name: seconds[name].map(lambda s, flop=flop: flop / s / 1e9) for name, flop in products.flop.items()}
    fastest = max(rates, key=lambda name: rates[name].median)
    rows, same = [Row(name, "GFLOP/s", rate) for name, rate in rates.items()], "the same, of the faster matrix product"
    for name, count in ROUNDS.items():
        flop = FLOP * workload.gradients(name, count)
        rate = seconds[name].map(lambda s, flop=flop: flop / s / 1e9)
        rows.append(Row(f"`{name}` rounds", "GFLOP/s", rate))
        rows.append(_at_least(same, "%", rate.per(rates[fastest]).map(lambda v: 100 * v), 40))
    for name, what in {
        "convnet": "`clipped_gradient_sum` of the convolutional network",
        "convnet, steps": "`local_steps` of the convolutional network",
    }.items():
        rate = seconds[name].map(lambda s: IMAGE_FLOP * images.points * images.records / s / 1e9)
        rows.append(Row(what, "GFLOP/s", rate))
        share = rate.per(rates[fastest]).map(lambda v: 100 * v)
        rows.append(_at_least(same, "%", share, 45) if name == "convnet" else Row(same, "%", share))
    slower = seconds["convnet, tensors"].per(seconds["convnet"])
    rows.append(Row("its sums by tensor operations, time over the kernels'", "times", slower))
    steps = workload.gradients("local_sgd", 1)
    alone = seconds["local_sgd alone"].map(lambda s: 1e6 * s / steps)
    rows.append(_at_most("`local_sgd`, one step of one point on one core", "µs", alone, 1.0))
    if threads > 1:
        step = seconds["local_sgd"].map(lambda s: 1e6 * s * threads / steps)
        rows.append(_at_most(f"the same with {threads} cores at work on the stack, for each of them", "µs", step, 1.0))
    # The best a loop of single runs can do with several cores is one loop a core.
    run = seconds["minibatch_sgd"].map(lambda s: s * size.rounds / size.points)
    by_vmap = seconds["vmap"].map(lambda s: s * size.rounds / threads)
    by_jacobian = seconds["jacobian"].map(lambda s: s * size.silos * size.rounds / threads)
    rows += [
        Row("a trained run of `minibatch_sgd` in the stack", "s", run),
        Row("a trained run by `torch.func.vmap(grad)`", "s", by_vmap),
        Row("a trained run by `autograd.functional.jacobian`", "s", by_jacobian),
        _at_least("`vmap(grad)`'s time over the stack's", "times", by_vmap.per(run), 15),
        _at_least("`jacobian`'s time over the stack's", "times", by_jacobian.per(run), 500),
    ]
    drawn = workload.plan("minibatch_sgd")["gradient"].records_drawn
    notes = [
        f"N = {size.silos}, n = {size.records}, K = {drawn}, R = {size.rounds}, G = {size.points}; "
        f"{threads} thread(s), {options.repeats} repetitions, wall time.",
        "`local_sgd` on one core is one thread, as in the jobs of a run file, the other cores idle.",
        "Records are Gaussian. Rounds go through federation, messages, sampling and noise.",
        f"A record's clipped gradient at one point counts as {FLOP:,} floating-point operations, a difference of two "
        "gradients as twice that.",
        f"Convolutional network: {images.points} points, {images.records} images of 3 × 32 × 32, {IMAGE_FLOP:,} "
        f"operations a record's gradient; its sums agree with those by tensor operations within {apart:.0e}, relative.",
        f"A trained run is R = {size.rounds} rounds, evaluation left out everywhere: one measured round of all "
        f"silos, times R, over G for the stack; for `jacobian` one silo's message, times {size.silos}·R, as all "
        "messages of a run cost the same.",
        f"Peers run on one thread; with several cores their time is divided by the {threads} core(s), as if loops side "
        f"by side did not slow one another. `vmap` is chunked at its best on this machine ({tried}).",
        f"The peers' clipped gradient sums agree with the stack's within {distance:.0e}, relative.",
    ]
    return rows, notes


def best_chunk(workload: Workload, quick: bool) -> tuple[int | None, str]:
    """Records at once with which `vmap(grad)` is fastest on one thread, None for all; and what every choice takes."""
    chunks = [None, 16] if quick else [None, 32, 64, 128, 256, 302]
    runs = {chunk: vmap_run(workload, chunk) for chunk in chunks}
    work = {str(chunk): Work(lambda run=run: run.round(silos=1)) for chunk, run in runs.items()}
    medians = {name: figure.median for name, figure in interleaved(work, 2 if quick else 15).items()}
    best = min(chunks, key=lambda chunk: medians[str(chunk)])
    shown = [f"{chunk or 'all'}: {1e3 * medians[str(chunk)]:.1f} ms" for chunk in chunks]
    return best, "records at once and time of a message: " + ", ".join(shown)


def memory(quick: bool) -> tuple[list[Row], list[str]]:
    """Peak memory of training jobs of one, three and six trials, the setting's whole grid in the stack."""
    name, records, trials = "mnist_mlp", 604, [1, 3, 6]
    changes: dict = {"trials": trials[-1], "alternatives": []}
    try:
        local_files("mnist")
    except FetchError:
        name, records = "digits_mlp", 100
    algorithms = ["minibatch_sgd", "fedprox_spider", "fed_spider", "local_sgd"]
    if quick:
        name, records, algorithms = "digits_mlp", 20, ["fedprox_spider"]
        changes |= {"epsilons": [1.0, 6.0], "clips": [1.0]}
    changes |= {"settings": [{"M": 25, "R": 2, "phase_lengths": [2]}], "batch_records": records}
    run_file = {"run": "benchmark", "experiments": {name: changes}}
    rows = []
    for algorithm, values in job_peaks(run_file, name, "M25_R2", algorithms, trials).items():
        for count, value in zip(trials, values, strict=True):
            what = f"peak memory of a `{algorithm}` job, trials: {count}"
            rows.append(_at_most(what, "MB", Figure((value,)), MEMORY))
        rows.append(_at_most("the last over the one before", "times", Figure((values[-1] / values[-2],)), 1.05))
    return rows, [
        f"Memory: one job `train` of `{name}` each, whole grid, K = {records}, two of the rounds; the records of "
        "its trials were preprocessed by the job `partition`."
    ]


def page(rows: list[Row], notes: list[str], arguments: list[str]) -> str:
    """The table with where, when and how it was made."""
    blas = {f"{i['internal_api']} {i['version']} ({i.get('architecture', '')})" for i in threadpool_info()}
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    machine = f"{os.cpu_count()} × {processor}; load {os.getloadavg()[0]:.1f} at the end"
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}, NumPy {np.__version__}"
    return "\n".join(
        [
            "# Benchmarks",
            "",
            f"Made by `python benchmarks/run.py {shlex.join(arguments)}` on {datetime.date.today().isoformat()}.",
            "",
            f"Machine: {machine}. {versions}; {', '.join(sorted(b for b in blas if 'blas' in b))}.",
            "",
            "| what | unit | min | median | max | target | met |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(row.line() for row in rows),
            "",
            *(f"- {note}" for note in notes),
            "",
            # Filled by scale.py.
            *MARKS,
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure and write the table; returns 0."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the stack's rounds")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions of every measurement")
    parser.add_argument("--quick", action="store_true", help="a small problem, in seconds; the figures mean nothing")
    parser.add_argument("--output", type=Path, help="Markdown file; default: the terminal")
    options = parser.parse_args(arguments)
    if options.threads < 1 or options.repeats < 1:
        parser.error("--threads and --repeats must be at least 1")
    rows, notes = speed(options)
    more_rows, more_notes = memory(options.quick)
    text = page([*rows, *more_rows], [*notes, *more_notes], arguments)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
