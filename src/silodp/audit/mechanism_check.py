"""The mechanism check: are messages made as the plans say, in every part and not only where a canary shows?

The trainer's federation plays the algorithm with noise, and without from the same streams, so that the noise of all
that is sent, and how often it drew the canary, are known exactly. If the plans are what runs, scaled noise is standard
normal and independent of everything, and draws follow a binomial law. Each test has an exact level under that, and
Bonferroni's correction holds them together.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import fft
from scipy.special import bdtr, bdtrc, chdtr, chdtrc, ndtr
from scipy.stats import binom, kstest

from silodp.algorithms.base import Algorithm
from silodp.audit.audit_columns import AS_PLANNED
from silodp.audit.canary import SCALES, SentMessage, WatchedFederation, deviation, messages_of, occurrence
from silodp.federation.messages import Messages
from silodp.privacy.plan import PrivacyPlan, Release, whitening
from silodp.streams import Streams

# An honest mechanism is called wrong with at most this probability.
ALARM = 1e-5
# Messages that silos make in the runs that are played for draws, and as many in those for noise.
MESSAGES = 3000
SIZE, CENTRE, LARGE = "wrong size of noise", "noise off centre", "wrong share of large noise"
REPEATED, AGAIN = "noise repeated", "records drawn again"
# Draws of noise that are enough: noise that never passes 4σ is found from 280,000 on.
_ENOUGH = 300_000
# The model of the runs that are played for draws, of which messages without noise are exact.
_FEW = 4, torch.float64
# Standard deviations beyond which noise is counted; blocks of coordinates; values that the shape of a law is told by.
_BEYOND, _BLOCKS, _SHAPED = (2.0, 3.0, 4.0), 16, 50_000
# How far a move may be from a whole number of occurrences.
_WHOLE = 0.02


class Size(NamedTuple):
    """What the check takes from a run beside its plans: d and the precision of training."""

    coordinates: int = 2000
    dtype: torch.dtype = torch.float32


# Where no run says its own.
RUN_SIZE = Size()


class Fault(NamedTuple):
    """One test: its name, what it was about, and its p-value; 0 for what cannot be."""

    test: str
    where: str
    p: float


@dataclass(frozen=True)
class Mechanism:
    """The verdict on a mechanism at one point: `p` is the `worst` test's times the number of `tests`, at most 1."""

    worst: Fault
    p: float
    tests: int

    @property
    def broken(self) -> bool:
        """Whether an honest mechanism would look like this with probability below `ALARM`."""
        return self.p < ALARM

    @property
    def verdict_text(self) -> str:
        return f"{self.worst.test} ({self.worst.where})" if self.broken else AS_PLANNED


@dataclass(frozen=True)
class Transcripts:
    """What T runs sent at one point, M messages or sums each.

    Attributes:
        kinds: (M,).
        silos: (M,) whose message it is, or whose sum.
        noise: (T, M, d) noise over its planned standard deviation.
        moves: (T, M) how far it moves with the canary, in occurrences.
    """

    kinds: tuple[str, ...]
    silos: tuple[tuple[int, ...], ...]
    noise: np.ndarray
    moves: np.ndarray

    def places(self) -> dict[str, list[int]]:
        """Of each kind the messages."""
        return {kind: [m for m, of in enumerate(self.kinds) if of == kind] for kind in dict.fromkeys(self.kinds)}


