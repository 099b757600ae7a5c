"""Messages on a lattice, with a real Gaussian that is rounded to the same lattice: post-processing of the mechanism.

The lattice's step is the power of two at most 2⁻²⁰ of the noise, so that silos with unlike noise share lattices and
their sums are exact. Rounding moves two neighbours' means at most √d steps further apart, for which noise is raised.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from silodp.federation.clipped_sums import Points, Records, Start
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.models.base import Model
from silodp.privacy.plan import PrivacyPlan, Release
from silodp.silos.secret_draws import SecretDraws
from silodp.streams import Streams

# log2 of a message's noise in steps of its lattice, rounded down.
DIGITS = 20
# Of a sensitivity: float64 sums, deviations rounded to whole steps, and the rounding of local steps.
SLACK = 2.0 ** -(DIGITS - 1)


def raise_noise(plan: PrivacyPlan, size: int) -> PrivacyPlan:
    """The plan with noise raised for the lattice at d = `size`; ValueError where rounding is not small."""

    def raised(release: Release) -> Release:
        share = release.noise / release.sensitivity * math.sqrt(size) * 2.0**-DIGITS
        if share > 0.5:
            raise ValueError(f"d = {size}: noise of {release.kind!r} is too large beside its clip for a lattice")
        return replace(release, noise=release.noise * (1 + SLACK) / (1 - share))

    return replace(plan, releases=tuple(raised(release) for release in plan.releases))


def put_on_lattice(values: Tensor, noise: float, draws: np.ndarray) -> Tensor:
    """`values` rounded to the lattice of N(0, noise²), plus whole steps `draws`, both of shape (rows, d)."""
    step = lattice_step(noise)
    return (torch.round(values / step) + torch.from_numpy(draws)) * step


def lattice_step(noise: float) -> float:
    return math.ldexp(1.0, math.frexp(noise)[1] - 1 - DIGITS)


def steps_of_noise(noise: float) -> int:
    """The deviation in whole steps, rounded up: from 2²⁰ to 2²¹."""
    return math.ceil(noise / lattice_step(noise))


@dataclass(frozen=True)
class KeyedStreams(Streams):
    """Streams of `SecretDraws`: `key_of` gives 32 bytes for (silo, round, kind) of a message, or a silo's order."""

    key_of: Callable[..., bytes] = field(kw_only=True)

    def generator(self, *names: object) -> Any:
        purpose, *where = names
        return SecretDraws(hashlib.sha256(str(purpose).encode() + self.key_of(*where)).digest())


class LatticeMessages(Messages):
    """Messages of one point in float64 with exact noise; weights are cut to ±`bound` before a record is looked at."""

    def __init__(self, model: Model, silos: list[Records], key_of: Callable[..., bytes], bound: float):
        super().__init__(model, silos, KeyedStreams(0, key_of=key_of))
        self.bound = bound

    def message(self, query: Query, *more: Any) -> Tensor:
        return super().message(self._bounded(query), *more)

    def add_noise(self, mean: Tensor, scale: Tensor, query: Query, silo: int, release: Release) -> Tensor:
        return put_on_lattice(mean, float(scale), self._steps(1, query, silo, float(scale)))

    def local_model(
        self, query: Query, silo: int, release: Release, clip: Tensor, noise_scale: Tensor, stepsize: Tensor
    ) -> Tensor:
        query, noise = self._bounded(query), float(noise_scale)
        self._planned(query, [silo], [release], clip, [noise_scale])
        weights, places = query.weights, self.draw(silo, release, query.round)
        if release.steps == 1:
            start = Start(weights, clip, stepsize, release.contracted, noise_at_end=True)
            moved = self.local_steps(start, [silo], [places], [None])[0] - weights
            scale = noise * float(stepsize) * release.records
            return weights + put_on_lattice(moved, scale, self._steps(1, query, silo, scale))
        draws = self._steps(release.steps, query, silo, noise)
        curvature = self.model.curvature if release.contracted else None
        for place, draw in zip(np.asarray(places), draws, strict=True):
            x = self.silos[silo][0][int(place)]
            squared = float((x**2).sum()) * float(stepsize) * curvature if curvature else 0.0
            shrink = min(2 / squared, 1.0) if squared > 0 else 1.0  # of NaN, whose gradient is 0 as it is
            single = [slice(int(place), int(place) + 1)]
            gradient = self.clipped_sum(Points(weights, clip / shrink), [silo], single) * shrink
            weights = weights - stepsize[:, None] * put_on_lattice(gradient, noise, draw[None])
        return weights

    def _bounded(self, query: Query) -> Query:
        previous = None if query.previous is None else query.previous.clamp(-self.bound, self.bound)
        return replace(query, weights=query.weights.clamp(-self.bound, self.bound), previous=previous)

    def _steps(self, rows: int, query: Query, silo: int, noise: float) -> np.ndarray:
        """Noise (rows, d) in whole steps of its lattice."""
        stream: Any = self.streams.generator("noise", silo, query.round, query.kind)
        return stream.rounded_gaussian(rows * query.weights.shape[1], steps_of_noise(noise)).reshape(rows, -1)
