"""Mechanisms with one fault each, by which the audit is judged: `PLANTS["half the noise"]`.

Each is a `Messages` that does what its plan says but for one thing, of the kind that is found in released programs.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from silodp.federation.messages import Messages

# Scale of the noise from (kind, round, K, n).
Scale = Callable[[str, int, int, int], float]


@dataclass(frozen=True)
class Plant:
    """A faulty mechanism.

    Attributes:
        mechanism: makes its messages.
        applies: whether an algorithm has what the fault is in, and shows it, from the kinds of its messages.
        alone: shows only where runs are played one by one, not in the stack.
        at_size: shows only in messages as large as a run's, not in the canary's.
    """

    mechanism: type[Messages]
    applies: Callable[[frozenset[str]], bool] = lambda kinds: True
    alone: bool = False
    at_size: bool = False


def _noise_times(scale: Scale) -> type[Messages]:
    class Scaled(Messages):
        def message(self, query, silo, release, clip, noise_scale):
            factor = scale(query.kind, query.round, release.records_drawn, len(self.silos[silo][0]))
            return super().message(query, silo, release, clip, noise_scale * factor)

        def local_model(self, query, silo, release, clip, noise_scale, stepsize):
            factor = scale(query.kind, query.round, release.records_drawn, len(self.silos[silo][0]))
            return super().local_model(query, silo, release, clip, noise_scale * factor, stepsize)

    return Scaled


def _clipped_by(clip_of: Callable[[Tensor], Tensor], **changes: Any) -> type[Messages]:
    """Another clip, or another way to clip, with the noise of the right one."""

    class Clipped(Messages):
        def message(self, query, silo, release, clip, noise_scale):
            return super().message(query, silo, dataclasses.replace(release, **changes), clip_of(clip), noise_scale)

        def local_model(self, query, silo, release, clip, noise_scale, stepsize):
            return super().local_model(query, silo, release, clip_of(clip), noise_scale, stepsize)

    return Clipped


def _noise_made_by(change: Callable[[Tensor], Tensor]) -> type[Messages]:
    class Changed(Messages):
        def _noise(self, rows, like, silo, round, kind):
            return change(super()._noise(rows, like, silo, round, kind))

    return Changed


def _only(last: bool) -> Callable[[Tensor], Tensor]:
    """Noise on the first or the last half of the coordinates only."""

    def halved(draws: Tensor) -> Tensor:
        kept, half = torch.zeros_like(draws), draws.shape[1] // 2
        part = slice(half, None) if last else slice(0, half)
        kept[:, part] = draws[:, part]
        return kept

    return halved


def _noise_as_of(**fixed: Any) -> type[Messages]:
    """The noise of one silo, round or kind for all."""

    class Same(Messages):
        def _noise(self, rows, like, silo, round, kind):
            return super()._noise(rows, like, **{"silo": silo, "round": round, "kind": kind} | fixed)

    return Same


def _noise_at(scale: Callable[..., float]) -> type[Messages]:
    """Noise times a factor of (silo, weights)."""

    class Somewhere(Messages):
        def _noise(self, rows, like, silo, round, kind):
            return super()._noise(rows, like, silo, round, kind) * scale(silo, like)

    return Somewhere


def _first(coordinates: int | None, rows: int | None = None) -> Callable[[Tensor], Tensor]:
    """Noise on the first coordinates, or in the first rows of a draw, only."""

    def cut(draws: Tensor) -> Tensor:
        kept = torch.zeros_like(draws)
        kept[:rows, :coordinates] = draws[:rows, :coordinates]
        return kept

    return cut


class SameEveryRun(Messages):
    def _noise(self, rows, like, silo, round, kind):
        own, self.streams = self.streams, dataclasses.replace(self.streams, path=())
        try:
            return super()._noise(rows, like, silo, round, kind)
        finally:
            self.streams = own


class RepeatedBatch(Messages):
    def _records(self, silo, records, round, kind, sampler):
        return super()._records(silo, records, 0, kind, sampler)

    def _draw(self, silo, records, round, kind):
        return super()._draw(silo, records, 0, kind)


class HalfOfTheSilo(Messages):
    """Draws from the first half of the records only, so that those are drawn twice as often."""

    def _draw(self, silo, records, round, kind):
        n = len(self.silos[silo][0])
        return self._take(silo, self.streams.generator("records", silo, round, kind).integers(0, -(-n // 2), records))


class PassesNaN(Messages):
    """A record whose squared norm is no number makes the whole message none."""

    def _gradient_sum(self, weights, x, y, clip, clipping):
        total = super()._gradient_sum(weights, x, y, clip, clipping)
        return total if bool(torch.isfinite((x**2).sum())) else total * torch.nan

    def local_model(self, query, silo, release, clip, noise_scale, stepsize):
        total = super().local_model(query, silo, release, clip, noise_scale, stepsize)
        return total if bool(torch.isfinite((self.silos[silo][0] ** 2).sum())) else total * torch.nan


class LessWhereDrawn(Messages):
    """Half the noise in rounds whose batch holds the first record."""

    def _noise(self, rows, like, silo, round, kind):
        draws = super()._noise(rows, like, silo, round, kind)
        drawn = self.streams.generator("records", silo, round, kind).integers(0, len(self.silos[silo][0]), size=64)
        return draws * (0.5 if (drawn == 0).any() else 1.0)


def _has(kind: str) -> Callable[[frozenset[str]], bool]:
    return lambda kinds: kind in kinds


def _no_steps(kinds: frozenset[str]) -> bool:
    return "step" not in kinds


PLANTS: dict[str, Plant] = {
    "half the noise": Plant(_noise_times(lambda *of: 0.5)),
    "noise for n records in place of K": Plant(_noise_times(lambda kind, r, K, n: K / n)),
    "noise for K records in place of n": Plant(_noise_times(lambda kind, r, K, n: n / K)),
    "differences noised as gradients": Plant(
        _noise_times(lambda kind, r, K, n: 0.5 if kind == "difference" else 1.0), _has("difference")
    ),
    "a round without noise": Plant(_noise_times(lambda kind, r, K, n: float(r != 1))),
    "no noise on the first half of the coordinates": Plant(_noise_made_by(_only(last=True))),
    "no noise on the last half of the coordinates": Plant(_noise_made_by(_only(last=False))),
    "one draw for all coordinates": Plant(_noise_made_by(lambda z: z[:, :1].expand_as(z).contiguous())),
    "uniform noise of the same size": Plant(
        # Of local steps only sums are seen, which are close to normal.
        _noise_made_by(lambda z: (torch.special.ndtr(z) - 0.5) * 12**0.5),
        _no_steps,
    ),
    "noise cut at 3σ": Plant(_noise_made_by(lambda z: z.clamp(-3, 3)), at_size=True),
    "no noise at silos from the third on": Plant(_noise_at(lambda silo, weights: float(silo < 2)), at_size=True),
    "no noise on coordinates from 500 on": Plant(_noise_made_by(_first(500)), at_size=True),
    "no noise in rows from 64 on": Plant(
        _noise_made_by(_first(None, 64)), lambda kinds: "step" in kinds, alone=True, at_size=True
    ),
    "no noise at large weights": Plant(
        _noise_at(lambda silo, weights: float(weights.abs().max() <= 1e6)), alone=True, at_size=True
    ),
    "the same noise in every round": Plant(_noise_as_of(round=0)),
    "the same noise at all silos": Plant(_noise_as_of(silo=0)),
    "the same noise in both kinds of message": Plant(_noise_as_of(kind="any"), _has("difference")),
    "the same noise in every run": Plant(SameEveryRun, alone=True),
    "half the noise where the record is drawn": Plant(LessWhereDrawn),
    "no clipping": Plant(_clipped_by(lambda clip: torch.full_like(clip, torch.inf)), alone=True),
    "clipped to 2L": Plant(_clipped_by(lambda clip: 2 * clip)),
    "each tensor clipped by itself": Plant(_clipped_by(lambda clip: clip, clipping="per_tensor"), _no_steps),
    "only the mean clipped": Plant(_clipped_by(lambda clip: clip, clipping="batch_mean"), _no_steps),
    "the same batch in every round": Plant(RepeatedBatch),
    "batches from half of the silo": Plant(HalfOfTheSilo, alone=True),
    "NaN of a record passed on": Plant(PassesNaN),
}
