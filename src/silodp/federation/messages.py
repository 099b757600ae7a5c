"""The one place where a silo's message is made: sample, clip, average, noise. Nothing un-noised passes it,
except `record_gradients`, the inputs of a shuffle protocol, which adds its own noise.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from silodp.federation.models import Model
from silodp.federation.models.base import clip_factors
from silodp.federation.models.threads import side_by_side
from silodp.federation.rng import Streams
from silodp.privacy.plan import Clipping, Sampler

# Rows of noise drawn from one stream: the draws are the same however threads share the blocks.
NOISE_ROWS = 64


class Messages:
    """Makes the messages of all silos of one trial, for the whole stack at once.

    The G points of the stack share the drawn records and the base Gaussian draw of a message; each adds its own
    multiple of that draw. Different silos, rounds and kinds of message draw from different streams.

    Args:
        model: the model whose gradients are sent.
        silos: (x, y) of each silo's training records, on the device and in the precision of training.
        streams: the tree that batches and noise are drawn from; a message's names are appended to it.
    """

    def __init__(self, model: Model, silos: Sequence[tuple[Tensor, Tensor]], streams: Streams):
        self.model, self.silos, self.streams = model, list(silos), streams
        self._shuffled: dict[int, tuple[Tensor, Tensor]] = {}

    def message(
        self,
        weights: Tensor,
        silo: int,
        records: int,
        clip: Tensor,
        noise_scale: Tensor,
        *,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        sampler: Sampler = "replacement",
        clipping: Clipping = "record",
    ) -> Tensor:
        """Mean over K drawn records of the clipped gradient, plus noise.

        Args:
            weights: parameters of every point, (G, d).
            silo: which silo sends.
            records: K.
            clip: L of every point, (G,); a record's gradient over all parameters is scaled to norm at most L.
            noise_scale: standard deviation per coordinate of every point, (G,).
            round: r, names the streams.
            kind: names the streams; two messages of one round differ in it.
            previous: if given (G, d), the message is the difference between the clipped gradients at `weights` and at
                `previous`, on the same records.
            sampler: "replacement", uniformly with replacement; "subset", K distinct records, drawn anew for every
                message; "disjoint", the K records of round r in a random order of the silo's records that is fixed for
                the run, so that no record is drawn twice; "all", the mean over all records of the silo, which may be
                more than K.
            clipping: "record"; or a released program's way: "per_tensor", every tensor of a record's gradient is scaled
                to norm at most L by itself; "batch_mean", only the mean is.

        Returns:
            (G, d). Replacing one record that was drawn J times moves it by at most 2LJ/K (4LJ/K for a difference). With
            "per_tensor" it is √tensors times that, with "batch_mean" 2L (4L) however large K is.

        Raises:
            ValueError: "disjoint" when the silo's records are used up, "subset" when it has fewer than K.
        """
        x, y = self._records(silo, records, round, kind, sampler)
        records = len(x)
        total = self._gradient_sum(weights, x, y, clip, clipping)
        if previous is not None:
            total = total - self._gradient_sum(previous, x, y, clip, clipping)
        mean = total / records
        if bool((noise_scale > 0).any()):
            base = self._noise(1, weights, silo, round, kind)
            mean = torch.addcmul(mean, noise_scale[:, None], base)
        return mean

    def total(
        self,
        weights: Tensor,
        silos: Sequence[int],
        records: int,
        clip: Tensor,
        noise_scales: Sequence[Tensor],
        *,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        sampler: Sampler = "replacement",
    ) -> Tensor:
        """Sum over `silos` of what `message` gives each, (G, d), up to rounding, with the same records and noise.

        Made in one pass, which is faster where batches are so small that most of a message's time is the calls.

        Args:
            weights, clip, round, kind, previous, sampler: as in `message`; not "all".
            silos: which silos send.
            records: K, the same for all.
            noise_scales: for each of them the standard deviation of every point, (G,).
        """
        drawn = [self._records(silo, records, round, kind, sampler) for silo in silos]
        x, y = torch.cat([part for part, _ in drawn]), torch.cat([part for _, part in drawn])
        total = self.model.clipped_gradient_sum(weights, x, y, clip)
        if previous is not None:
            total = total - self.model.clipped_gradient_sum(previous, x, y, clip)
        total = total / records
        if any(bool((scale > 0).any()) for scale in noise_scales):
            base = torch.cat([self._noise(1, weights, silo, round, kind) for silo in silos])
            first, alike = noise_scales[0], all(torch.equal(scale, noise_scales[0]) for scale in noise_scales)
            # Point by point, as everywhere: a matrix product would round by the size of the stack.
            parts = [(first, base.sum(0))] if alike else zip(noise_scales, base, strict=True)
            for scale, draw in parts:
                total = torch.addcmul(total, scale[:, None], draw)
        return total

    def record_gradients(
        self,
        weights: Tensor,
        silo: int,
        records: int,
        clip: Tensor,
        *,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        sampler: Sampler = "disjoint",
    ) -> Tensor:
        """(K, G, d): what `message` averages, each record's clipped gradient or difference of two, without noise."""
        x, y = self._records(silo, records, round, kind, sampler)
        rows = []
        for k in range(len(x)):
            row = self.model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], clip)
            if previous is not None:
                row = row - self.model.clipped_gradient_sum(previous, x[k : k + 1], y[k : k + 1], clip)
            rows.append(row)
        return torch.stack(rows)

    def local_model(
        self,
        weights: Tensor,
        silo: int,
        steps: int,
        clip: Tensor,
        noise_scale: Tensor,
        stepsize: Tensor,
        *,
        round: int,
        kind: str = "step",
    ) -> Tensor:
        """The silo's own model after `steps` one-record noisy clipped gradient steps from `weights`; (G, d).

        Each step draws one record and adds N(0, noise_scale²) per coordinate to its clipped gradient, so each step is a
        release of its own: replacing its record moves a step's gradient by at most 2L.
        """
        x, y = self._draw(silo, steps, round, kind)
        base = self._noise(steps, weights, silo, round, kind) if bool((noise_scale > 0).any()) else None
        return self.model.local_steps(weights, x, y, clip, stepsize, noise_scale, base)

    def _gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, clipping: Clipping) -> Tensor:
        if clipping == "record":
            return self.model.clipped_gradient_sum(weights, x, y, clip)
        if clipping == "per_tensor":
            return self._tensor_clipped_sum(weights, x, y, clip)
        total = self.model.clipped_gradient_sum(weights, x, y, torch.full_like(clip, torch.inf))
        return total * clip_factors(((total / len(x)) ** 2).sum(1), clip)[:, None]

    def _tensor_clipped_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        total, free = torch.zeros_like(weights), torch.full_like(clip, torch.inf)
        for k in range(len(x)):
            gradient = self.model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], free)
            for block in self.model.blocks:
                part = gradient[:, block.start : block.stop]
                total[:, block.start : block.stop] += part * clip_factors((part**2).sum(1), clip)[:, None]
        return total

    def _records(self, silo: int, records: int, round: int, kind: str, sampler: Sampler) -> tuple[Tensor, Tensor]:
        if sampler == "all":
            return self.silos[silo]
        if sampler == "disjoint":
            return self._next(silo, records, round)
        if sampler == "subset":
            chosen = self.streams.generator("records", silo, round, kind).choice(
                len(self.silos[silo][0]), size=records, replace=False
            )
            return self._take(silo, chosen)
        return self._draw(silo, records, round, kind)

    def _next(self, silo: int, records: int, round: int) -> tuple[Tensor, Tensor]:
        x, y = self.silos[silo]
        if (round + 1) * records > len(x):
            raise ValueError(f"round {round}: {records} new records a round: silo {silo} has only {len(x)}")
        if silo not in self._shuffled:
            order = torch.from_numpy(self.streams.generator("order", silo).permutation(len(x))).to(x.device)
            self._shuffled[silo] = x[order], y[order]
        x, y = self._shuffled[silo]
        part = slice(round * records, (round + 1) * records)
        return x[part], y[part]

    def _draw(self, silo: int, records: int, round: int, kind: str) -> tuple[Tensor, Tensor]:
        generator = self.streams.generator("records", silo, round, kind)
        return self._take(silo, generator.integers(0, len(self.silos[silo][0]), size=records))

    def _take(self, silo: int, drawn: np.ndarray) -> tuple[Tensor, Tensor]:
        x, y = self.silos[silo]
        index = torch.from_numpy(drawn).to(x.device)
        return x[index], y[index]

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
