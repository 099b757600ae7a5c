"""The place where a silo's message is made, of the seam's four: `draw`, `clipped_sum`, `local_steps`, `noise`.

Chance is in the first and the last alone. Only `record_gradients` has no noise.
"""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from silodp.federation import clipped_sums
from silodp.federation.clipped_sums import Points, Records, Start, StepNoise
from silodp.federation.draws import Places, RecordDraws, device_normals, standard_normals
from silodp.federation.interface import Query
from silodp.federation.plan_check import PlanCheck
from silodp.models import gpu
from silodp.models.base import Model
from silodp.privacy.plan import Release
from silodp.streams import Streams


class Messages:
    """Makes the messages of all silos of one trial, for the whole stack at once.

    The G points share the drawn records and the base Gaussian draw of a message; each adds a multiple of that draw.
    `silos` are (x, y) of each silo's training records, on the device and in the precision of training. Every
    message has to pass the `check`, if a federation has set one. A subclass may replace `draw`, `clipped_sum`,
    `local_steps` and `noise`, and how a message's noise is added (`add_noise`).
    """

    check: PlanCheck | None = None
    # Whether a device adds the CPU's draws, so that its results can be held against a CPU's.
    host_noise = False

    def __init__(self, model: Model, silos: Sequence[Records], streams: Streams):
        self.model, self.silos, self.streams = model, list(silos), streams
        self.draws = RecordDraws([len(x) for x, _ in silos], streams)
        # (silo, kind) → rounds in which the silo sent a message with mixed noise.
        self._sent: dict[tuple[int, str], list[int]] = {}

    def draw(self, silo: int, release: Release, round: int) -> Places:
        """Places of the records of a silo's message."""
        return self.draws.draw(silo, release, round)

    def clipped_sum(self, points: Points, silos: Sequence[int], drawn: Sequence[Places]) -> Tensor:
        """`clipped_sums.clipped_sum` over the drawn records of some silos, (G, d)."""
        return clipped_sums.clipped_sum(self.model, points, self.take_records(silos, drawn))

    def local_steps(
        self, start: Start, silos: Sequence[int], drawn: Sequence[Places], noise: Sequence[StepNoise | None]
    ) -> Tensor:
        """`clipped_sums.local_steps` over the drawn records of some silos, (S, G, d)."""
        return clipped_sums.local_steps(self.model, start, self.take_records(silos, drawn), noise)

    def noise(self, rows: int, like: Tensor, silo: int, round: int, kind: str) -> Tensor:
        """Standard Gaussian draws (rows, d), made on the device unless `host_noise`."""
        if not (self.host_noise or gpu.runs_on_host(like)):
            return device_normals(self.streams, silo, round, kind, rows, like)
        dtype = torch.empty(0, dtype=like.dtype).numpy().dtype
        draws = standard_normals(self.streams, silo, round, kind, (rows, like.shape[1]), dtype)
        return gpu.move_without_waiting(torch.from_numpy(draws), like.device)

    def take_records(self, silos: Sequence[int], drawn: Sequence[Places]) -> list[Records]:
        """(x, y) of each silo's drawn records."""
        taken = []
        for silo, places in zip(silos, drawn, strict=True):
            x, y = self.silos[silo]
            index = places if isinstance(places, slice) else gpu.move_without_waiting(torch.as_tensor(places), x.device)
            taken.append((x[index], y[index]))
        return taken

    def message(self, query: Query, silo: int, release: Release, clip: Tensor, noise_scale: Tensor) -> Tensor:
        """Mean (G, d) over K drawn records of the clipped gradient, plus noise.

        `clip` is L and `noise_scale` the plan's standard deviation per coordinate, before the query's factor, (G,), on
        the CPU, where they are checked. Replacing a
        record that was drawn J times moves the mean by at most 2LJ/K (4LJ/K for a difference); by √tensors times that
        with "per_tensor", and by 2L (4L) with "batch_mean". ValueError where the silo has too few records.
        """
        self._planned(query, [silo], [release], clip, [noise_scale])
        drawn = self.draw(silo, release, query.round)
        mean = self._sum(query, [silo], [drawn], release, clip) / self._number(silo, drawn)
        return self.add_noise(mean, noise_scale, query, silo, release)

    def add_noise(self, mean: Tensor, scale: Tensor, query: Query, silo: int, release: Release) -> Tensor:
        """The mean (G, d) of a message with its noise of standard deviation `scale` (G,), before the query's factor."""
        if not bool((scale > 0).any()):
            return mean
        return torch.addcmul(
            mean, _scale_noise(scale, query)[:, None], self._mixed(release.mixing or (1.0,), query, silo)
        )

    def total(
        self, query: Query, silos: Sequence[int], release: Release, clip: Tensor, noise_scales: Sequence[Tensor]
    ) -> Tensor:
        """Sum (G, d) of the messages of several silos, made in one pass, which is faster where batches are small.

        The release is the same for all, clips by record and does not take "all" records; `noise_scales`: a silo's each.
        """
        self._planned(query, silos, [release] * len(silos), clip, noise_scales)
        drawn = [self.draw(silo, release, query.round) for silo in silos]
        total = self._sum(query, silos, drawn, release, clip) / release.records_drawn
        if any(bool((scale > 0).any()) for scale in noise_scales):
            base = torch.cat([self.noise(1, query.weights, silo, query.round, query.kind) for silo in silos])
            first, alike = noise_scales[0], all(torch.equal(scale, noise_scales[0]) for scale in noise_scales)
            # Point by point, as everywhere: a matrix product would round by the size of the stack.
            parts = [(first, base.sum(0))] if alike else zip(noise_scales, base, strict=True)
            for scale, draw in parts:
                total = torch.addcmul(total, _scale_noise(scale, query)[:, None], draw)
        return total

    def record_gradients(self, query: Query, silo: int, release: Release, clip: Tensor) -> Tensor:
        """(K, G, d): what `message` averages, each record's clipped gradient or difference of two, without noise."""
        self._planned(query, [silo], [release], clip, [None])
        drawn = self.draw(silo, release, query.round)
        places = range(len(self.silos[silo][0]))[drawn] if isinstance(drawn, slice) else drawn
        points = Points(query.weights, gpu.move_without_waiting(clip, query.weights.device), query.previous)
        singles = (slice(int(place), int(place) + 1) for place in places)
        return torch.stack([self.clipped_sum(points, [silo], [single]) for single in singles])

    def local_model(
        self, query: Query, silo: int, release: Release, clip: Tensor, noise_scale: Tensor, stepsize: Tensor
    ) -> Tensor:
        """The silo's model (G, d) after one-record noisy clipped gradient steps from the query's weights.

        Each step is a release of its own, with noise N(0, noise_scale²) per coordinate; its sensitivity is 2L. With
        one release for all steps the mean of their gradients has that noise, once, and a sensitivity of 2L/K.
        """
        return self.local_models(query, [silo], [release], clip, [noise_scale], stepsize)[0]

    def local_models(
        self,
        query: Query,
        silos: Sequence[int],
        releases: Sequence[Release],
        clip: Tensor,
        noise_scales: Sequence[Tensor],
        stepsize: Tensor,
    ) -> Tensor:
        """The models (S, G, d) of several silos, as `local_model` makes each; side by side on a device."""
        device, contracted, drawn, noise = query.weights.device, releases[0].contracted, [], []
        self._planned(query, silos, releases, clip, noise_scales)
        for silo, release, scale in zip(silos, releases, noise_scales, strict=True):
            drawn.append(self.draw(silo, release, query.round))
            added = None
            if bool((scale > 0).any()):
                draws = self.noise(release.steps, query.weights, silo, query.round, query.kind)
                added = StepNoise(gpu.move_without_waiting(scale, device), draws)
            noise.append(added)
        clip = gpu.move_without_waiting(clip, device)
        start = Start(query.weights, clip, stepsize, contracted, contracted and releases[0].steps == 1)
        return self.local_steps(start, silos, drawn, noise)

    def _planned(self, *messages: Any) -> None:
        if self.check is not None:
            self.check(*messages)

    def _sum(
        self, query: Query, silos: Sequence[int], drawn: Sequence[Places], release: Release, clip: Tensor
    ) -> Tensor:
        clip = gpu.move_without_waiting(clip, query.weights.device)
        points = Points(query.weights, clip, query.previous, query.factors, release.clipping)
        return self.clipped_sum(points, silos, drawn)

    def _number(self, silo: int, drawn: Places) -> int:
        return len(self.silos[silo][0]) if isinstance(drawn, slice) else len(drawn)

    def _mixed(self, mixing: tuple[float, ...], query: Query, silo: int) -> Tensor:
        """Σ_s b_s z_{t−s} (rows, d) over the silo's messages so far; old draws are made again from their streams."""
        sent = self._sent.setdefault((silo, query.kind), []) if len(mixing) > 1 else []
        if query.round not in sent:
            sent.append(query.round)
        rounds = reversed(sent[: sent.index(query.round) + 1])
        draws = (b * self.noise(1, query.weights, silo, r, query.kind) for b, r in zip(mixing, rounds, strict=False))
        return functools.reduce(torch.add, draws)


def _scale_noise(noise_scale: Tensor, query: Query) -> Tensor:
    scale = gpu.move_without_waiting(noise_scale, query.weights.device)
    return scale if query.noise_factor is None else scale * query.noise_factor