def check_mechanism(
    algorithm: Algorithm,
    plans: list[list[PrivacyPlan]],
    streams: Streams,
    size: Size = RUN_SIZE,
    *,
    mechanism: type[Messages] = Messages,
    messages: int = MESSAGES,
) -> list[Mechanism]:
    """Verdict on each point: whether `mechanism` does what the plans say when the algorithm is trained on a CPU.

    All silos take part in every round; the first holds the canary.

    Args:
        plans: `plans[g][i]` is the plan of silo i at point g; all with noise and the same draws.
        mechanism: makes the messages: the trainer's, or another.
        messages: how many are enough.

    ValueError: a plan without noise, or of messages that are not audited. BrokenPlan: another message than planned.
    """
    for plan in (plan for point in plans for plan in point):
        if plan.assumption or plan.shuffled_sum is not None:
            raise ValueError(f"plan of {plan.algorithm}: rests on an assumption, or on P_vec: its noise is not audited")
        if any(not release.noise > 0 for release in plan.releases if release.count):
            raise ValueError(f"plan of {plan.algorithm}: has no noise: there is nothing to audit")
    play = functools.partial(_play, algorithm, plans, mechanism, messages)
    few = play(streams.child("draws"), *_FEW, follow=True)
    large = max(size.coordinates, 2), size.dtype
    played = [few, play(streams.child("size"), *large)]
    if any(len(silos) > 1 for silos in few[0].silos):
        # Of a round made in one pass the sum alone is seen: the messages by themselves too.
        played.append(play(streams.child("apart"), *large, apart=True))
    verdicts = []
    for point, *sent in zip(plans, *played, strict=True):
        findings = [*draw_findings(sent[0], point[0]), *(fault for of in sent for fault in noise_findings(of))]
        worst = min(findings, key=lambda finding: finding.p)
        verdicts.append(Mechanism(worst, min(1.0, worst.p * len(findings)), len(findings)))
    return verdicts


def _play(
    algorithm: Algorithm,
    plans: list[list[PrivacyPlan]],
    mechanism: type[Messages],
    messages: int,
    streams: Streams,
    d: int,
    dtype: torch.dtype,
    *,
    follow: bool = False,
    apart: bool = False,
) -> list[Transcripts]:
    """Of each point, runs until enough `messages` are made, or enough draws of noise seen; two at least.

    `follow`: also with the canary replaced, and until enough messages are made; else no message moves.
    """
    draws = math.inf if follow else _ENOUGH
    noise: list[np.ndarray] = []
    moves: list[np.ndarray] = []
    sent: list[SentMessage] = []
    # With noise, without, and without noise and canary.
    worlds: list[dict[str, bool]] = [{}, {"noisy": False}, {"noisy": False, "canary": False}]
    seen = made = 0
    while len(noise) < len(SCALES) or (made < messages and seen < draws):
        scale, run = SCALES[len(noise) % len(SCALES)], streams.child(len(noise))
        limits = messages / len(SCALES), draws / len(SCALES)
        sent, clean, *replaced = (
            WatchedFederation(plans, mechanism, run, d, dtype, scale, apart=apart, **how).play(algorithm, *limits)
            for how in worlds[: 3 if follow else 2]
        )
        plain = _contents(clean)
        noise.append(_contents(sent) - plain)
        moves.append(np.linalg.norm(plain - _contents(replaced[0] if follow else clean), axis=2))
        seen, made = seen + len(sent) * d, made + messages_of(sent)
    kinds, silos = tuple(one.kind for one in sent), tuple(one.silos for one in sent)
    played = []
    for g, point in enumerate(plans):
        unit = np.array([occurrence(point[0], kind) for kind in kinds])
        scaled = np.array([of[g] for of in noise]) / np.array([deviation(point, one) for one in sent])[:, None]
        for kind, of in set(zip(kinds, silos, strict=True)):
            members = [m for m, one in enumerate(sent) if (one.kind, one.silos) == (kind, of)]
            scaled[:, members] = _whitened(point[0][kind], scaled[:, members])
        played.append(Transcripts(kinds, silos, scaled, np.array([of[g] for of in moves]) / unit))
    return played


def _contents(sent: list[SentMessage]) -> np.ndarray:
    """(G, M, d)."""
    return np.array([one.content for one in sent]).swapaxes(0, 1)


def _whitened(release: Release, noise: np.ndarray) -> np.ndarray:
    """Noise (T, M, d) of a silo's messages times C, so that mixed noise is independent again."""
    if not release.mixing:
        return noise
    column, number = np.array(whitening(release.mixing, release.count)), range(noise.shape[1])
    return np.stack([np.tensordot(noise[:, : m + 1], column[m::-1], axes=(1, 0)) for m in number], axis=1)


