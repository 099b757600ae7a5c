"""Random check-ins (check-ins paper, Algorithms 1 and 2, Section 4.2) and the protocols they are compared with.

One-record clients send one private gradient each, in a slot that the protocol draws before training. A protocol is its
schedule (who reports in which slot) and its bound (central ε of ε0); `train` walks the slots for a stack of points.
Reports are pure (`privacy.unit_vectors`): with Gaussian ones every theorem of the paper asks for 8ε0 in place of ε0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from silodp.experiments.checkins.kernel import Walk, compiled_walk
from silodp.models.base import Model, within_reach
from silodp.models.cpu import kernels
from silodp.models.linear import Linear
from silodp.privacy.shuffling.local_reports import clones_delta, sampled_delta
from silodp.privacy.shuffling.unit_vectors import Cap, best_cap
from silodp.streams import Streams
from silodp.theory.checkins.privacy import averaged, fixed_window, shuffled, sliding_window

Slots = list[NDArray[np.int64]]
# The largest ε0 that is tried.
LARGEST = 60.0


@dataclass(frozen=True)
class Shape:
    """Options of a check-in protocol: slots as a share of the clients, and the probability of checking in at all."""

    share: float = 1.0
    p0: float = 1.0

    def slots(self, n: int) -> int:
        return max(round(self.share * n), 1)


@dataclass(frozen=True)
class CheckInProtocol:
    """How clients take part, and what that is worth.

    Attributes:
        schedule: which client reports in which slot, a name in `SCHEDULES` and of random streams.
        holds: (n, shape, ε0, ε, δ) → whether ε0-private reports make the whole (ε, δ)-private by its bound.
        bound: the source of that, and what it assumes; for figures and tables.
        dummies: an empty slot is an update of noise alone; else it is skipped.
        once: a client reports at most once, so that the whole is ε0-private in any case.
        shapes: options that are tried.
    """

    schedule: str
    holds: Callable[[int, Shape, float, float, float], bool]
    bound: str
    dummies: bool = False
    once: bool = True
    shapes: tuple[Shape, ...] = (Shape(),)

    def draw(self, n: int, shape: Shape, generator: np.random.Generator) -> Slots:
        return SCHEDULES[self.schedule](n, shape, generator)


def in_random_order(n: int, shape: Shape, generator: np.random.Generator) -> Slots:
    """Every client once, a slot each."""
    return list(generator.permutation(n)[:, None])


def sampled(n: int, shape: Shape, generator: np.random.Generator) -> Slots:
    return list(generator.integers(0, n, n)[:, None])


def fixed_check_ins(n: int, shape: Shape, generator: np.random.Generator) -> Slots:
    """A_fix (Algorithm 1): clients check in with probability p0 at one of m slots; one of a slot's clients reports."""
    return [some[:1] for some in averaging(n, shape, generator)]


def averaging(n: int, shape: Shape, generator: np.random.Generator) -> Slots:
    """A_avg (Algorithm 2): as A_fix, but all clients of a slot report; clients of a slot stand in random order."""
    order = generator.permutation(n)
    here = generator.random(n) < shape.p0
    return _grouped(order[here], generator.integers(0, shape.slots(n), n)[here], shape.slots(n))


def sliding(n: int, shape: Shape, generator: np.random.Generator) -> Slots:
    """A_sldw (Section 4.2): the j-th client picks one of the slots j … j+m−1; slots m … n are used, a client each.

    Who is the j-th client is drawn too, so that no order of the records matters.
    """
    m, order = shape.slots(n), generator.permutation(n)
    chosen = np.arange(n) + generator.integers(0, m, n)
    mixed = generator.permutation(n)
    return [some[:1] for some in _grouped(order[mixed], chosen[mixed], n + m - 1)[m - 1 : n]]


def _grouped(clients: NDArray[np.int64], slots: NDArray[np.int64], count: int) -> Slots:
    """The clients of each slot, in the order given."""
    by_slot = np.argsort(slots, kind="stable")
    return np.split(clients[by_slot], np.searchsorted(slots[by_slot], np.arange(1, count)))


