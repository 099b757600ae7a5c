"""Independent trials as one stack: the registered algorithms run on problems with known constants, a row a trial.

Training stacks points of a grid, which share records and noise. A check wants independent trials instead, so here
every row of the stack has data, drawn records, silos and noise of its own, and a round of all trials and silos is a few
array operations.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from silodp.algorithms.base import Algorithm, State
from silodp.federation.interface import Federation, Query
from silodp.federation.prox import Prox, no_prox
from silodp.privacy.plan import Release
from silodp.streams import Streams

Array = NDArray[np.float64]
Gradients = Callable[[Array, Array], Array]
# In place of a silo's number: the mean over all silos that take part.
COHORT = -1
# What stands in for algorithms: w_0, a fixed model of norm 1, or a step along the mean of all records' gradients at w_0
# with the mean of all rounds' noise. Of losses ½‖w − x‖² that is the sample mean plus noise.
Null = Literal["w_0", "fixed w", "mean + noise"]
NULLS: tuple[Null, ...] = ("w_0", "fixed w", "mean + noise")
_null: ContextVar[Null | None] = ContextVar("null", default=None)


@contextmanager
def replace_algorithms(null: Null) -> Iterator[None]:
    """No algorithm runs in here: `null` stands for all of them."""
    token = _null.set(null)
    try:
        yield
    finally:
        _null.reset(token)


def current_null() -> Null | None:
    """What stands in for algorithms; None where they run."""
    return _null.get()


@dataclass(frozen=True)
class Draw:
    """Who takes part in a round: silos (T, most) or None for all of them, and the weight of each, (T, most)."""

    silos: NDArray[np.int64] | None
    weights: Array


class TrialFederation(Federation):
    """N silos and a server, T trials at once: a `Federation` of records of its own.

    A message is the mean over the silos that take part. Only the sum of the silos' noise is drawn, which has the same
    law as the sum of independent draws. Records are not clipped: L bounds every gradient of these problems.

    Args:
        gradients: of each record, broadcasting w (T, 1, 1, d) and records (T, silos, K, width).
        records: (T, N, n, width); an axis of length 1 is shared by all trials, by all silos, or says that all records
            of a silo are the same.
        releases: what a silo sends, by kind; `noise` is in units of `clip`. K = 0 stands for all records of the silo.
        trials, N: T and the number of silos.
        clip: L.
        stepsize: η.
        cohort: M; or the values of a random M_r, each as likely as the others.
        streams: the tree that all draws come from.
        noises: (N,), each silo's own noise multiplier, in place of the releases' where these have noise.
    """

    def __init__(
        self,
        gradients: Gradients,
        records: Array,
        releases: Sequence[Release],
        *,
        trials: int,
        N: int,
        streams: Streams,
        clip: float = 1.0,
        stepsize: float = 1.0,
        cohort: int | Sequence[int] | None = None,
        prox: Prox = no_prox,
        noises: Array | None = None,
    ):
        if records.shape[0] not in (1, trials) or records.shape[1] not in (1, N):
            raise ValueError(f"records of shape {records.shape}: must have {trials} (or 1) trials and {N} (or 1) silos")
        self.gradients_of, self.records_of, self.trials, self.silo_count = gradients, records, trials, N
        self.kinds = {release.kind: release for release in releases}
        self.releases = [self.kinds]
        self.clip, self.stepsize = torch.full((trials,), clip).double(), torch.full((trials, 1), stepsize).double()
        self.M = N if cohort is None else cohort
        self.streams, self.prox, self.noises = streams, prox, noises

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        """The mean over S_r, which `answer` makes at once."""
        return send(COHORT)

    def draw(self, round: int) -> Draw:
        """S_r of every trial, the same for all messages of the round."""
        if self.silo_count == self.M:
            return Draw(None, np.full((1, 1), 1 / self.silo_count))
        generator = self.streams.generator("silos", round)
        most = self.M if isinstance(self.M, int) else max(self.M)
        silos = generator.random((self.trials, self.silo_count)).argsort(axis=1)[:, :most]
        sizes = np.full(self.trials, most) if isinstance(self.M, int) else generator.choice(self.M, self.trials)
        weights = (np.arange(most) < sizes[:, None]) / sizes[:, None]
        return Draw(silos, weights)

    def answer(self, query: Query, silo: int) -> Tensor:
        """Mean over S_r of the silos' noisy messages, (T, d)."""
        weights, round, kind = query.weights, query.round, query.kind
        release, cohort = self.kinds[kind], self.draw(round)
        rows = self._rows(release, cohort, round)
        mean = self._mean(weights, rows, cohort)
        if query.previous is not None:
            mean = mean - self._mean(query.previous, rows, cohort)
        total = torch.from_numpy(np.broadcast_to(mean, weights.shape).copy())
        if release.noise > 0:
            base = self.streams.generator("noise", round, kind).standard_normal(tuple(weights.shape))
            scale: Any
            if self.noises is not None:
                own = self.noises[None] if cohort.silos is None else self.noises[cohort.silos]
                scale = np.sqrt(((cohort.weights * own) ** 2).sum(axis=1, keepdims=True))
            elif cohort.silos is None:
                scale = release.noise / np.sqrt(self.silo_count)
            else:
                scale = release.noise * np.sqrt((cohort.weights**2).sum(axis=1, keepdims=True))
            noise = torch.from_numpy(base * scale) * self.clip[:, None]
            total += noise if query.noise_factor is None else noise * query.noise_factor[:, None]
        return total

    def _rows(self, release: Release, cohort: Draw, round: int) -> Array:
        """The drawn records, (T or 1, silos or 1, K or 1, width)."""
        stored, n = self.records_of, self.records_of.shape[2]
        silos = cohort.silos
        if release.records == 0 or n == 1:
            if silos is None or stored.shape[1] == 1:
                return stored
            return np.take_along_axis(stored, silos[:, :, None, None], axis=1)
        trial = np.arange(self.trials)[:, None, None] if stored.shape[0] > 1 else 0
        silo: Any = 0
        if stored.shape[1] > 1:
            silo = (np.arange(self.silo_count)[None] if silos is None else silos)[:, :, None]
        count = self.silo_count if silos is None else silos.shape[1]
        if release.sampler == "disjoint":
            if (round + 1) * release.records > n:
                raise ValueError(f"round {round}: {release.records} new records a round: a silo has only {n}")
            # Records are drawn independently, so the order they are stored in is a random one.
            drawn = np.arange(round * release.records, (round + 1) * release.records)[None, None]
        else:
            generator = self.streams.generator("records", round, release.kind)
            drawn = generator.integers(0, n, (self.trials, count, release.records))
        return stored[trial, silo, drawn]

    def _mean(self, weights: Tensor, rows: Array, cohort: Draw) -> Array:
        """Mean over records, then over silos by their weights, (T, d)."""
        each = self.gradients_of(weights.numpy()[:, None, None, :], rows).mean(axis=2)
        if cohort.silos is None or each.shape[1] == 1:
            return each.mean(axis=1)
        return np.einsum("tm,tmd->td", cohort.weights, each)


