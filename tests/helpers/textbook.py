"""The algorithms as a textbook has them, to hold the stack against.

One model, one silo, one record at a time, always in float64; gradients by automatic differentiation of losses that
are written out plainly. Nothing here calls a model, a kernel, a message or an algorithm of the package; only the random
draws come from the same named streams, since the noise has to be shared to compare iterates.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from silodp.streams import Streams

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def linear(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Half the squared error of ⟨w, x⟩."""
    return (torch.dot(w, x) - y) ** 2 / 2


def logistic(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Minus the log-likelihood of y under P(1) = 1/(1 + exp(−⟨w, x⟩))."""
    z = torch.dot(w, x)
    return -y * torch.nn.functional.logsigmoid(z) - (1 - y) * torch.nn.functional.logsigmoid(-z)


def softmax(classes: int) -> Loss:
    """Minus the log-probability of class y; w holds the matrix row by row, then the intercepts."""

    def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        rows, intercepts = w[: classes * len(x)].split(len(x)), w[classes * len(x) :]
        logits = [torch.dot(row, x) + intercept for row, intercept in zip(rows, intercepts, strict=True)]
        return -torch.log_softmax(torch.stack(logits), 0)[int(y)]

    return loss


def perceptron(hidden: int, classes: int) -> Loss:
    """Minus the log-probability of class y under V·relu(Wx + b) + c; w holds W, b, V, c, matrices row by row."""

    def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        first, bias, second, offset = torch.split(w, [hidden * len(x), hidden, classes * hidden, classes])
        activations = torch.relu(torch.mv(first.reshape(hidden, len(x)), x) + bias)
        logits = torch.mv(second.reshape(classes, hidden), activations) + offset
        return -torch.log_softmax(logits, 0)[int(y)]

    return loss


def absolute(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Absolute error of ⟨w, x⟩."""
    return (torch.dot(w, x) - y).abs()


def sigmoid(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Probability that a logistic model gives to the wrong class."""
    return torch.sigmoid(-torch.dot(w, x) if int(y) == 1 else torch.dot(w, x))


def hinge(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """What a margin of ±⟨w, x⟩, + for class 1, lacks to 1."""
    return torch.relu(1 - (torch.dot(w, x) if int(y) == 1 else -torch.dot(w, x)))


def l1(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Sum of absolute differences to the record."""
    return (w - x).abs().sum()


def gradient(loss: Loss, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """∇_w of one record's loss."""
    w = w.detach().requires_grad_()
    return torch.autograd.grad(loss(w, x, y), w)[0]


def clip_to(g: Tensor, clip: float) -> Tensor:
    """g·min(1, L/‖g‖)."""
    norm = float(torch.linalg.vector_norm(g))
    return g if norm <= clip else g * (clip / norm)


@dataclass
class Problem:
    """One point of the grid on one trial's federation.

    Attributes:
        loss: one record's loss.
        silos: (x, y) of each silo, float64.
        streams: where messages draw from; `participants` is where the silos of a round are drawn from.
        draw_dtype: precision of the base Gaussian draws, that of the stack.
        stepsize, clip: η and L.
        records: for each silo, kind of message → records drawn (local steps for "step").
        noise: for each silo, kind of message → standard deviation per coordinate.
        cohort: M.
        add_up: the server adds messages up in place of averaging.
        prox: proximal map (w, η) → w of the non-smooth part.
        once: kinds of message for which a silo's records are taken in one random order, none twice.
        whole: kinds of message that take all records.
        subset: kinds of message whose records are drawn without replacement.
        parts: for each silo, kind of message that takes a part of the random order -> its first record and size.
        norms: norm of every gradient before its clipping, as it is met.
    """

    loss: Loss
    silos: list[tuple[Tensor, Tensor]]
    streams: Streams
    participants: Streams
    draw_dtype: type
    stepsize: float
    clip: float
    records: list[dict[str, int]]
    noise: list[dict[str, float]]
    cohort: int
    add_up: bool = False
    prox: Callable[[Tensor, float], Tensor] = lambda w, eta: w
    once: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    subset: set[str] = field(default_factory=set)
    parts: list[dict[str, tuple[int, int]]] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)

    def clipped(self, w: Tensor, silo: int, record: int) -> Tensor:
        x, y = self.silos[silo]
        g = gradient(self.loss, w, x[record], y[record])
        self.norms.append(float(torch.linalg.vector_norm(g)))
        return clip_to(g, self.clip)

    def records_drawn(self, silo: int, r: int, kind: str) -> list[int]:
        n, k = len(self.silos[silo][0]), self.records[silo][kind]
        if kind in self.once or kind in self.parts[silo]:
            first, size = (r * k, k) if kind in self.once else self.parts[silo][kind]
            return self.streams.generator("order", silo).permutation(n).tolist()[first : first + size]
        if kind in self.whole:
            return list(range(n))
        generator = self.streams.generator("records", silo, r, kind)
        if kind in self.subset:
            return generator.choice(n, size=k, replace=False).tolist()
        return generator.integers(0, n, size=k).tolist()

    def gaussian(self, silo: int, r: int, kind: str, rows: int, d: int) -> Tensor:
        blocks = [min(64, rows - begin) for begin in range(0, rows, 64)]
        streams = [self.streams.generator("noise", silo, r, kind, block) for block in range(len(blocks))]
        draws = [s.standard_normal((size, d), dtype=self.draw_dtype) for s, size in zip(streams, blocks, strict=True)]
        return torch.from_numpy(np.concatenate(draws)).double()

    def message(self, w: Tensor, silo: int, r: int, kind: str = "gradient", previous: Tensor | None = None) -> Tensor:
        """Mean of clipped gradients (or of their differences) over the drawn records, without noise."""
        total = torch.zeros_like(w)
        for record in self.records_drawn(silo, r, kind):
            total += self.clipped(w, silo, record)
            if previous is not None:
                total -= self.clipped(previous, silo, record)
        return total / self.records[silo][kind]

    def noisy(self, w: Tensor, silo: int, r: int, kind: str = "gradient", scale: float = 1.0, **more) -> Tensor:
        z = self.gaussian(silo, r, kind, 1, len(w))[0]
        return self.message(w, silo, r, kind, **more) + scale * self.noise[silo][kind] * z

    def mixed(self, g: Tensor, silo: int, r: int, mixing: tuple[float, ...]) -> Tensor:
        """g and the noise b_0 z_t + b_1 z_{t-1} + ... over the rounds up to r in which the silo was drawn."""
        drawn = [s for s in range(r, -1, -1) if silo in self.chosen(s)]
        for b, s in zip(mixing, drawn, strict=False):
            g = g + self.noise[silo]["gradient"] * b * self.gaussian(silo, s, "gradient", 1, len(g))[0]
        return g

    def chosen(self, r: int) -> list[int]:
        n = len(self.silos)
        if self.cohort == n:
            return list(range(n))
        generator = self.participants.generator("silos", self.cohort, r)
        return generator.choice(n, size=self.cohort, replace=False).tolist()

    def server(self, r: int, send: Callable[[int], Tensor]) -> Tensor:
        messages = [send(silo) for silo in self.chosen(r)]
        return sum(messages[1:], messages[0]) / (1 if self.add_up else len(messages))

    def received(self, w: Tensor, r: int, kind: str = "gradient", **more) -> Tensor:
        """What the server makes of the noisy messages at w."""
        return self.server(r, lambda silo: self.noisy(w, silo, r, kind, **more))

    def step(self, w: Tensor, direction: Tensor) -> Tensor:
        return self.prox(w - self.stepsize * direction, self.stepsize)


def minibatch_sgd(problem: Problem, w: Tensor, rounds: int, mixing: tuple[float, ...] = (1,)) -> list[Tensor]:
    """Iterates w_1, …, w_R."""
    iterates = []
    for r in range(rounds):
        g = problem.server(r, lambda silo, w=w, r=r: problem.mixed(problem.message(w, silo, r), silo, r, mixing))
        w = problem.step(w, g)
        iterates.append(w)
    return iterates


def minibatch_sgd_momentum(problem: Problem, w: Tensor, rounds: int) -> list[Tensor]:
    """Heavy ball with beta = 0.9."""
    iterates, v = [], torch.zeros_like(w)
    for r in range(rounds):
        v = 0.9 * v + 0.1 * problem.received(w, r)
        w = problem.step(w, v)
        iterates.append(w)
    return iterates


def minibatch_sgd_adam(problem: Problem, w: Tensor, rounds: int) -> list[Tensor]:
    """PyTorch's Adam on the noisy gradients, then the proximal map."""
    leaf, iterates = w.clone().requires_grad_(), []
    optimiser = torch.optim.Adam([leaf], lr=problem.stepsize, betas=(0.9, 0.99), eps=1e-8)
    for r in range(rounds):
        leaf.grad = problem.received(leaf.detach().clone(), r)
        optimiser.step()
        with torch.no_grad():
            leaf.copy_(problem.prox(leaf, problem.stepsize))
        iterates.append(leaf.detach().clone())
    return iterates


def dp_mu2(problem: Problem, w: Tensor, rounds: int, mixing: tuple[float, ...]) -> list[Tensor]:
    """Query points x_2, x_3, ...: all w_t are kept and averaged anew."""
    steps, queries, q = [w], [w], torch.zeros_like(w)

    def correction(silo: int, t: int) -> Tensor:
        total, drawn = torch.zeros_like(w), problem.records_drawn(silo, t - 1, "gradient")
        for record in drawn:
            x, y = (part[record] for part in problem.silos[silo])
            s = t * gradient(problem.loss, queries[-1], x, y)
            if t > 1:
                s = s - (t - 1) * gradient(problem.loss, queries[-2], x, y)
            problem.norms.append(float(torch.linalg.vector_norm(s)))
            total += clip_to(s, problem.clip)
        return problem.mixed(total / len(drawn), silo, t - 1, mixing)

    for t in range(1, rounds + 1):
        q = q + problem.server(t - 1, lambda silo, t=t: correction(silo, t))
        steps.append(problem.prox(steps[-1] - problem.stepsize * q, problem.stepsize * t))
        weights = range(1, t + 2)
        queries.append(sum(a * s for a, s in zip(weights, steps, strict=True)) / sum(weights))
    return queries[1:]


def mr_mtl(problem: Problem, w: Tensor, rounds: int, pull: float) -> list[Tensor]:
    """Means of the silos' models."""
    own, iterates = [w] * len(problem.silos), []
    for r in range(rounds):
        for silo in problem.chosen(r):
            v = own[silo] - pull / (1 + pull) * (own[silo] - w)
            own[silo] = v - problem.stepsize * problem.noisy(v, silo, r)
        w = torch.stack([own[silo] for silo in problem.chosen(r)]).mean(0)
        iterates.append(w)
    return iterates


def dp_scaffold(problem: Problem, w: Tensor, rounds: int, steps: int, warm: bool) -> list[Tensor]:
    """Models after each round; controls by c_i - c + (x - y)/(K eta), as the paper has them."""
    zero, iterates = torch.zeros_like(w), []
    controls, sent = [zero] * len(problem.silos), 0
    if warm:
        for silo in problem.chosen(0):
            controls[silo] = sum(problem.noisy(w, silo, k) for k in range(steps)) / steps
        sent = steps
    c = sum(controls) / len(controls)
    for r in range(rounds):
        ends, changes = [], zero
        for silo in problem.chosen(r):
            y = w
            for k in range(steps):
                y = y - problem.stepsize * (problem.noisy(y, silo, sent + k) - controls[silo] + c)
            after = controls[silo] - c + (w - y) / (steps * problem.stepsize)
            changes, controls[silo] = changes + after - controls[silo], after
            ends.append(y)
        sent += steps
        w, c = torch.stack(ends).mean(0), c + changes / len(controls)
        iterates.append(w)
    return iterates


def localised_accelerated(problem: Problem, w: Tensor, rounds: int) -> list[Tensor]:
    """w^ag after every round; phases of 3 and 1 rounds."""
    assert rounds in (4, 5)
    iterates, r = [], 0
    lengths = (rounds - 1, 1)
    for phase, length in enumerate(lengths):
        centre = ag = seq = w
        kind, mu = f"phase_{phase + 1}", 8**phase / (4 * problem.stepsize * lengths[0] ** 2)
        if any(kind not in records for records in problem.records):
            iterates += [w] * length
            continue
        for t in range(1, length + 1):
            a, e = 2 / (t + 1), 2 / (problem.stepsize * t * (t + 1))
            md = ((1 - a) * (mu + e) * ag + a * ((1 - a) * mu + e) * seq) / (e + (1 - a * a) * mu)
            g = problem.received(md, r, kind) + mu * (md - centre)
            seq = (a * mu * md + ((1 - a) * mu + e) * seq - a * g) / (mu + e)
            far = float(torch.linalg.vector_norm(seq - centre))
            if far > 2 * problem.clip / mu:
                seq = centre + (seq - centre) * (2 * problem.clip / mu / far)
            ag = a * seq + (1 - a) * ag
            iterates.append(ag)
            r += 1
        w = ag
    return iterates


def local_sgd(problem: Problem, w: Tensor, rounds: int) -> list[Tensor]:
    """Models after each averaging."""
    iterates = []
    for r in range(rounds):
        models = []
        for silo in problem.chosen(r):
            own = w
            draws = problem.records_drawn(silo, r, "step")
            z = problem.gaussian(silo, r, "step", len(draws), len(w))
            for k, record in enumerate(draws):
                g = problem.clipped(own, silo, record) + problem.noise[silo]["step"] * z[k]
                own = own - problem.stepsize * g
            models.append(own)
        w = torch.stack(models).mean(0)
        iterates.append(w)
    return iterates


def fedprox_spider(
    problem: Problem, w: Tensor, rounds: int, q: int = 1, smoothness: float | None = None
) -> list[Tensor]:
    """Iterates w_1, …, w_R of FedProx-SPIDER with phases of q rounds."""
    iterates, before, h = [], w, torch.zeros_like(w)
    for r in range(rounds):
        if r % q == 0:
            h = problem.received(w, r)
        else:
            scale = 1.0
            if smoothness is not None:
                moved = float(torch.linalg.vector_norm(w - before))
                scale = min(1.0, smoothness * moved / (2 * problem.clip))
            h = h + problem.received(w, r, "difference", scale=scale, previous=before)
        before, w = w, problem.step(w, h)
        iterates.append(w)
    return iterates


def prox_svrg(problem: Problem, w: Tensor, rounds: int, steps: int, run: int | None = None) -> list[Tensor]:
    """Iterates w_1, …, w_R of Prox-SVRG with epochs of `steps` rounds, restarted after each `run` rounds."""
    iterates, starts, length = [], [], run or rounds
    for begin in range(0, rounds, length):
        if begin:
            # Where the last round whose coin fell began.
            coins = [problem.participants.generator("picked", begin - length + t).random() for t in range(length)]
            w = starts[begin - length + max(t for t in range(length) if coins[t] < 1 / (t + 1))]
        for epoch in range(begin, min(begin + length, rounds), steps):
            anchor = w
            full = problem.received(anchor, epoch, "anchor")
            for r in range(epoch, min(epoch + steps, begin + length, rounds)):
                correction = problem.received(w, r, "difference", previous=anchor)
                starts.append(w)
                w = problem.step(w, correction + full)
                iterates.append(w)
    return iterates


def fed_spider(problem: Problem, w: Tensor, rounds: int) -> list[Tensor]:
    """Iterates after each round of the alternate implementation; the first round leaves w where it is."""
    v = problem.received(w, 0)
    iterates = [w]
    for r in range(1, rounds):
        middle = problem.step(w, v)
        corrected = v + problem.received(middle, r, "difference", previous=w)
        w = problem.step(middle, corrected)
        v = problem.received(w, r)
        iterates.append(w)
    return iterates


def relative_error(found: Tensor, wanted: Tensor) -> float:
    """Largest deviation in units of the largest entry."""
    difference = float((found.double() - wanted.double()).abs().max())
    return difference / max(float(wanted.double().abs().max()), np.finfo(float).tiny)


def accelerated(
    problem: Problem, w: Tensor, rounds: int, mu: float = 0.0, added: float = 0.0, stages: list | None = None
) -> list[Tensor]:
    """w^ag after every round; `stages` are (rounds, υ, μ) each, by default one with υ = 1/(2η)."""
    iterates, ag = [], w
    r = 0
    for length, upsilon, mu_k in stages or [(rounds, 1 / (2 * problem.stepsize), mu)]:
        w = ag
        for t in range(1, length + 1):
            a, e = 2 / (t + 1), 4 * upsilon / (t * (t + 1))
            bottom = e + (1 - a * a) * mu_k
            md = ((1 - a) * (mu_k + e) * ag + a * ((1 - a) * mu_k + e) * w) / bottom
            g = problem.received(md, r) + added * md
            w = (a * mu_k * md + ((1 - a) * mu_k + e) * w - a * g) / (mu_k + e)
            w = problem.prox(w, a / (mu_k + e))
            ag = a * w + (1 - a) * ag
            iterates.append(ag)
            r += 1
    return iterates