# Names of random streams: a new one is a new table.
SCHEDULES = {
    "in_random_order": in_random_order,
    "sampled": sampled,
    "fixed": fixed_check_ins,
    "averaging": averaging,
    "sliding": sliding,
}


# `none` and the two shufflings draw the same schedules; their bounds differ.
PROTOCOLS: dict[str, CheckInProtocol] = {
    "none": CheckInProtocol("in_random_order", lambda n, shape, e0, e, d: e0 <= e, "local guarantee: epsilon0 itself"),
    "subsampling": CheckInProtocol(
        "sampled",
        lambda n, shape, e0, e, d: sampled_delta(e0, n, n, e) <= d,
        "secret uniform sampling of one of n clients, composed n times; all clients available",
        once=False,
    ),
    "shuffling": CheckInProtocol(
        "in_random_order",
        lambda n, shape, e0, e, d: shuffled(n=n, epsilon0=e0, delta=d).value <= e,
        "check-ins paper, Theorem 5.1; secret order, all clients available",
    ),
    "shuffling_clones": CheckInProtocol(
        "in_random_order",
        lambda n, shape, e0, e, d: clones_delta(e0, n, e, delta=d) <= d,
        "clones, numerical; secret order, all clients available",
    ),
    "a_fix": CheckInProtocol(
        "fixed",
        lambda n, shape, e0, e, d: fixed_window(p0=shape.p0, m=shape.slots(n), epsilon0=e0, delta=d).value <= e,
        "check-ins paper, Theorem 3.2; secret check-ins",
        dummies=True,
        shapes=(Shape(), Shape(0.5), Shape(0.5, 0.5)),
    ),
    "a_avg": CheckInProtocol(
        "averaging",
        lambda n, shape, e0, e, d: averaged(n=n, m=shape.slots(n), epsilon0=e0, delta=d / 2, delta2=d / 2).value <= e,
        "check-ins paper, Theorem 4.1 at delta/2 and delta2 = delta/2; secret check-ins, no collusion",
        shapes=(Shape(), Shape(0.25)),
    ),
    "a_sldw": CheckInProtocol(
        "sliding",
        lambda n, shape, e0, e, d: sliding_window(m=shape.slots(n), epsilon0=e0, delta=d).value <= e,
        "check-ins paper, Theorem 4.3; secret check-ins",
        dummies=True,
        shapes=(Shape(0.5), Shape(0.1)),
    ),
}


def local_epsilon(protocol: CheckInProtocol, n: int, shape: Shape, epsilon: float, delta: float) -> tuple[float, bool]:
    """Largest ε0 (to 1e-6 of it) whose reports make the whole (ε, δ)-private, and whether amplification gave it.

    Where the bound gives less than ε itself, a protocol in which clients report once keeps ε0 = ε. ValueError: ε or δ
    without meaning, or no clients.
    """
    if not (n >= 1 and 0 < epsilon < LARGEST and 0 < delta < 1):
        limits = f"n must be at least 1, epsilon above 0 and below {LARGEST:g}, delta strictly between 0 and 1"
        raise ValueError(f"n = {n}, epsilon = {epsilon}, delta = {delta}: {limits}")
    low, high = 0.0, LARGEST
    while high - low > 1e-6 * high and high > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if protocol.holds(n, shape, middle, epsilon, delta) else (low, middle)
    return (epsilon, False) if protocol.once and low <= epsilon else (low, True)


@dataclass(frozen=True)
class Points:
    """The points of a stack: ε0 of a report (infinite: the clipped gradient itself), and the step constant c; (G,)."""

    epsilon0: Sequence[float]
    step: Sequence[float]


def caps(epsilon0: Sequence[float], d: int) -> dict[float, Cap]:
    """The report's law for every finite ε0."""
    return {value: best_cap(value, d) for value in sorted(set(epsilon0)) if np.isfinite(value)}


