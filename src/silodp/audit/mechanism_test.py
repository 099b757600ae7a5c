"""Mechanism test: are messages made as the plan says, in every part and not only where a canary shows?

A bound on ε sees a fault only where it shows the canary better than the noise hides it; noise that is missing on half
of the coordinates, or the same in every round, may not. Here each run is played again without noise from the same
streams, so that the noise of every message and how often it drew the canary are known exactly. If the plan is what
runs, scaled noise is standard normal and independent of everything, and draws follow a binomial law. Every test below
has an exact level under that, and Bonferroni's correction holds them together.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import binom, chi2, kstest
from torch import Tensor

from silodp.algorithms.base import Algorithm
from silodp.audit.canary import CANARIES, CLIP, Canary, SeenMessage, Server, canary_for, check_noise, whitened
from silodp.audit.columns import AS_PLANNED
from silodp.audit.noise_at_size import CENTRE, REPEATED, Size, size_tests
from silodp.audit.noise_at_size import SIZES as SIZE
from silodp.audit.profile import ALARM
from silodp.audit.stacked_runs import stacked
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.privacy.plan import PrivacyPlan, Release

RUNS = 300
# Names of tests of which there are several.
FOLLOWS, AGAIN = "noise follows records", "records drawn again"
# How far a move may be from a whole number of occurrences; the canary's own pulls are exact to 0.4 %.
_WHOLE = 0.02
# Messages of a run whose noise is compared pair by pair, and values that the shape of a law is told by.
_PAIRED = 200
_SHAPED = 50_000
# Values of a record, and factors of a query, whose squares or products leave the range of their type.
_HOSTILE = {
    torch.float64: (1e160, 1e308, 1e-310, math.inf, -math.inf, math.nan),
    torch.float32: (1e20, 3e38, 1e-40, math.inf, -math.inf, math.nan),
}


class MechanismFault(NamedTuple):
    """One test: its name, what it was about, and its p-value; 0 for what cannot be."""

    test: str
    where: str
    p: float


@dataclass(frozen=True)
class Mechanism:
    """The verdict on a mechanism at one point: `p` is the `worst` test's times the number of `tests`, at most 1."""

    worst: MechanismFault
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
    """What T runs of S silos sent, M messages each, at one point.

    Attributes:
        kinds: (M,) of the messages.
        noise: (T, S, M, d) noise over its planned standard deviation.
        moves: (T, M) how far the first silo's messages move with the canary, in occurrences that the plan allows for.
    """

    kinds: tuple[str, ...]
    noise: np.ndarray
    moves: np.ndarray

    def places(self) -> dict[str, list[int]]:
        return {kind: [m for m, of in enumerate(self.kinds) if of == kind] for kind in dict.fromkeys(self.kinds)}


def mechanism_test(
    algorithm: Algorithm,
    plans: list[PrivacyPlan],
    streams: Streams,
    *,
    runs: int = RUNS,
    messages: type[Messages] = Messages,
    together: bool = False,
    size: Size | None = None,
) -> list[Mechanism]:
    """Verdict on each point: whether `messages` does what the algorithm's plan says.

    Two silos play the algorithm's rounds; the first holds a canary. Other arguments as in `lower_bound.audit`.
    `together`: play all runs in the stack, which is faster but does not show what is alike in every run. `size`: of the
    run whose noise is tested, once for all points, which share its code; None for the canary's messages alone.
    """
    check_noise(algorithm, plans)
    at_size = None
    if size is not None:
        families = size_tests(plans[0], messages, streams.child("size"), size)
        at_size = _verdict([_worst_fault(*family) for family in families])
    hostile = hostile_findings(plans[0], messages)  # type: ignore[arg-type]  # a class is hashable
    verdicts = []
    for plan, sent in zip(plans, _play_messages(algorithm, plans, streams, runs, messages, together), strict=True):
        found = _verdict([*hostile, *noise_findings(sent), *draw_findings(sent, plan)])
        # Each of the two families of tests has its own level.
        verdicts.append(at_size if at_size is not None and at_size.broken and not found.broken else found)
    return verdicts


