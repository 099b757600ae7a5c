"""The place where a silo's message is made: sample, clip, average, noise; only `record_gradients` has no noise."""

import functools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from silodp.federation.plan_check import PlanCheck
from silodp.federation.query import Query
from silodp.federation.streams import Streams
from silodp.models import Model
from silodp.models.base import clip_factors
from silodp.models.threads import side_by_side
from silodp.privacy.floating_point import largest_weights
from silodp.privacy.plan import Clipping, Release, Sampler

# Rows of noise drawn from one stream: the draws are the same however threads share the blocks.
NOISE_ROWS = 64


class Messages:
    """Makes the messages of all silos of one trial, for the whole stack at once.

    The G points share the drawn records and the base Gaussian draw of a message; each adds a multiple of that draw.
    `silos` are (x, y) of each silo's training records, on the device and in the precision of training. Every
    message has to pass the `check`, if a federation has set one.
    """

    check: PlanCheck | None = None

    def __init__(self, model: Model, silos: Sequence[tuple[Tensor, Tensor]], streams: Streams):
        self.model, self.silos, self.streams = model, list(silos), streams
        self._shuffled: dict[int, tuple[Tensor, Tensor]] = {}
        # (silo, kind) → rounds in which the silo sent a message with mixed noise.
        self._sent: dict[tuple[int, str], list[int]] = {}

    def message(self, query: Query, silo: int, release: Release, clip: Tensor, noise_scale: Tensor) -> Tensor:
        """Mean (G, d) over K drawn records of the clipped gradient, plus noise.

        `clip` is L and `noise_scale` the standard deviation per coordinate with the query's factor, (G,). Replacing a
        record that was drawn J times moves the mean by at most 2LJ/K (4LJ/K for a difference); by √tensors times that
        with "per_tensor", and by 2L (4L) with "batch_mean". ValueError where the silo has too few records.
        """
        self._planned(query, silo, release, clip, noise_scale)
        if release.part is None:
            x, y = self._records(silo, release.records_drawn, query.round, query.kind, release.sampler)
        else:
            x, y = self._records_of_part(silo, *release.part)
        if query.factors is not None:
            total = self._joint_sum(query, x, y, clip)
        else:
            total = self._difference(query, x, y, clip, release.clipping)
        mean = total / len(x)
        if bool((noise_scale > 0).any()):
            base = self._mixed(release.mixing or (1.0,), query, silo)
            mean = torch.addcmul(mean, noise_scale[:, None], base)
        return mean

    def total(
        self, query: Query, silos: Sequence[int], release: Release, clip: Tensor, noise_scales: Sequence[Tensor]
    ) -> Tensor:
        """Sum (G, d) of the messages of several silos, made in one pass, which is faster where batches are small.

        The release is the same for all, clips by record and does not take "all" records; `noise_scales` are each
        silo's.
        """
        weights, round, kind = query.weights, query.round, query.kind
        for silo, scale in zip(silos, noise_scales, strict=True):
            self._planned(query, silo, release, clip, scale)
        drawn = [self._records(silo, release.records_drawn, round, kind, release.sampler) for silo in silos]
        x, y = torch.cat([part for part, _ in drawn]), torch.cat([part for _, part in drawn])
        total = self._difference(query, x, y, clip) / release.records_drawn
        if any(bool((scale > 0).any()) for scale in noise_scales):
            base = torch.cat([self._noise(1, weights, silo, round, kind) for silo in silos])
            first, alike = noise_scales[0], all(torch.equal(scale, noise_scales[0]) for scale in noise_scales)
            # Point by point, as everywhere: a matrix product would round by the size of the stack.
            parts = [(first, base.sum(0))] if alike else zip(noise_scales, base, strict=True)
            for scale, draw in parts:
                total = torch.addcmul(total, scale[:, None], draw)
        return total

    def record_gradients(self, query: Query, silo: int, release: Release, clip: Tensor) -> Tensor:
        """(K, G, d): what `message` averages, each record's clipped gradient or difference of two, without noise."""
        self._planned(query, silo, release, clip, None)
        x, y = self._records(silo, release.records_drawn, query.round, query.kind, release.sampler)
        return torch.stack([self._difference(query, x[k : k + 1], y[k : k + 1], clip) for k in range(len(x))])

    def local_model(
        self, query: Query, silo: int, release: Release, clip: Tensor, noise_scale: Tensor, stepsize: Tensor
    ) -> Tensor:
        """The silo's model (G, d) after one-record noisy clipped gradient steps from the query's weights.

        Each step is a release of its own, with noise N(0, noise_scale²) per coordinate; its sensitivity is 2L. With
        one release for all steps the mean of their gradients has that noise, once, and a sensitivity of 2L/K.
        ValueError where a plan counts rounding, for weights of which more could come: before records are looked at.
        """
        if release.slack:
            _refuse_large(query, release, clip, noise_scale, stepsize)
        self._planned(query, silo, release, clip, noise_scale)
        x, y = self._draw(silo, release.records_drawn, query.round, query.kind)
        steps = functools.partial(
            self.model.local_steps, query.weights, x, y, clip, stepsize, contracted=release.contracted
        )
        if release.contracted and release.steps == 1:
            noise = self._noise(1, query.weights, silo, query.round, query.kind)
            scale = noise_scale * stepsize * release.records
            return torch.addcmul(steps(noise_scale * 0, None), scale[:, None], noise, value=-1)
        if not bool((noise_scale > 0).any()):
            return steps(noise_scale, None)
        return steps(noise_scale, self._noise(release.records_drawn, query.weights, silo, query.round, query.kind))

    def _planned(self, query: Query, silo: int, release: Release, clip: Tensor, noise: Tensor | None) -> None:
        if self.check is not None:
            self.check(query, silo, release, clip, noise)

    def _difference(self, query: Query, x: Tensor, y: Tensor, clip: Tensor, clipping: Clipping = "record") -> Tensor:
        total = self._gradient_sum(query.weights, x, y, clip, clipping)
        if query.previous is None:
            return total
        return total - self._gradient_sum(query.previous, x, y, clip, clipping)

    def _joint_sum(self, query: Query, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        assert query.factors is not None
        total, free = torch.zeros_like(query.weights), torch.full_like(clip, torch.inf)
        for k in range(len(x)):
            record = x[k : k + 1], y[k : k + 1]
            whole = query.factors[0] * self.model.clipped_gradient_sum(query.weights, *record, free)
            if query.previous is not None:
                whole = whole - query.factors[1] * self.model.clipped_gradient_sum(query.previous, *record, free)
            factor = clip_factors((whole**2).sum(1), clip)[:, None]
            total += torch.where(factor > 0, factor * whole, 0)
        return total

    def _gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, clipping: Clipping) -> Tensor:
        if clipping == "record":
            return self.model.clipped_gradient_sum(weights, x, y, clip)
        free = torch.full_like(clip, torch.inf)
        if clipping == "batch_mean":
            total = self.model.clipped_gradient_sum(weights, x, y, free)
            return total * clip_factors(((total / len(x)) ** 2).sum(1), clip)[:, None]
        total = torch.zeros_like(weights)
        for k in range(len(x)):
            gradient = self.model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], free)
            for block in self.model.blocks:
                part = gradient[:, block.start : block.stop]
                total[:, block.start : block.stop] += part * clip_factors((part**2).sum(1), clip)[:, None]
        return total

    def _records(self, silo: int, records: int, round: int, kind: str, sampler: Sampler) -> tuple[Tensor, Tensor]:
        if sampler == "all":
            return self.silos[silo]
        size = len(self.silos[silo][0])
        if sampler == "disjoint":
            if (round + 1) * records > size:
                raise ValueError(f"round {round}: {records} new records a round: silo {silo} has only {size}")
            return self._records_of_part(silo, round * records, records)
        if sampler == "subset":
            generator = self.streams.generator("records", silo, round, kind)
            return self._take(silo, generator.choice(size, size=records, replace=False))
        return self._draw(silo, records, round, kind)

    def _records_of_part(self, silo: int, first: int, size: int) -> tuple[Tensor, Tensor]:
        """Records `first` … `first + size − 1` of the silo in an order that is fixed for the run."""
        if silo not in self._shuffled:
            x, y = self.silos[silo]
            order = torch.from_numpy(self.streams.generator("order", silo).permutation(len(x))).to(x.device)
            self._shuffled[silo] = x[order], y[order]
        x, y = self._shuffled[silo]
        return x[first : first + size], y[first : first + size]

    def _draw(self, silo: int, records: int, round: int, kind: str) -> tuple[Tensor, Tensor]:
        generator = self.streams.generator("records", silo, round, kind)
        return self._take(silo, generator.integers(0, len(self.silos[silo][0]), size=records))

    def _take(self, silo: int, drawn: np.ndarray) -> tuple[Tensor, Tensor]:
        x, y = self.silos[silo]
        index = torch.from_numpy(drawn).to(x.device)
        return x[index], y[index]

    def _mixed(self, mixing: tuple[float, ...], query: Query, silo: int) -> Tensor:
        """Σ_s b_s z_{t−s} (rows, d) over the silo's messages so far; old draws are made again from their streams."""
        sent = self._sent.setdefault((silo, query.kind), []) if len(mixing) > 1 else []
        if query.round not in sent:
            sent.append(query.round)
        rounds = reversed(sent[: sent.index(query.round) + 1])
        draws = (
            b * self._noise(1, query.weights, silo, round, query.kind) for b, round in zip(mixing, rounds, strict=False)
        )
        return functools.reduce(torch.add, draws)

    def _noise(self, rows: int, like: Tensor, silo: int, round: int, kind: str) -> Tensor:
        """Standard Gaussian draws (rows, d); drawn on the CPU so that every device adds the same noise."""
        dtype = torch.empty(0, dtype=like.dtype).numpy().dtype
        draws = np.empty((rows, like.shape[1]), dtype=dtype)

        def fill(start: int, stop: int) -> None:
            for block in range(start, stop):
                part = draws[block * NOISE_ROWS : (block + 1) * NOISE_ROWS]
                self.streams.generator("noise", silo, round, kind, block).standard_normal(dtype=dtype, out=part)

        side_by_side(fill, -(-rows // NOISE_ROWS))
        return torch.from_numpy(draws).to(like.device)


def _refuse_large(query: Query, release: Release, clip: Tensor, noise: Tensor, stepsize: Tensor) -> None:
    weights, steps = query.weights, release.records_drawn
    if weights.dtype != torch.float64:
        raise ValueError(f"message {query.kind}: {weights.dtype}: must be float64, as the plan counts its rounding")
    each = release.steps > 1  # noise in each step, or none in the steps
    for norm, L, sd, eta in zip(
        weights.norm(dim=1).tolist(), *map(Tensor.tolist, (clip, noise, stepsize)), strict=True
    ):
        most = largest_weights(weights.shape[1], steps, eta, L, sd if each else 0.0, release.slack)
        if not norm <= most:
            allowed = f"must be at most {most:.3g}, beyond which rounding tells more than the plan counts"
            raise ValueError(f"message {query.kind}: weights of norm {norm:.3g}: {allowed}")
