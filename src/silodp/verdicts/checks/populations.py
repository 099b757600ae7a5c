"""Populations that are known exactly: finite ones, whose optimum is certified, and from which silos draw records."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from silodp.federation.rng import Streams
from silodp.theory.problems.base import Optimum, Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Population:
    """Uniform over `rows` (count, width), so that the population risk is a mean over them.

    Attributes:
        optimum: minimiser with a proven gap.
    """

    problem: Problem
    rows: Array
    optimum: Optimum

    @classmethod
    def of(cls, problem: Problem, streams: Streams, count: int) -> "Population":
        """`count` records of the problem."""
        rows = problem.draw(count, streams.generator("population"))
        return cls(problem, rows, problem.optimum(rows))

    def silos(self, streams: Streams, trials: int, N: int, n: int) -> Array:
        """Records of N i.i.d. silos in each trial, (trials, N, n, width)."""
        return self.rows[streams.generator("silos").integers(0, len(self.rows), (trials, N, n))]

    def excess(self, outputs: Array) -> Array:
        """F(w) − F* of each trial, (trials,), too large by the certificate's gap at most."""
        values = np.array([self.problem.losses(w, self.rows).mean() for w in outputs])
        return values - self.optimum.value + self.optimum.gap
