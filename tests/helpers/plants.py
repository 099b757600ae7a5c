"""Mechanisms with one fault each, by which the audit is judged: `PLANTS["half the noise"]`.

Each is a `Messages` that does what its plan says but for one thing, of the kind that is found in released programs. All
faults are in the seam's four functions, below the check that holds messages against plans.
"""

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from silodp.federation.draws import RecordDraws
from silodp.federation.messages import Messages

Mechanism = type[Messages]
# The noise (rows, d) of a message that is sent, from the honest noise and (silo, round, kind, weights).
Change = Callable[[Tensor, int, int, str, Tensor], Tensor]


def _noise(change: Change) -> Mechanism:
    class Changed(Messages):
        def noise(self, rows, like, silo, round, kind):
            return change(super().noise(rows, like, silo, round, kind), silo, round, kind, like)

    return Changed


def _noise_of(**fixed: int | str) -> Mechanism:
    """The noise of one silo, round or kind for all."""

    class Same(Messages):
        def noise(self, rows, like, silo, round, kind):
            return super().noise(rows, like, **{"silo": silo, "round": round, "kind": kind} | fixed)

    return Same


def _noise_by_draw(scale: Callable[[int, int, bool], float]) -> Mechanism:
    """Noise times a factor of (K, n, whether the first record was drawn)."""

    class Following(Messages):
        def draw(self, silo, release, round):
            places = super().draw(silo, release, round)
            first = isinstance(places, slice) or bool((places == 0).any())
            self.__dict__.setdefault("of", {})[silo] = release.records_drawn, len(self.silos[silo][0]), first
            return places

        def noise(self, rows, like, silo, round, kind):
            return super().noise(rows, like, silo, round, kind) * scale(*self.of[silo])

    return Following


def _clipped(clip_of: Callable[[Tensor], Tensor], **changes: str) -> Mechanism:
    """Another clip, or another way to clip."""

    class Clipped(Messages):
        def clipped_sum(self, points, silos, drawn):
            asked = dataclasses.replace(points, clip=clip_of(points.clip), **changes)
            return super().clipped_sum(asked, silos, drawn)

        def local_steps(self, start, silos, drawn, noise):
            return super().local_steps(start._replace(clip=clip_of(start.clip)), silos, drawn, noise)

    return Clipped


def _keep(rows: slice, coordinates: slice) -> Change:
    """Noise in these rows of a draw and on these coordinates only."""

    def cut(draws: Tensor, *of: object) -> Tensor:
        kept = torch.zeros_like(draws)
        kept[rows, coordinates] = draws[rows, coordinates]
        return kept

    return cut


ALL = slice(None)


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


PLANTS: dict[str, Mechanism] = {
    "half the noise": _noise(lambda z, *of: z * 0.5),
    "noise for n records in place of K": _noise_by_draw(lambda K, n, first: K / n),
    "noise for K records in place of n": _noise_by_draw(lambda K, n, first: n / K),
    "differences noised as gradients": _noise(lambda z, s, r, kind, w: z * (0.5 if kind == "difference" else 1)),
    "a round without noise": _noise(lambda z, s, round, *of: z * (round != 1)),
    "no noise on the first half of the coordinates": _noise(lambda z, *of: z * (_places(z) >= z.shape[1] // 2)),
    "no noise on the last half of the coordinates": _noise(lambda z, *of: z * (_places(z) < z.shape[1] // 2)),
    "one draw for all coordinates": _noise(lambda z, *of: z[:, :1].expand_as(z).contiguous()),
    "uniform noise of the same size": _noise(lambda z, *of: (torch.special.ndtr(z) - 0.5) * 12**0.5),
    "noise cut at 3σ": _noise(lambda z, *of: z.clamp(-3, 3)),
    "no noise at silos from the third on": _noise(lambda z, silo, *of: z * (silo < 2)),
    "no noise on coordinates from 500 on": _noise(_keep(ALL, slice(500))),
    "no noise in rows from 64 on": _noise(_keep(slice(64), ALL)),
    "no noise at large weights": _noise(lambda z, s, r, k, weights: z * (weights.abs().max() <= 1e6)),
    "the same noise in every round": _noise_of(round=0),
    "the same noise at all silos": _noise_of(silo=0),
    "the same noise in both kinds of message": _noise_of(kind="any"),
    "the same noise in every run": SameEveryRun,
    "half the noise where the record is drawn": _noise_by_draw(lambda K, n, first: 0.5 if first else 1.0),
    "no clipping": _clipped(lambda clip: torch.full_like(clip, torch.inf)),
    "clipped to 2L": _clipped(lambda clip: 2 * clip),
    "each tensor clipped by itself": _clipped(lambda clip: clip, clipping="per_tensor"),
    "only the mean clipped": _clipped(lambda clip: clip, clipping="batch_mean"),
    "the same batch in every round": RepeatedBatch,
    "batches from half of the silo": HalfOfTheSilo,
    "NaN of a record passed on": PassesNaN,
}


def _places(draws: Tensor) -> Tensor:
    return torch.arange(draws.shape[1])
