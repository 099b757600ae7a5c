"""Timing several things side by side: one repetition runs them all in turn, so that a busy moment hits them alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Figure:
    """A figure's value in every repetition."""

    values: tuple[float, ...]

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def map(self, change: Callable[[float], float]) -> "Figure":
        """The figure with `change` applied to the value of every repetition."""
        return Figure(tuple(map(change, self.values)))

    def per(self, other: "Figure") -> "Figure":
        """self/other, repetition by repetition: both were measured in turn, so they are pairs."""
        return Figure(tuple(a / b for a, b in zip(self.values, other.values, strict=True)))


@dataclass(frozen=True)
class Work:
    """Something to time.

    Attributes:
        call: the work.
        threads: the cores it keeps busy.
        torch_threads: those of PyTorch's own operations. The stack has threads of its own and holds these at one;
            PyTorch's would wait for more work at full speed and take its cores.
    """

    call: Callable[[], object]
    threads: int
    torch_threads: int = 1


@dataclass(frozen=True)
class Clock:
    """How seconds are read.

    Attributes:
        kind: "wall"; or "cpu", the process's CPU time over the work's threads, for a machine that others use too. CPU
            time leaves out waiting for a core, but not what others do to caches, and it takes threads as equally busy.
        device: work on it is waited for before the clock is read.
    """

    kind: str
    device: torch.device

    def __post_init__(self) -> None:
        if self.kind not in ("wall", "cpu"):
            raise ValueError(f"clock = {self.kind!r}: must be wall or cpu")
        if self.kind == "cpu" and self.device.type != "cpu":
            raise ValueError(f"clock = 'cpu' on device {self.device}: must be wall, the work is not the CPU's")

    def seconds(self, work: Work) -> float:
        """Seconds that one call takes."""
        torch.set_num_threads(work.torch_threads)
        read = time.perf_counter if self.kind == "wall" else time.process_time
        began = read()
        work.call()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return (read() - began) / (1 if self.kind == "wall" else work.threads)


def interleaved(work: Mapping[str, Work], repeats: int, clock: Clock) -> dict[str, Figure]:
    """Seconds of every piece of work: one turn to warm up, then `repeats` turns in which each runs once, in order."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(repeats + 1):
        for name, one in work.items():
            spent = clock.seconds(one)
            if turn:
                seconds[name].append(spent)
    return {name: Figure(tuple(values)) for name, values in seconds.items()}