def noise_findings(sent: Transcripts) -> Iterator[Fault]:
    """Tests of the noise: size, centre, large values and law, and independence of all that is drawn beside it."""
    if not np.isfinite(sent.noise).all():
        yield Fault("not finite", "a message", 0.0)
        return
    for kind, members in sent.places().items():
        silos = [sent.silos[m] for m in members]
        groups = list(_groups(silos, sent.moves[:, members]))
        names = [f"message {m + 1}" for m in members]
        noise = sent.noise[:, members]
        large = np.abs(noise)
        yield from _count_findings(SIZE, kind, "", noise**2, None, groups, names)
        yield from _count_findings(CENTRE, kind, "", noise > 0, 0.5, groups, names)
        for limit in _BEYOND:
            chance = 2 * ndtr(-limit)
            yield from _count_findings(LARGE, kind, f"beyond {limit:g}σ, ", large > limit, chance, groups, names)
    yield _repeated(np.sign(sent.noise))
    law = kstest(sent.noise.ravel()[:: -(-sent.noise.size // _SHAPED)], "norm")
    yield Fault("noise not normal", "all messages", float(law.pvalue))


def _groups(silos: list[tuple[int, ...]], moves: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Names and members (T, M) of what a fault may be in: a size of weights, a silo, messages with the canary."""
    runs, everyone = np.arange(len(moves)), np.ones(moves.shape, dtype=bool)
    for place, scale in enumerate(SCALES):
        yield f"weights of {scale:g}", everyone & (runs % len(SCALES) == place)[:, None]
    for of in dict.fromkeys(silos):
        here = everyone & np.array([other == of for other in silos])
        yield f"silo {of[0] + 1}" if len(of) == 1 else f"sum of {len(of)} silos", here
        if 0 in of:
            yield "canary drawn", here & (moves > 0.5)
            yield "canary not drawn", here & (moves <= 0.5)


def _count_findings(
    test: str,
    kind: str,
    what: str,
    values: np.ndarray,
    chance: float | None,
    groups: list[tuple[str, np.ndarray]],
    messages: list[str],
) -> Iterator[Fault]:
    """Tests of counts of `values` (T, M, d), each true with this chance; of sums of squares where that is None.

    Of all values, by group, by message, by block of coordinates and by coordinate.
    """
    T, M, d = values.shape
    by_message, by_coordinate = values.sum(2), values.sum((0, 1))
    edges = np.linspace(0, d, min(_BLOCKS, d) + 1).astype(int)
    blocks = [f"coordinates {start + 1} to {stop}" for start, stop in pairwise(edges)]
    coordinates = [f"coordinate {c + 1}" for c in range(d)]
    families = (
        (["all messages"], [by_coordinate.sum()], [values.size]),
        ([name for name, _ in groups], *zip(*((by_message[of].sum(), of.sum() * d) for _, of in groups), strict=True)),
        (messages, by_message.sum(0), [T * d] * M),
        (blocks, np.add.reduceat(by_coordinate, edges[:-1]), np.diff(edges) * T * M),
        (coordinates, by_coordinate, [T * M] * d),
    )
    for names, counted, sizes in families:
        p = _chi2(np.array(counted), np.array(sizes)) if chance is None else _counts(counted, sizes, chance)
        worst = int(np.argmin(p))
        yield Fault(test, f"{what}{names[worst]} of {kind}", min(1.0, float(p[worst]) * len(p)))


def _chi2(total: np.ndarray, size: np.ndarray) -> np.ndarray:
    """p-values of sums of `size` squares of standard normals."""
    return np.where(size > 0, np.minimum(chdtr(size, total), chdtrc(size, total)) * 2, 1.0)


def _counts(count: Any, size: Any, chance: float) -> np.ndarray:
    """p-values, at most 1, of counts out of `size`; 0 of a count above it."""
    count, size = np.asarray(count), np.asarray(size)
    below, above = bdtr(np.minimum(count, size), size, chance), bdtrc(np.minimum(count - 1, size), size, chance)
    return np.minimum(1.0, np.minimum(below, above) * 2)


def _repeated(signs: np.ndarray) -> Fault:
    """Whether signs (T, M, d) agree at any distance: of coordinates, silos, rounds, kinds of message, or runs.

    At one distance the products of signs are independent, as each has a sign that is in none before it.
    """
    flat, size = signs.ravel(), fft.next_fast_len(2 * signs.size, real=True)
    alike = fft.irfft(np.abs(fft.rfft(flat, size)) ** 2, size)[: len(flat)]
    pairs = np.arange(len(flat), 0, -1)
    alike[0] = 0
    most = int(np.argmax(np.abs(alike) / np.sqrt(pairs)))
    p = float(_counts(np.rint(pairs[most] + alike[most]) // 2, pairs[most], 0.5)) * len(pairs)
    messages, coordinates = divmod(most, signs.shape[-1])
    runs, messages = divmod(messages, signs.shape[1])
    return Fault(REPEATED, f"{runs} runs, {messages} messages and {coordinates} coordinates apart", min(p, 1.0))


def draw_findings(sent: Transcripts, plan: PrivacyPlan) -> Iterator[Fault]:
    """Tests of the first silo's records: how far messages move with the canary, and how often they draw it."""
    own = [m for m, silos in enumerate(sent.silos) if 0 in silos]
    kinds, moves = [sent.kinds[m] for m in own], sent.moves[:, own]
    if any(plan[kind].clipping == "batch_mean" for kind in kinds):
        return  # such a message moves by no number of occurrences
    if not np.isfinite(moves).all():
        yield Fault("not finite", "a message without noise", 0.0)
        return
    times, n = np.rint(moves), plan.budget.n
    off = np.abs(moves - times) > _WHOLE * np.maximum(times, 1)
    yield Fault("moves by no whole number of occurrences", "without noise", 0.0 if off.any() else 1.0)
    even = len(times) // 2 * 2
    places = {kind: [m for m, of in enumerate(kinds) if of == kind] for kind in dict.fromkeys(kinds)}
    for kind, members in places.items():
        release, counts = plan[kind], times[:, members]
        if release.sampler in ("disjoint", "all"):
            # Of a part, all messages or none; of disjoint batches, one at most.
            once = counts.sum(1) <= 1 if release.sampler == "disjoint" else (counts == 1).all(1)
            absent = (counts == 0).all(1) if release.part is not None else False
            yield Fault("record not drawn once", kind, 1.0 if (once | absent).all() else 0.0)
            continue
        # Of a subset a record at most, with probability K/n; else each of K draws by itself.
        trials, chance = (1, release.records / n) if release.sampler == "subset" else (release.records_drawn, 1 / n)
        drawn = float(_counts(counts.sum(), counts.size * trials, chance))
        yield Fault("record drawn too often or too seldom", kind, drawn)
        yield _repeat_fault(f"{kind} of successive runs", counts[0:even:2], counts[1:even:2], release, release, n)
        rounds = len(members) // 2 * 2
        first, second = counts[:, 0:rounds:2], counts[:, 1:rounds:2]
        yield _repeat_fault(f"{kind} of successive rounds", first, second, release, release, n)
    turns = list(pairwise(kinds))
    for one, other in dict.fromkeys(turn for turn in turns if turn[0] != turn[1]):
        first = np.array([m for m, turn in enumerate(turns) if turn == (one, other)])
        if {plan[one].sampler, plan[other].sampler} <= {"replacement", "subset"}:
            where = f"{one} and the {other} behind it"
            yield _repeat_fault(where, times[:, first], times[:, first + 1], plan[one], plan[other], n)


def _repeat_fault(where: str, first: np.ndarray, second: np.ndarray, release: Release, other: Release, n: int) -> Fault:
    """Whether two messages draw the canary equally often more or less often than independent draws do."""
    differ = 1 - float((_law(release, n) * _law(other, n)).sum())
    return Fault(AGAIN, where, float(_counts((first != second).sum(), first.size, differ)))


def _law(release: Release, n: int) -> np.ndarray:
    """Probabilities that a message draws a record 0, 1, … times; cut where nothing is left."""
    trials, chance = (1, release.records / n) if release.sampler == "subset" else (release.records_drawn, 1 / n)
    # Beyond four times its mean of 15 or more lies less than 10⁻¹⁶.
    return binom.pmf(np.arange(max(61, 4 * trials // n)), trials, chance)
