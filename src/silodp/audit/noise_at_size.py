"""Noise of messages as large as the run's own: as many coordinates, silos and local steps, in the run's precision.

The canary has a handful of coordinates and two silos, where noise that stops at coordinate 500, at silo 2 or after 64
rows of a draw looks right. Here records are zeros, so that a message is its noise and nothing else.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from scipy import fft
from scipy.special import chdtr, chdtrc, ndtr
from scipy.stats import binom

from silodp.audit.canary import CLIP
from silodp.federation.draws import NOISE_ROWS
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.models.linear import Linear
from silodp.privacy.plan import PrivacyPlan, Release

SIZES, TAILS = "wrong size of noise", "wrong share of large noise"
CENTRE, REPEATED = "noise off centre", "noise repeated"
# Standard deviations beyond which noise is counted.
_BEYOND = np.array([2.0, 3.0, 4.0])
# Draws of a kind of message: noise that never passes 4σ is found from 280,000 on, noise that never passes 3σ from 6,600
# on, at the audit's level over hundreds of tests. Messages are few where coordinates are many.
_DRAWS, _MOST_MESSAGES = 300_000, 400
_BLOCKS = 16
# Weights at which noise is asked for; the last are far beyond where training goes.
_WEIGHTS = 0.0, 1.0, 1e7
# Local steps: more than three blocks of rows of one draw.
_STEPS = 192


class Size(NamedTuple):
    """What noise is audited at: d, N and the precision of training."""

    coordinates: int = 2000
    silos: int = 4
    dtype: torch.dtype = torch.float32


# Where no run says its own.
RUN_SIZE = Size()


class Family(NamedTuple):
    """p-values (V,) of one test at V places, and what these are."""

    test: str
    where: list[str]
    p: np.ndarray


def size_tests(plan: PrivacyPlan, messages: type[Messages], streams: Streams, size: Size) -> Iterator[Family]:
    """Whether noise has its planned size, and large values their share, at each silo, coordinate and size of weights.

    `plan` is any silo's. Each test's level is exact for independent normal noise, up to the rounding of its type.
    """
    for release in plan.releases:
        if release.count and release.noise > 0:
            # Of many local steps only the sum is seen, which is normal whatever a step's law is.
            for steps in (1, _STEPS) if release.has_local_steps else (1,):
                noise = _drawn_noise(release, messages, streams.child(release.kind, steps), size, steps)
                parts = [f"silo {silo + 1}" for silo in range(noise.shape[2])]
                yield from _kind_tests(noise, release.kind if steps == 1 else f"{steps} steps", parts)
            if release.steps > 1:
                # So rows are looked at as they are drawn, a block of them after the other.
                rows = [f"rows {start + 1} to {start + NOISE_ROWS}" for start in range(0, _STEPS, NOISE_ROWS)]
                yield from _kind_tests(_drawn_rows(release, messages, streams, size), release.kind, rows)


def _drawn_rows(release: Release, messages: type[Messages], streams: Streams, size: Size) -> np.ndarray:
    """(weights, rows of a block, blocks, d) draws for local steps; no more coordinates than are needed."""
    d = min(size.coordinates, _DRAWS // (_STEPS * len(_WEIGHTS)))
    made = messages(Linear.build(d, None), [], streams.child(release.kind, "rows"))
    draws = [
        made.noise(_STEPS, torch.full((1, d), scale, dtype=size.dtype), 0, number, release.kind).numpy()
        for number, scale in enumerate(_WEIGHTS)
    ]
    return np.array(draws).reshape(len(_WEIGHTS), -1, NOISE_ROWS, d).swapaxes(1, 2)


def _drawn_noise(release: Release, messages: type[Messages], streams: Streams, size: Size, steps: int) -> np.ndarray:
    """(weights, rounds, N, d) noise of a kind of message over its planned standard deviation."""
    d, silos, dtype = size
    each = silos * len(_WEIGHTS)
    rounds = max(min(-(-_DRAWS // (d * each)), _MOST_MESSAGES // each), 1)
    if steps > 1:  # rows of a draw are many numbers
        silos, rounds = 1, 1
    record = torch.zeros(1, d, dtype=dtype).expand(steps, d), torch.zeros(steps, dtype=dtype)
    made = messages(Linear.build(d, None), [record] * silos, streams)
    in_steps = release.steps > 1
    asked = Release(
        release.kind,
        rounds * len(_WEIGHTS) * steps,
        1 if in_steps else steps,
        release.noise,
        gradients=release.gradients,
        steps=steps if in_steps else 1,
        contracted=release.contracted,
        joint=release.joint,
    )
    clip = torch.full((1,), CLIP, dtype=dtype)
    deviation = release.noise * CLIP
    noise = np.empty((len(_WEIGHTS), rounds, silos, d), dtype=np.float32)
    for place, scale in enumerate(_WEIGHTS):
        weights = torch.full((1, d), scale, dtype=dtype)
        previous = -weights if release.gradients > 1 or release.joint else None
        factors = (2.0, 1.0) if release.joint else None
        for number in range(rounds):
            query = Query(weights, place * rounds + number, release.kind, previous, factors=factors)
            for silo in range(silos):
                if release.has_local_steps:
                    # As large as the weights, so that a step is not lost in their rounding.
                    stepsize = torch.full((1,), max(scale, 1.0), dtype=dtype)
                    model = made.local_model(query, silo, asked, clip, clip * release.noise, stepsize)
                    # The sum of the steps' noise, or the noise of their mean.
                    sent = (weights / stepsize - model / stepsize) / (math.sqrt(steps) if in_steps else steps)
                else:
                    sent = made.message(query, silo, asked, clip, clip * release.noise)
                noise[place, number, silo] = (sent[0] / deviation).numpy()
    return noise


def _kind_tests(noise: np.ndarray, kind: str, parts: list[str]) -> Iterator[Family]:
    """Tests of noise (weights, rounds, parts, d) of one kind of message; `parts` are silos or blocks of rows."""
    if not np.isfinite(noise).all():
        yield Family("not finite", [kind], np.zeros(1))
        return
    large = np.abs(noise)
    d = noise.shape[-1]
    edges = np.unique(np.linspace(0, d, min(_BLOCKS, d) + 1).astype(int))
    squares, signs = noise.astype(float) ** 2, np.sign(noise)
    # (quantity, weights, parts, blocks of coordinates): squares, signs, and how many are beyond each limit.
    sums = np.array(
        [
            np.add.reduceat(values.sum(1, dtype=float), edges[:-1], axis=-1)
            for values in (squares, signs, *(large > limit for limit in _BEYOND))
        ]
    )
    sizes = np.broadcast_to(noise.shape[1] * np.diff(edges), sums.shape[1:])
    names: tuple[tuple[int | None, list[str]], ...] = (
        (None, ["all messages"]),
        (0, [f"weights of {scale:g}" for scale in _WEIGHTS]),
        (1, parts),
        (2, [f"coordinates {start + 1} to {stop}" for start, stop in pairwise(edges)]),
    )
    for axis, where in names:
        others = tuple(other for other in range(3) if other != axis)
        counted = sums.sum(tuple(other + 1 for other in others)).reshape(len(sums), -1)
        size = np.reshape(sizes.sum(others), -1)
        where = [f"{name} of {kind}" for name in where]
        yield Family(SIZES, where, _chi2(counted[0], size))
        yield Family(CENTRE, where, _counts((size + counted[1]) // 2, size, 0.5))
        for limit, count in zip(_BEYOND, counted[2:], strict=True):
            p = _counts(count, size, 2 * ndtr(-limit))
            yield Family(TAILS, [f"beyond {limit:g}σ, {name}" for name in where], p)
    where = [f"coordinate {c + 1} of {kind}" for c in range(d)]
    yield Family(SIZES, where, _chi2(squares.sum((0, 1, 2)), noise.size // d))
    yield _repeats(signs, kind)


def _chi2(total: np.ndarray, size: np.ndarray | int) -> np.ndarray:
    return np.minimum(chdtr(size, total), chdtrc(size, total)) * 2


def _counts(count: np.ndarray, size: np.ndarray | int, chance: float) -> np.ndarray:
    return np.minimum(binom.cdf(count, size, chance), binom.sf(count - 1, size, chance)) * 2


def _repeats(signs: np.ndarray, kind: str) -> Family:
    """Whether signs agree at any distance, in the order of messages: of silos, rounds, weights or coordinates.

    At one distance the products of signs are independent, as each has a sign that is in none before it.
    """
    flat, size = signs.ravel(), fft.next_fast_len(2 * signs.size, real=True)
    alike = fft.irfft(np.abs(fft.rfft(flat.astype(float), size)) ** 2, size)[: len(flat)]
    pairs = np.arange(len(flat), 0, -1)
    alike[0] = 0
    most = int(np.argmax(np.abs(alike) / np.sqrt(pairs)))
    p = _counts(np.rint(pairs[most] + alike[most]) // 2, pairs[most], 0.5) * len(pairs)
    messages, coordinates = divmod(most, signs.shape[-1])
    where = f"{messages} messages and {coordinates} coordinates of {kind} apart"
    return Family(REPEATED, [where], np.minimum(p, 1.0).reshape(1))