def _verdict(findings: list[MechanismFault]) -> Mechanism:
    worst = min(findings, key=lambda finding: finding.p)
    return Mechanism(worst, min(1.0, worst.p * len(findings)), len(findings))


def _play_messages(
    algorithm: Algorithm,
    plans: list[PrivacyPlan],
    streams: Streams,
    runs: int,
    messages: type[Messages],
    together: bool,
) -> Iterator[Transcripts]:
    canary, size = canary_for(plans[0]), runs if together else 1
    make = stacked(messages, runs) if together else messages
    noisy = Server(canary, 0, plans, make, runs=size, others=1)
    clean = Server(canary, 0, plans, make, runs=size, others=1, noisy=False)
    # Of the replaced record only the first silo's messages matter.
    replaced = Server(canary, 1, plans, make, runs=size, noisy=False)
    noise, moves = [], []
    kinds: tuple[str, ...] = ()
    for run in range(runs // size):
        sent, without, other = (server.play(algorithm, streams.child(run)) for server in (noisy, clean, replaced))
        if not sent:  # disjoint batches left the canary out
            continue
        kinds = tuple(message.kind for message in sent if message.silo == 0)
        plain = _by_silo(without, size)
        noise.append(_by_silo(sent, size) - plain)
        moves.append(np.linalg.norm(plain[:, 0] - _by_silo(other, size)[:, 0], axis=3))
    for g, plan in enumerate(plans):
        scale = np.array([plan[kind].noise * CLIP * math.sqrt(plan[kind].steps) for kind in kinds])
        unit = np.array([plan[kind].sensitivity * CLIP for kind in kinds])
        scaled = np.concatenate(noise)[:, :, :, g] / scale[:, None]
        played = Transcripts(kinds, scaled, np.concatenate(moves)[:, :, g] / unit)
        for kind, members in played.places().items():
            scaled[:, :, members] = np.moveaxis(whitened(plan[kind], np.moveaxis(scaled[:, :, members], 2, 0)), 0, 2)
        yield played


def _by_silo(transcript: list[SeenMessage], runs: int) -> np.ndarray:
    """(runs, S, M, G, d) of what a server has seen."""
    silos = sorted({message.silo for message in transcript})
    sent = np.array([[message.content.numpy() for message in transcript if message.silo == silo] for silo in silos])
    return sent.reshape(*sent.shape[:2], runs, -1, sent.shape[-1]).transpose(2, 0, 1, 3, 4)


def noise_findings(sent: Transcripts) -> Iterator[MechanismFault]:
    """Tests of the noise: its size, its law, and its independence of coordinates, messages, silos, runs and records."""
    z = sent.noise
    T, S, M, d = z.shape
    if not np.isfinite(z).all():
        yield MechanismFault("not finite", "a message", 0.0)
        return
    square, positive = z**2, z > 0
    names = [f"coordinate {c + 1}" for c in range(d)]
    for kind, members in sent.places().items():
        size, where = T * S * len(members), [f"{name} of {kind}" for name in names]
        yield _worst_fault(SIZE, where, _chi2(square[:, :, members].sum((0, 1, 2)), size))
        yield _worst_fault(CENTRE, where, _half(positive[:, :, members].sum((0, 1, 2)), size))
    where = [f"message {m + 1}, {kind}" for m, kind in enumerate(sent.kinds)]
    yield _worst_fault(SIZE, where, _chi2(square.sum((0, 1, 3)), T * S * d))
    yield _worst_fault(SIZE, [f"silo {s + 1}" for s in range(S)], _chi2(square.sum((0, 2, 3)), T * M * d))
    sign = np.where(positive, 1, -1).astype(np.float32)
    yield from _pairs(sign.transpose(3, 0, 1, 2), "coordinates")
    yield from _pairs(sign[:, :, :_PAIRED].transpose(2, 0, 1, 3), "messages")
    yield from _pairs(sign.transpose(1, 0, 2, 3), "silos")
    first, second = _halves(sign)
    yield _worst_fault(REPEATED, ["successive runs"], _half((first == second).sum(), first.size))
    drawn = sent.moves > 0.5
    for name, rows in (("drawn", drawn), ("not drawn", ~drawn)):
        count = int(rows.sum())
        if count:
            where = [f"coordinate {c + 1}, canary {name}" for c in range(d)]
            yield _worst_fault(FOLLOWS, where, _half(positive[:, 0][rows].sum(0), count))
            yield _worst_fault(FOLLOWS, [f"size, canary {name}"], _chi2(square[:, 0][rows].sum(), count * d))
    yield MechanismFault("noise not normal", "all coordinates", float(kstest(z.ravel()[:_SHAPED], "norm").pvalue))


def draw_findings(sent: Transcripts, plan: PrivacyPlan) -> Iterator[MechanismFault]:
    """Tests of the records: how far messages move with the canary, and how often they draw it."""
    releases, n = [plan[kind] for kind in sent.kinds], plan.budget.n
    if any(release.clipping != "record" for release in releases):
        return  # such a message moves by no number of occurrences
    if not np.isfinite(sent.moves).all():
        yield MechanismFault("not finite", "a message without noise", 0.0)
        return
    times = np.rint(sent.moves)
    off = np.abs(sent.moves - times) > _WHOLE * np.maximum(times, 1)
    yield MechanismFault("moves by no whole number of occurrences", "without noise", 0.0 if off.any() else 1.0)
    first, second = _halves(times)
    for kind, members in sent.places().items():
        release, counts = plan[kind], times[:, members]
        if release.sampler in ("disjoint", "all"):
            # Of a part, all messages or none; of disjoint batches, one of those that were played.
            once = counts.sum(1) == 1 if release.sampler == "disjoint" else (counts == 1).all(1)
            absent = (counts == 0).all(1) if release.part is not None else False
            yield MechanismFault("record not drawn once", kind, 1.0 if (once | absent).all() else 0.0)
            continue
        once = release.sampler == "subset"  # a record at most, with probability K/n; else each of K draws by itself
        drawn = (
            binom(counts.size, release.records_drawn / n) if once else binom(counts.size * release.records_drawn, 1 / n)
        )
        yield MechanismFault("record drawn too often or too seldom", kind, float(_both_sides(counts.sum(), drawn)))
        law = _law(release, n)
        yield _test_repeated_draws(f"{kind} of successive runs", first[:, members], second[:, members], law, law)
    # Of one kind in successive rounds, and of two kinds in one.
    chains = [*sent.places().values(), list(range(len(releases)))]
    for one, other in sorted({pair for chain in chains for pair in zip(chain[::2], chain[1::2], strict=False)}):
        if releases[one].mixing or releases[one].part is not None:
            continue  # such messages have the record in turn
        laws = _law(releases[one], n), _law(releases[other], n)
        yield _test_repeated_draws(f"messages {one + 1} and {other + 1}", times[:, one], times[:, other], *laws)


def _test_repeated_draws(
    where: str, first: np.ndarray, second: np.ndarray, law: np.ndarray, other: np.ndarray
) -> MechanismFault:
    """Whether two messages draw the canary equally often more or less often than independent draws do."""
    differ = binom(first.size, 1 - float((law * other).sum()))
    return MechanismFault(AGAIN, where, float(_both_sides((first != second).sum(), differ)))


@functools.lru_cache
def hostile_findings(plan: PrivacyPlan, messages: type[Messages]) -> tuple[MechanismFault, ...]:
    """Whether a record of whatever values moves a message that draws it once by more than the plan's sensitivity."""
    sent = [release for release in plan.releases if release.count and release.clipping == "record"]
    return tuple(
        _reach(canary(1), release, messages, dtype, values)
        for release in sent
        # Steps that cannot expand distances are those of linear models.
        for canary in CANARIES[: 1 if release.contracted else None]
        for dtype, values in _HOSTILE.items()
    )


def _reach(
    canary: Canary, release: Release, messages: type[Messages], dtype: torch.dtype, values: tuple[float, ...]
) -> MechanismFault:
    bound = 2 * release.gradients * CLIP * (1 + 1e-4)
    silos = [(x.to(dtype), y.to(dtype) if y.is_floating_point() else y) for x, y in canary.silos]
    x, y = silos[0]
    silos += [(torch.full_like(x, value), y) for value in values]
    silos += [(torch.cat([torch.full_like(x[:, :1], value), x[:, 1:]], dim=1), y) for value in values]
    where = f"{release.kind} of a {str(dtype).removeprefix('torch.')} record"
    largest = torch.finfo(dtype).max / 100
    for factor in (1.0, *values[:3]):
        weights = (canary.weights * factor).clamp(-largest, largest).to(dtype)
        sent = [_lone_record_message(canary, release, messages, weights, silo) for silo in silos]
        if not all(bool(torch.isfinite(message).all()) for message in sent):
            return MechanismFault("not finite", where, 0.0)
        if max(float((message - plain).norm()) for message in sent for plain in sent[:2]) > bound:
            return MechanismFault("moves beyond its sensitivity", where, 0.0)
    return MechanismFault("moves beyond its sensitivity", where, 1.0)


def _lone_record_message(
    canary: Canary, release: Release, messages: type[Messages], weights: Tensor, silo: tuple[Tensor, Tensor]
) -> Tensor:
    """(d,) what a silo of one record sends without noise if it draws that record once."""
    made = messages(canary.model, [silo], Streams(0))
    clip = torch.full((1,), CLIP, dtype=weights.dtype)
    query, single = weights[None], Release(release.kind, 1, 1, 0.0, contracted=release.contracted)
    if release.has_local_steps:
        # As large as the weights, so that the step is not lost in their rounding.
        stepsize = query.abs().amax(1)
        there = made.local_model(Query(query, 0, release.kind), 0, single, clip, clip * 0, stepsize)
        return (query / stepsize - there / stepsize)[0].double()
    previous = -query if release.gradients > 1 or release.joint else None
    factors = (2.0, 1.0) if release.joint else None
    return made.message(Query(query, 0, release.kind, previous, factors=factors), 0, single, clip, clip * 0)[0].double()


def _law(release: Release, n: int) -> np.ndarray:
    """(K + 1,) probabilities that a message draws a record 0, 1, … times; cut where nothing is left."""
    if release.sampler in ("disjoint", "all"):
        law = np.array([0.0, 1.0])
    elif release.sampler == "subset":
        law = np.array([1 - release.records_drawn / n, release.records_drawn / n])
    else:
        law = binom.pmf(np.arange(min(release.records_drawn, 60) + 1), release.records_drawn, 1 / n)
    return np.pad(law, (0, 61 - len(law)))


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs 1, 3, … and runs 2, 4, … of values (T, …)."""
    even = len(values) // 2 * 2
    return values[0:even:2], values[1:even:2]


def _pairs(signs: np.ndarray, what: str) -> Iterator[MechanismFault]:
    """Whether signs (V, …) of two different v agree more or less often than by chance."""
    flat = signs.reshape(len(signs), -1)
    first, second = np.triu_indices(len(signs), 1)
    if len(first):
        agree = np.rint((flat.shape[1] + (flat @ flat.T)[first, second]) / 2)
        where = [f"{what} {i + 1} and {j + 1}" for i, j in zip(first, second, strict=True)]
        yield _worst_fault(REPEATED, where, _half(agree, flat.shape[1]))


def _worst_fault(test: str, where: list[str], p: np.ndarray) -> MechanismFault:
    """The smallest of a family's p-values, corrected for their number."""
    values = np.atleast_1d(p)
    return MechanismFault(test, where[int(np.argmin(values))], min(1.0, float(values.min()) * len(values)))


def _chi2(total: np.ndarray, size: int) -> np.ndarray:
    """p-values of sums of `size` squares of standard normals."""
    return _both_sides(total, _law_of(chi2, size), discrete=False)


def _half(count: np.ndarray, size: int) -> np.ndarray:
    """p-values of counts of what has probability ½."""
    return _both_sides(count, _law_of(binom, size, 0.5))


@functools.lru_cache
def _law_of(family: Any, *parameters: float) -> Any:
    """A frozen law, which takes SciPy milliseconds to make."""
    return family(*parameters)


def _both_sides(value: np.ndarray, law: Any, discrete: bool = True) -> np.ndarray:
    return np.minimum(1.0, 2 * np.minimum(law.cdf(value), law.sf(value - 1 if discrete else value)))
