"""FedProx-SPIDER on the smooth non-convex problem, with the parameters of Theorem 3.1's proof and full batches."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from silodp.algorithms.base import State
from silodp.federation.prox import no_prox, soft_threshold
from silodp.privacy.plan import Release
from silodp.theory.problems.known import SmoothNonconvex
from silodp.verdicts.checks.base import Array, Context
from silodp.verdicts.checks.prescribed_runs import algorithm_for, run_on

# Distinct records; a silo of n records holds each of them n over this many times.
DISTINCT = 8
# Each coordinate of w_0.
START = 1.5


@dataclass(frozen=True)
class SpiderPoint:
    """R, q, σ1, σ̂2 of Theorem F.1, M = N, and the `bound` of (45), 20Δ/(ηR) + 12τ1² at η = 1/(2β)."""

    R: int
    q: int
    sigma1: float
    sigma2_hat: float
    bound: float


def spider_point(
    context: Context, problem: SmoothNonconvex, *, l1: float = 0.0, reading: str = "right", **sizes: Any
) -> SpiderPoint:
    """The R with the smallest bound, among powers of 1.02, with the longest phase that the proof allows at that R.

    `sizes`: n, M, epsilon, delta. Δ counts f¹ = l1·‖w‖₁ from where the runs start.
    """
    constants, points = problem.constants, []
    Delta = problem.scale + l1 * START * problem.d
    common = sizes | {"d": problem.d, "L": constants.L, "beta": constants.beta, "Delta": Delta, "reading": reading}
    for R in sorted({round(1.02**power) for power in range(530)}):
        point = common | {"R": R}
        phase = context.evaluate("nonconvex-3.1-phase", **point).value
        if phase < 1:
            break
        q = min(int(phase), R)
        noise = context.evaluate("nonconvex-3.1-noise", **point, q=q)
        sigma1, sigma2_hat = math.sqrt(noise.value), math.sqrt(noise.terms["sigma2_hat_squared"])
        bound = context.evaluate("nonconvex-3.1-claim", **point, sigma=sigma1).value
        points.append(SpiderPoint(R, q, sigma1, sigma2_hat, bound))
    return min(points, key=lambda point: point.bound)


def spider_gradients(
    context: Context, problem: SmoothNonconvex, point: SpiderPoint, M: int, trials: int, l1: float = 0.0
) -> Array:
    """Mean over w_0 … w_{R−1} of ‖∇F̂(w_r)‖² in each trial, (trials,), from a far start.

    That is the expectation over the paper's randomly chosen iterate. With f¹ = l1·‖w‖₁ it is the squared gradient
    mapping ‖(w − prox(w − η∇F̂⁰(w)))/η‖², η = 1/(2β).
    """
    constants = problem.constants
    assert constants.beta is not None
    # The data is the problem's: fixed, and the same in all silos.
    records = problem.draw(DISTINCT, context.streams.generator("data"))[None, None]
    fresh = -(-point.R // point.q)
    releases = [
        Release("gradient", fresh, 0, point.sigma1 / constants.L),
        Release("difference", point.R - fresh, 0, point.sigma2_hat / constants.L),
    ]
    algorithm = algorithm_for("fedprox_spider", point.R, phase_length=point.q, smoothness=constants.beta)
    total, step, prox = np.zeros(trials), 1 / (2 * constants.beta), soft_threshold(l1) if l1 else no_prox

    def watch(r: int, state: State) -> None:
        if r < point.R:
            w = state.w.numpy()
            gradients = problem.gradients(w[:, None], records[0]).mean(axis=1)
            if l1:
                moved = torch.from_numpy(w - step * gradients)
                gradients = (w - prox(moved, torch.tensor(step)).numpy()) / step
            total[:] += (gradients**2).sum(axis=1)

    options: dict[str, Any] = {"releases": releases, "stepsize": step, "prox": prox, "watch": watch}
    # From the flat part of the loss, where it is not convex.
    run_on(problem, records, algorithm, context.streams, trials=trials, N=M, start=START, **options)
    return total / point.R