def run(
    algorithm: Algorithm, federation: TrialFederation, start: Array, watch: Callable[[int, State], None] | None = None
) -> Array:
    """All rounds of `algorithm` from `start` (d,), (T, d); `watch(r, state)` runs before each and after the last."""
    null = current_null()
    state = algorithm.start(torch.from_numpy(np.tile(start.astype(float), (federation.trials, 1))))
    if null is not None:
        state = State(_nothing_done(null, algorithm.rounds, federation, state.w))
    for r in range(algorithm.rounds):
        if watch is not None:
            watch(r, state)
        if null is None:
            state = algorithm.round(r, state, federation)
    if watch is not None:
        watch(algorithm.rounds, state)
    return (state.w if null else algorithm.output(state)).numpy()


def _nothing_done(null: Null, rounds: int, federation: TrialFederation, start: Tensor) -> Tensor:
    """The models (T, d) that `null` has in place of an algorithm's."""
    if null == "w_0":
        return start
    if null == "fixed w":
        return torch.full_like(start, -1 / math.sqrt(start.shape[1]))
    drawn, N = federation.M if isinstance(federation.M, int) else np.mean(federation.M), federation.silo_count
    share = math.sqrt(N / (rounds * drawn))
    federation.M, federation.noises = N, None if federation.noises is None else federation.noises * share
    kind, release = next(iter(federation.kinds.items()))
    federation.kinds = {kind: replace(release, records=0, noise=release.noise * share)}
    return federation.prox(start - federation.answer(Query(start, 0, kind), COHORT), torch.ones(len(start), 1).double())
