"""Many independent runs of one silo played at once, as points of the stack.

The trainer's stack shares records and noise between its points; here every run has its own. All other code of a message
is that of the mechanism under test.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from silodp.federation.clipped_sums import Points, Start, StepNoise
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.models.base import Model, clip_factors
from silodp.privacy.plan import Release


class StackedRuns(Messages):
    """Messages of `runs` runs at once: rows of the stack are (run, point), and each run draws and adds its own.

    Which record a run draws is an index (K, runs) in place of records. With one run the draws, and so the messages, are
    those of `Messages` with the same streams, except for "subset" and "disjoint", whose law is the same.
    """

    runs = 1

    def __init__(self, model: Model, silos: Sequence[tuple[Tensor, Tensor]], streams: Streams):
        super().__init__(model, silos, streams)
        self._groups: dict[int, list[Tensor]] = {}

    def draw(self, silo: int, release: Release, round: int) -> Tensor:  # type: ignore[override]
        """Places (K, runs) of the drawn records; record 0 is in the first part, as in the first disjoint batch."""
        n, records = len(self.silos[silo][0]), release.records_drawn
        generator = self.streams.generator("records", silo, round, release.kind)
        if release.part is not None:
            first, size = release.part
            return torch.arange(first, first + size)[:, None].expand(size, self.runs)
        if release.sampler == "all":
            return torch.arange(n)[:, None].expand(n, self.runs)
        if release.sampler == "disjoint":
            others = generator.permuted(torch.arange(1, n).expand(self.runs, -1).numpy(), axis=1)[:, : records - 1]
            first_place = torch.full((1, self.runs), 0 if round == 0 else n - 1, dtype=torch.int64)
            return torch.cat([first_place, torch.from_numpy(others.T.copy())])
        if release.sampler == "subset":
            order = generator.permuted(torch.arange(n).expand(self.runs, -1).numpy(), axis=1)
            return torch.from_numpy(order[:, :records].T.copy())
        return torch.from_numpy(generator.integers(0, n, size=(self.runs, records)).T)

    def clipped_sum(self, points: Points, silos: Sequence[int], drawn: Sequence[Tensor]) -> Tensor:  # type: ignore[override]
        """Sum over each run's drawn records (K, runs) of one silo, each distinct record's gradient taken once."""
        (silo,), (places,) = silos, drawn
        weights, clip = points.weights, points.clip
        if points.factors is None and points.previous is not None:
            at = replace(points, previous=None)
            before = replace(at, weights=points.previous)
            return self.clipped_sum(at, silos, drawn) - self.clipped_sum(before, silos, drawn)
        if points.factors is None and points.clipping == "batch_mean":
            free = self.clipped_sum(
                replace(points, clip=torch.full_like(clip, torch.inf), clipping="record"), silos, drawn
            )
            return free * clip_factors(((free / len(places)) ** 2).sum(1), clip)[:, None]
        size, asked = len(weights) // self.runs, points
        shared = weights.reshape(self.runs, size, -1)
        if points.previous is None and bool((shared == shared[:1]).all()):
            # Runs that query at the same model get the same gradients.
            asked = replace(points, weights=weights[:size], clip=clip[:size])
        total = torch.zeros_like(weights)
        for k, times in self._times(silo, places):
            gradient = super().clipped_sum(asked, [silo], [slice(k, k + 1)])
            gradient = gradient.repeat(len(weights) // len(asked.weights), 1)
            often = times.to(weights.dtype).repeat_interleave(size)[:, None]
            # A record that a run did not draw adds nothing to it, whatever its gradient is.
            total += torch.where(often > 0, often * gradient, 0)
        return total

    def _times(self, silo: int, drawn: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Place of each of the silo's distinct records, and how often each run drew it, (runs,)."""
        *groups, last = self._distinct(silo)
        left = torch.full((drawn.shape[1],), len(drawn))
        for group in groups:
            times = sum((drawn == place).sum(0) for place in group)
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

    def noise(self, rows: int, like: Tensor, silo: int, round: int, kind: str) -> Tensor:
        """(rows · runs · points, d): a run's points share its draws."""
        dtype = torch.empty(0, dtype=like.dtype).numpy().dtype
        generator = self.streams.generator("noise", silo, round, kind, 0)
        draws = generator.standard_normal((rows * self.runs, like.shape[1]), dtype=dtype)
        return torch.from_numpy(draws).repeat_interleave(len(like) // self.runs, 0)

    def local_steps(  # type: ignore[override]
        self, start: Start, silos: Sequence[int], drawn: Sequence[Tensor], noise: Sequence[StepNoise | None]
    ) -> Tensor:
        """Local steps where gradients stay what they are at the start, so that their order does not matter.

        ValueError: gradients have changed on the way.
        """
        points = Points(start.weights, start.clip)
        pulled = moved = self.clipped_sum(points, silos, drawn)
        (places,), (added,) = drawn, noise
        if added is not None:
            base = added.draws.reshape(-1, *start.weights.shape).sum(0)
            often = len(places) if start.noise_at_end else 1
            moved = torch.addcmul(pulled, added.scale[:, None] * often, base)
        there = torch.addcmul(start.weights, start.stepsize[:, None], moved, value=-1)
        after = self.clipped_sum(replace(points, weights=there), silos, drawn)
        if not torch.allclose(after, pulled, rtol=1e-6):
            raise ValueError("local steps leave the region where the canary's gradients stay the same")
        return there[None]


def stacked(mechanism: type[Messages], runs: int) -> type[Messages]:
    """The mechanism with `runs` runs in the stack.

    A mechanism under test changes what `Messages` does by calling `super()`, so that its changes apply here too.
    """
    bases = (StackedRuns,) if mechanism is Messages else (mechanism, StackedRuns)
    return type("Stacked", bases, {"runs": runs})
