"""Mechanisms with one fault each, by which the audit is judged: `PLANTS["half the noise"]`.

Each is a `Messages` that does what its plan says but for one thing, of the kind that is found in released programs.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from silodp.federation.draws import RecordDraws
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
        def noise(self, rows, like, silo, round, kind):
            return change(super().noise(rows, like, silo, round, kind))

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
        def noise(self, rows, like, silo, round, kind):
            return super().noise(rows, like, **{"silo": silo, "round": round, "kind": kind} | fixed)

    return Same


def _noise_at(scale: Callable[..., float]) -> type[Messages]:
    """Noise times a factor of (silo, weights)."""

    class Somewhere(Messages):
        def noise(self, rows, like, silo, round, kind):
            return super().noise(rows, like, silo, round, kind) * scale(silo, like)

    return Somewhere


def _first(coordinates: int | None, rows: int | None = None) -> Callable[[Tensor], Tensor]:
    """Noise on the first coordinates, or in the first rows of a draw, only."""

    def cut(draws: Tensor) -> Tensor:
        kept = torch.zeros_like(draws)
        kept[:rows, :coordinates] = draws[:rows, :coordinates]
        return kept

    return cut


class SameEveryRun(Messages):
    def noise(self, rows, like, silo, round, kind):
        own, self.streams = self.streams, dataclasses.replace(self.streams, path=())
        try:
            return super().noise(rows, like, silo, round, kind)
        finally:
            self.streams = own


class RepeatedBatch(Messages):
    def draw(self, silo, release, round):
        return super().draw(silo, release, 0)


class HalfOfTheSilo(Messages):
    """Draws from the first half of the records only, so that those are drawn twice as often."""

    def draw(self, silo, release, round):
        if release.sampler != "replacement":
            return super().draw(silo, release, round)
        return RecordDraws([-(-len(x) // 2) for x, _ in self.silos], self.streams).draw(silo, release, round)


class PassesNaN(Messages):
    """A record whose squared norm is no number makes the whole message none."""

    def _spoilt(self, total, silos, drawn):
        finite = all(bool(torch.isfinite((x**2).sum())) for x, _ in self.take_records(silos, drawn))
        return total if finite else total * torch.nan

    def clipped_sum(self, points, silos, drawn):
        return self._spoilt(super().clipped_sum(points, silos, drawn), silos, drawn)

    def local_steps(self, start, silos, drawn, noise):
        return self._spoilt(super().local_steps(start, silos, drawn, noise), silos, drawn)


class LessWhereDrawn(Messages):
    """Half the noise where the batch of a message holds the first record."""

    def draw(self, silo, release, round):
        self.records_drawn = super().draw(silo, release, round)
        return self.records_drawn

    def noise(self, rows, like, silo, round, kind):
        return super().noise(rows, like, silo, round, kind) * (0.5 if (self.records_drawn == 0).any() else 1.0)


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