def train(
    model: Model, x: Tensor, y: Tensor, slots: Slots, points: Points, clip: float, dummies: bool, streams: Streams
) -> Tensor:
    """Last parameters (G, d) of SGD over the slots, from zero.

    Slot i takes the step c/(B√i) along the mean of its reports, B the length of a report's estimate (1 without noise):
    the steps of Theorems 3.5 and 4.2, whose √(pσ² + L²) is B, with c for the diameter. A report is B·L·V, unbiased
    for the clipped gradient; what is added is therefore c·V/√i. All points share the draws of V and the schedule.

    Args:
        x, y: one record a client, (n, features) and (n,).
        slots, clip, dummies: as in `Walk`.
        streams: where the reports' noise is drawn from.
    """
    reports, d = sum(len(clients) or 1 for clients in slots), model.size
    along = _report_projections(points.epsilon0, reports, d, streams.generator("along")).to(x)
    sign = torch.from_numpy(streams.generator("sign").random(reports)).to(x)
    free = torch.from_numpy(streams.generator("across").standard_normal((reports, d))).to(x)
    free = free / free.norm(dim=1, keepdim=True)
    private = torch.tensor(np.isfinite(points.epsilon0), device=x.device)
    steps = torch.tensor(points.step, dtype=x.dtype, device=x.device)
    limit = torch.full_like(steps, clip)
    weights = torch.zeros((len(steps), d)).to(x)
    walk = Walk(x, y, slots, along, sign, free, private, steps, clip, dummies)
    link = model.link if isinstance(model, Linear) else -1
    # Along a walk a weight moves by Σ c/√i at most; a record that is not finite fails the comparison.
    moves = 2 * steps * len(slots) ** 0.5
    if link not in (kernels.IDENTITY, kernels.LOGISTIC) or x.device.type != "cpu":
        return _walk_tensors(model, weights, walk)
    near = bool(within_reach(x, y, weights, limit, d, moves).all())
    return compiled_walk(link, weights, walk) if near else _walk_tensors(model, weights, walk)


def _walk_tensors(model: Model, weights: Tensor, walk: Walk) -> Tensor:
    report, clip, free = 0, torch.full_like(walk.steps, walk.clip), walk.free
    for slot, clients in enumerate(walk.slots):
        if not len(clients) and not walk.dummies:
            continue
        total = walk.private[:, None] * free[report] if not len(clients) else torch.zeros_like(weights)
        for number, client in enumerate(clients.tolist(), start=report):
            x, y = walk.x[client : client + 1], walk.y[client : client + 1]
            vectors = model.clipped_gradient_sum(weights, x, y, clip) / clip[:, None]
            total += private_vectors(vectors, walk.projection[number], walk.sign[number], free[number], walk.private)
        report += len(clients) or 1
        pace = (slot + 1) ** 0.5 * (len(clients) or 1)
        weights = torch.addcmul(weights, walk.steps[:, None], total, value=-1 / pace)
    return weights


def _report_projections(epsilon0: Sequence[float], reports: int, d: int, generator: np.random.Generator) -> Tensor:
    """⟨V, u⟩ of every report and point, (reports, G), from one uniform draw a report; zero without noise."""
    uniform = generator.random(reports)
    known = {value: cap.projection(uniform) for value, cap in caps(epsilon0, d).items()}
    return torch.from_numpy(np.stack([known.get(value, np.zeros(reports)) for value in epsilon0], axis=1))


def private_vectors(vectors: Tensor, along: Tensor, sign: Tensor, free: Tensor, private: Tensor) -> Tensor:
    """V for every vector (G, d) of norm at most 1; the vector itself where there is no noise.

    Args:
        along: ⟨V, u⟩, (G,).
        sign: uniform in [0, 1): the vector's direction is kept where it is below (1 + ‖v‖)/2, else turned round.
        free: uniform on the sphere (d,): the direction across u, and the whole of V for a zero vector.
    """
    norms = vectors.norm(dim=1)
    inverse = 1 / norms.clamp_min(torch.finfo(vectors.dtype).tiny)
    dot = (vectors @ free) * inverse
    # V = ±⟨V,u⟩ u + √(1 − ⟨V,u⟩²) (free − dot·u)/√(1 − dot²), sorted by u and free.
    across = ((1 - along**2) / (1 - dot**2).clamp_min(1e-12)).clamp_min(0).sqrt()
    across = torch.where(norms > 0, across, 1.0) * private
    toward = (torch.where(sign < (1 + norms) / 2, along, -along) - across * dot) * inverse
    return torch.where(private, toward, 1.0)[:, None] * vectors + across[:, None] * free
