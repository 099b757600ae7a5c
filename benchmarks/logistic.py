"""Rounds of minibatch SGD with logistic regression: the stack, a plain loop, and pfl on the same silos.

pfl (`.peer`, `make bench`) simulates one run at a time, so a stack of G points is G rounds of it.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from silodp.algorithms import ALGORITHMS
from silodp.federation.messages import Messages
from silodp.federation.simulated import SiloFederation
from silodp.models import MODELS
from silodp.privacy.plan import Budget
from silodp.streams import Streams

ROUNDS = 25
Silos = list[tuple[Tensor, Tensor]]


class Logistic:
    """Silos (x, y), K records a batch, and G points that differ in their step, from zero."""

    def __init__(self, silos: Silos, batch: int, points: int):
        features = silos[0][0].shape[1]
        self.silos, self.batch = silos, batch
        self.method = ALGORITHMS["minibatch_sgd"](ROUNDS)
        plan = self.method.plan(Budget(len(silos[0][0]), ROUNDS, 1.0, 1e-6, 1.0, batch))
        self.start, self.noise = torch.zeros(points, features), plan.releases[0].noise
        self.step, self.clip = torch.linspace(0.1, 1, points), torch.ones(points)
        self.federation = SiloFederation(
            Messages(MODELS["logistic"](features, 2), silos, Streams(1)),
            [[plan] * len(silos)] * points,
            self.step,
            self.clip,
            len(silos),
            Streams(1).child("draws"),
        )

    def rounds(self) -> Iterator[Tensor]:
        """Models (G, d) of the stack after each round."""
        state = self.method.start(self.start)
        for r in range(self.method.rounds):
            state = self.method.round(r, state, self.federation)
            yield state.w

    def stack(self) -> Tensor:
        """Models after the first round of the stack, (G, d)."""
        return next(self.rounds())

    def message(self, x: Tensor, y: Tensor, w: Tensor, point: int) -> Tensor:
        """What one would write: a batch, per-record gradients, clipped, averaged, noise added; (d,)."""
        drawn = torch.randint(len(x), (self.batch,))
        xb, yb = x[drawn], y[drawn]
        gradient = (torch.sigmoid(xb @ w) - yb)[:, None] * xb
        gradient = gradient * (self.clip[point] / gradient.norm(dim=1)).clamp(max=1.0)[:, None]
        return gradient.mean(0) + self.noise * torch.randn_like(w)

    def loop(self) -> Tensor:
        """Models after the first round of the plain loop, (G, d)."""
        found = torch.empty_like(self.start)
        for g, w in enumerate(self.start):
            total = torch.zeros_like(w)
            for x, y in self.silos:
                total += self.message(x, y, w, g)
            found[g] = w - self.step[g] * total / len(self.silos)
        return found

    def pfl_round(self) -> Callable[[], Tensor]:
        """A call that makes a round of pfl's simulation at the first point; ImportError where pfl is not installed.

        The silo's message and the server's step are the plain loop's: all else is pfl's.
        """
        from pfl.aggregate.simulate import SimulatedBackend
        from pfl.algorithm.base import FederatedAlgorithm
        from pfl.common_types import Population
        from pfl.context import CentralContext
        from pfl.data.dataset import Dataset
        from pfl.data.federated_dataset import FederatedDataset
        from pfl.data.sampling import MinimizeReuseUserSampler
        from pfl.internal.ops import pytorch_ops, selector
        from pfl.metrics import Metrics
        from pfl.stats import MappedVectorStatistics

        selector.set_framework_module(pytorch_ops)
        problem, count = self, len(self.silos)

        class OneRound(FederatedAlgorithm):
            def get_next_central_contexts(self, model, iteration, *_):
                context = CentralContext(iteration, False, count, Population.TRAIN, None, None)
                return (None if iteration else (context,)), model, Metrics()

            def simulate_one_user(self, model, user_dataset, central_context):
                return MappedVectorStatistics({"w": problem.message(*user_dataset.raw_data, model, 0)}), Metrics()

            def process_aggregated_statistics(self, central_context, aggregate_metrics, model, statistics):
                return model - problem.step[0] * statistics["w"] / count, Metrics()

        data = FederatedDataset(
            lambda silo: Dataset(self.silos[silo], user_id=str(silo)), MinimizeReuseUserSampler(range(count))
        )
        backend = SimulatedBackend(data, data)
        return lambda: OneRound().run(None, backend, self.start[0], None, send_metrics_to_platform=False)
