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
    def median(self) -> float:
        return statistics.median(self.values)

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
        torch_threads: those of PyTorch's own operations. The stack has threads of its own and holds these at one;
            PyTorch's would wait for more work at full speed and take its cores.
    """

    call: Callable[[], object]
    torch_threads: int = 1

    def seconds(self) -> float:
        """Seconds that one call takes."""
        torch.set_num_threads(self.torch_threads)
        began = time.perf_counter()
        self.call()
        return time.perf_counter() - began


def interleaved(work: Mapping[str, Work], repeats: int) -> dict[str, Figure]:
    """Seconds of every piece of work: one turn to warm up, then `repeats` turns in which each runs once, in order."""
    turns = [[piece.seconds() for piece in work.values()] for _ in range(repeats + 1)][1:]
    return {name: Figure(values) for name, values in zip(work, zip(*turns, strict=True), strict=True)}
