"""The measured problem: the 50-64-2 perceptron of the MNIST experiment, N = 25 silos, R = 25 rounds, K = 604, G = 175.

Records are Gaussian with standard deviations that fall off as principal components do: what is timed does not depend
on their values, and the bench needs no download. Everything else is the real thing: the algorithms, their privacy
plans, the federation and its messages, batches and noise drawn from named streams.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import torch

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.federation.messages import Messages
from silodp.federation.simulated import SiloFederation
from silodp.models.perceptron import Perceptron
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.streams import Streams

# Of one record's clipped gradient at one point: two matrix products a layer, each a multiplication and an addition.
FLOP = 2 * (2 * 50 * 64 + 3 * 64 * 2)


@dataclass(frozen=True)
class Size:
    """N = M silos of n records, R rounds (K = ⌊n√24/(2√R)⌋), and the lengths of the three axes of the grid."""

    silos: int
    records: int
    rounds: int
    epsilons: int
    stepsizes: int
    clips: int

    @property
    def points(self) -> int:
        """G, the product of the axes."""
        return self.epsilons * self.stepsizes * self.clips


FULL = Size(silos=25, records=1234, rounds=25, epsilons=7, stepsizes=5, clips=5)
QUICK = Size(silos=2, records=60, rounds=25, epsilons=2, stepsizes=2, clips=2)


class Workload:
    """Silos, grid and model, and the algorithms' rounds on them."""

    def __init__(self, size: Size, dtype: torch.dtype = torch.float32):
        self.size, self.dtype = size, dtype
        self.model = Perceptron.build(features=50, classes=2, hidden=64)
        self.streams = Streams(2023).child("benchmarks")
        generator = self.streams.generator("data")
        scale = 5.0 / np.sqrt(1.0 + np.arange(50))
        self.silos = []
        for _ in range(size.silos):
            x = generator.standard_normal((size.records, 50)) * scale
            y = (x[:, :5].sum(1) + generator.standard_normal(size.records) > 0).astype(np.int64)
            self.silos.append((torch.from_numpy(x).to(dtype), torch.from_numpy(y)))
        grid = itertools.product(
            [0.75, 1, 1.5, 3, 6, 12, 18][: size.epsilons],
            np.linspace(np.exp(-9), 1, 5)[: size.stepsizes].tolist(),
            [1.0, 5.0, 10.0, 100.0, 10000.0][: size.clips],
        )
        self.epsilons, self.stepsizes, self.clips = zip(*grid, strict=True)
        self.start = torch.from_numpy(self.model.initial(self.streams.generator("initial"))).to(dtype)

    def algorithm(self, name: str) -> Algorithm:
        """The algorithm with R rounds; SPIDER's phases have two."""
        return ALGORITHMS[name].with_options({"rounds": self.size.rounds, "log_term": "2/delta", "phase_length": 2})

    def plan(self, name: str, epsilon: float = 1.0) -> PrivacyPlan:
        """The privacy plan of a silo at `epsilon`, as the experiment makes it."""
        n = self.size.records
        return self.algorithm(name).plan(Budget(n, self.size.rounds, epsilon, n**-2.0, 24))

    def federation(self, name: str) -> SiloFederation:
        """The algorithm's federation with all points in the stack."""
        plans = {epsilon: [self.plan(name, epsilon)] * self.size.silos for epsilon in set(self.epsilons)}
        return SiloFederation(
            Messages(self.model, self.silos, self.streams.child(name)),
            [plans[epsilon] for epsilon in self.epsilons],
            torch.tensor(self.stepsizes, dtype=self.dtype),
            torch.tensor(self.clips, dtype=self.dtype),
            self.size.silos,
            self.streams,
        )

    def rounds(self, name: str, count: int):
        """A call that runs the first `count` rounds from the starting point, and returns the state after them."""
        algorithm, federation = self.algorithm(name), self.federation(name)

        def run():
            state = algorithm.start(self.start.expand(self.size.points, -1).clone())
            for r in range(count):
                state = algorithm.round(r, state, federation)
            return state

        return run

    def gradients(self, name: str, count: int) -> int:
        """Clipped record gradients (records × points × silos) that the first `count` rounds compute."""
        plan = self.plan(name)
        fresh = plan.releases[0].records_drawn
        each = self.size.points * self.size.silos
        if name == "fedprox_spider":
            return each * sum(fresh if r % 2 == 0 else 2 * plan["difference"].records_drawn for r in range(count))
        if name == "fed_spider":
            return each * (count * fresh + (count - 1) * 2 * plan["difference"].records_drawn)
        return each * count * fresh
