"""The cost of a round against N silos, n records, d parameters and G grid points, and where memory ends.

    PYTHONPATH=.peer python benchmarks/scale.py [--output benchmarks/RESULTS.md]

A round of minibatch SGD with logistic regression by the stack, by a plain loop and by pfl's simulation, in turn on the
same silos, on one thread. Prints the tables, or writes them between the marks of a page. `--quick` is for tests.
"""

import argparse
import datetime
import os
import resource
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from logistic import Logistic
from marked import SCALE, write_between
from memory import own_peak
from silodp.models.threads import use_threads
from timing import Figure, Work, interleaved


@dataclass(frozen=True)
class Size:
    """N, n, d, and G; a batch is a tenth of the records."""

    N: int
    n: int
    d: int
    G: int

    def problem(self) -> Logistic:
        generator = np.random.default_rng(0)
        silos = []
        for _ in range(self.N):
            x = torch.from_numpy(generator.standard_normal((self.n, self.d), dtype=np.float32))
            silos.append((x, (x[:, 0] > 0).to(torch.float32)))
        return Logistic(silos, max(self.n // 10, 1), self.G)

    def along(self, axis: str, value: int) -> "Size":
        return replace(self, **{axis: value})


# Axis → where it starts and what stays fixed, and its values.
FULL = {
    "N": (Size(10, 100, 100, 8), (10, 100, 1_000, 10_000)),
    "n": (Size(20, 100, 100, 8), (100, 1_000, 10_000, 100_000)),
    "d": (Size(10, 10, 100, 8), (100, 1_000, 10_000, 100_000, 1_000_000)),
    "G": (Size(10, 100, 1_000, 1), (1, 10, 100, 1_000)),
}
QUICK = {"N": (Size(2, 20, 5, 2), (2, 4, 8)), "G": (Size(2, 20, 5, 1), (1, 2, 4))}
NAMES = {"N": "silo", "n": "record of each silo", "d": "parameter", "G": "point"}


def times(size: Size, repeats: int) -> dict[str, Figure]:
    """Seconds of a round of the whole stack by each way, paired; pfl's are those of one point, G times."""
    problem = size.problem()
    work = {"stack": Work(problem.stack), "loop": Work(problem.loop)}
    try:
        work["pfl"] = Work(problem.pfl_round())
    except ImportError:
        print("pfl is not installed (make bench installs it): left out", file=sys.stderr)
    found = interleaved(work, repeats)
    return found | ({"pfl": found["pfl"].map(lambda s: s * size.G)} if "pfl" in found else {})


def slope(values: tuple[int, ...], figures: list[Figure]) -> float:
    """Median over repetitions of the least-squares slope of log seconds in log size."""
    logs = np.log([figure.values for figure in figures])
    return float(np.median(np.polyfit(np.log(values), logs, 1)[0]))


def time_rows(axis: str, size: Size, values: tuple[int, ...], repeats: int) -> list[str]:
    """The axis as a row for each way."""
    found = [times(size.along(axis, value), repeats) for value in values]
    fixed = ", ".join(f"{name} = {count}" for name, count in vars(size).items() if name != axis)
    rows = []
    for way, words in (("stack", "the stack"), ("loop", "plain loop"), ("pfl", "pfl 0.6.0")):
        if way not in found[0]:
            continue
        figures = [one[way] for one in found]
        ratios = [one[way].per(one["stack"]).median for one in (found[0], found[-1])]
        cells = [f"{axis}: {values[0]:,} to {values[-1]:,} ({fixed})", words]
        cells += [f"{figure.median:.3g}" for figure in (figures[0], figures[-1])]
        cells += [f"{slope(values, figures):.2f}", f"{slope(values[-2:], figures[-2:]):.2f}"]
        rows.append("| " + " | ".join([*cells, *(f"{ratio:.3g}" for ratio in ratios)]) + " |")
    return rows


def peak(size: Size, budget: float) -> float:
    """Peak memory in MB of a process that makes a round of the stack; RuntimeError beyond twice `budget`."""
    words = [sys.executable, __file__, "--peak", *map(str, vars(size).values()), "--budget", str(budget)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{size}: {done.stderr}")
    return float(done.stdout.split()[-1])


def memory_row(axis: str, size: Size, value: int, budget: float) -> str:
    """Bytes per unit of the axis, where it meets the budget by them, and the peak of a run at 90 % of that."""
    empty = peak(size, budget)
    while (high := peak(size.along(axis, value), budget)) < empty + (budget - empty) / 4:
        value *= 4
    unit = (high - empty) / value
    end = int((budget - empty) / unit)
    near = int(0.9 * end)
    expected, measured = empty + unit * near, peak(size.along(axis, near), budget)
    fixed = ", ".join(f"{name} = {count}" for name, count in vars(size).items() if name != axis)
    where = f"{axis} = {float(f'{end:.2g}'):,.0f}"
    cells = [f"memory a {NAMES[axis]} ({fixed})", f"{1024 * unit:,.3g} KB", where]
    return "| " + " | ".join([*cells, f"{near:,}", f"{expected:,.0f} MB", f"{measured:,.0f} MB"]) + " |"


def tables(options: argparse.Namespace) -> str:
    """Both tables, with where and when they were made."""
    axes = QUICK if options.quick else FULL
    began = os.getloadavg()[0]
    rows = [row for axis, (size, values) in axes.items() for row in time_rows(axis, size, values, options.repeats)]
    ends = (
        []
        if options.quick
        else [memory_row(axis, size, values[-1], options.budget) for axis, (size, values) in FULL.items()]
    )
    said = f"load {began:.1f} at the start and {os.getloadavg()[0]:.1f} at the end"
    return "\n".join(
        [
            f"## Scale\n\nMade by `benchmarks/scale.py` on {datetime.date.today().isoformat()}; {said}.\n",
            "| axis | way | s a round, first | last | slope | last decade | over the stack, first | last |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            f"\n| what | measured | ends at {options.budget:,.0f} MB | run at | expected peak | peak |",
            "| --- | --- | --- | --- | --- | --- |",
            *ends,
            "",
            f"- Medians of {options.repeats} rounds in turn, ratios within a turn; one thread; K = n/10, at least 1.",
            "- Slopes are of log seconds in log size, over the whole axis and over its last two points.",
            "- pfl simulates the plain loop's messages, one point at a time: its seconds are a point's, times G.",
            "- The stack's points share the drawn records and a noise draw; the loop and pfl draw anew for each.",
            "- Memory: peak of a process with one round, its libraries' included.",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure and print or write the tables; returns 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="rounds of every way")
    parser.add_argument("--budget", type=float, default=2000, help="MB that no process is to exceed")
    parser.add_argument("--quick", action="store_true", help="small sizes and no memory; the figures mean nothing")
    parser.add_argument("--output", type=Path, help="Markdown file with the marks; default: the terminal")
    parser.add_argument("--peak", type=int, nargs=4, metavar=("N", "n", "d", "G"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    use_threads(1)
    if options.peak:
        # Never the machine's memory, should a size cost more than expected.
        limit = int(2 * options.budget * 2**20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        Size(*options.peak).problem().stack()
        print(own_peak())
    elif options.output:
        write_between(options.output, *SCALE, tables(options))
    else:
        print(tables(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
