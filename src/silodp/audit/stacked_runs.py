"""Many independent runs of one silo played at once, as points of the stack.

The trainer's stack shares records and noise between its points; here every run has its own. All other code of a message
is that of the mechanism under test.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from silodp.federation.messages import Messages
from silodp.federation.query import Query
from silodp.federation.streams import Streams
from silodp.models import Model
from silodp.models.base import clip_factors
from silodp.privacy.plan import Clipping, Release, Sampler


class StackedRuns(Messages):
    """Messages of `runs` runs at once: rows of the stack are (run, point), and each run draws and adds its own.

    Which record a run draws is an index (K, runs) in place of records. With one run the draws, and so the messages, are
    those of `Messages` with the same streams, except for "subset" and "disjoint", whose law is the same.
    """

    runs = 1

    def __init__(self, model: Model, silos: Sequence[tuple[Tensor, Tensor]], streams: Streams):
        super().__init__(model, silos, streams)
        self._groups: dict[int, list[Tensor]] = {}

    def _records(self, silo: int, records: int, round: int, kind: str, sampler: Sampler) -> tuple[Tensor, Tensor]:
        """Index (K, runs) of the drawn records, and the silo they are of."""
        n = len(self.silos[silo][0])
        generator = self.streams.generator("records", silo, round, kind)
        if sampler == "all":
            drawn = torch.arange(n)[:, None].expand(n, self.runs)
        elif sampler == "disjoint":
            others = generator.permuted(torch.arange(1, n).expand(self.runs, -1).numpy(), axis=1)[:, : records - 1]
            first = torch.full((1, self.runs), 0 if round == 0 else n - 1, dtype=torch.int64)
            drawn = torch.cat([first, torch.from_numpy(others.T.copy())])
        elif sampler == "subset":
            order = generator.permuted(torch.arange(n).expand(self.runs, -1).numpy(), axis=1)
            drawn = torch.from_numpy(order[:, :records].T.copy())
        else:
            drawn = torch.from_numpy(generator.integers(0, n, size=(self.runs, records)).T)
        return drawn, torch.tensor(silo)

    def _records_of_part(self, silo: int, first: int, size: int) -> tuple[Tensor, Tensor]:
        """Index of a part, and the silo: record 0 is in the first part, as in the first disjoint batch."""
        return torch.arange(first, first + size)[:, None].expand(size, self.runs), torch.tensor(silo)

    def _joint_sum(self, query: Query, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        features, labels = self.silos[int(y)]
        total, points = torch.zeros_like(query.weights), len(query.weights) // self.runs
        for k, times in self._times(int(y), x):
            often = times.to(total.dtype).repeat_interleave(points)[:, None]
            total += often * super()._joint_sum(query, features[k : k + 1], labels[k : k + 1], clip)
        return total

    def _gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, clipping: Clipping) -> Tensor:
        """Sum over each run's drawn records `x` (K, runs) of silo `y`, each distinct record's gradient taken once."""
        if clipping == "batch_mean":
            free = self._gradient_sum(weights, x, y, torch.full_like(clip, torch.inf), "record")
            return free * clip_factors(((free / len(x)) ** 2).sum(1), clip)[:, None]
        points = len(weights) // self.runs
        shared = weights.reshape(self.runs, points, -1)
        # Runs that query at the same model get the same gradients.
        queried = weights[:points] if bool((shared == shared[:1]).all()) else weights
        limits = clip[: len(queried)]
        features, labels = self.silos[int(y)]
        total = torch.zeros_like(weights)
        for k, times in self._times(int(y), x):
            gradient = super()._gradient_sum(queried, features[k : k + 1], labels[k : k + 1], limits, clipping)
            gradient = gradient.repeat(len(weights) // len(queried), 1)
            often = times.to(weights.dtype).repeat_interleave(points)[:, None]
            # A record that a run did not draw adds nothing to it, whatever its gradient is.
            total += torch.where(often > 0, often * gradient, 0)
        return total

    def _times(self, silo: int, drawn: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Place of each of the silo's distinct records, and how often each run drew it, (runs,)."""
        *groups, last = self._distinct(silo)
        left = torch.full((drawn.shape[1],), len(drawn))
        for group in groups:
            times = torch.isin(drawn, group).sum(0)
            left = left - times
            yield int(group[0]), times
        yield int(last[0]), left

    def _distinct(self, silo: int) -> list[Tensor]:
        """Places of equal records, one tensor for each distinct record, the most frequent last."""
        if silo not in self._groups:
            places: dict[bytes, list[int]] = {}
            for k, (x, y) in enumerate(zip(*(part.numpy() for part in self.silos[silo]), strict=True)):
                places.setdefault(x.tobytes() + y.tobytes(), []).append(k)
            self._groups[silo] = [torch.tensor(group) for group in sorted(places.values(), key=len)]
        return self._groups[silo]

    def _noise(self, rows: int, like: Tensor, silo: int, round: int, kind: str) -> Tensor:
        """(rows · runs · points, d): a run's points share its draws."""
        dtype = torch.empty(0, dtype=like.dtype).numpy().dtype
        generator = self.streams.generator("noise", silo, round, kind, 0)
        draws = generator.standard_normal((rows * self.runs, like.shape[1]), dtype=dtype)
        return torch.from_numpy(draws).repeat_interleave(len(like) // self.runs, 0)

    def local_model(
        self, query: Query, silo: int, release: Release, clip: Tensor, noise_scale: Tensor, stepsize: Tensor
    ) -> Tensor:
        """Local steps where gradients stay what they are at `weights`, so that their order does not matter.

        ValueError: gradients have changed on the way.
        """
        weights, kind = query.weights, query.kind
        drawn, of = self._records(silo, release.records_drawn, query.round, kind, "replacement")
        base = self._noise(release.steps, weights, silo, query.round, kind).reshape(release.steps, *weights.shape)
        pulled = self._gradient_sum(weights, drawn, of, clip, "record")
        moved = torch.addcmul(pulled, noise_scale[:, None] * release.records, base.sum(0))
        there = torch.addcmul(weights, stepsize[:, None], moved, value=-1)
        if not torch.allclose(self._gradient_sum(there, drawn, of, clip, "record"), pulled, rtol=1e-6):
            raise ValueError(f"message {kind}: local steps leave the region where the canary's gradients stay the same")
        return there


def stacked(mechanism: type[Messages], runs: int) -> type[Messages]:
    """The mechanism with `runs` runs in the stack.

    A mechanism under test changes what `Messages` does by calling `super()`, so that its changes apply here too.
    """
    bases = (StackedRuns,) if mechanism is Messages else (mechanism, StackedRuns)
    return type("Stacked", bases, {"runs": runs})
