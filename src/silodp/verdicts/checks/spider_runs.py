"""FedProx-SPIDER on the smooth non-convex problem, with the parameters of Theorem 3.1's proof and full batches."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import State
from silodp.federation.prox import no_prox, soft_threshold
from silodp.privacy.plan import Release
from silodp.theory.problems.known import SmoothNonconvex
from silodp.verdicts.checks.base import Context
from silodp.verdicts.checks.stack import TrialFederation, run

Array = NDArray[np.float64]
# Distinct records; a silo of n records holds each of them n over this many times.
DISTINCT = 8
# Each coordinate of w_0.
START = 1.5


@dataclass(frozen=True)
class SpiderPoint:
    """R, q, noises and bound of Theorem F.1 at one point, M = N.

    Attributes:
        sigma1, sigma2_hat: σ1 and σ̂2, the noise of fresh gradients and the cap on that of differences.
        bound: 20Δ/(ηR) + 12τ1² at η = 1/(2β), the right side of (45).
        printed: 16(Δ/(ηR) + τ1²), as printed.
    """

    R: int
    q: int
    sigma1: float
    sigma2_hat: float
    bound: float
    printed: float


def spider_point(
    context: Context, problem: SmoothNonconvex, *, n: int, M: int, epsilon: float, delta: float, l1: float = 0.0
) -> SpiderPoint:
    """The R with the smallest bound, among powers of 1.02, with the longest phase that the proof allows at that R.

    Δ counts f¹ = l1·‖w‖₁ from where the runs start.
    """
    constants, theorems, found = problem.constants, context.theorems, []
    assert constants.beta is not None
    common = {"n": n, "epsilon": epsilon, "delta": delta}
    for R in sorted({round(1.02**power) for power in range(530)}):
        phase = theorems["nonconvex-3.1-phase"](d=problem.d, M=M, R=R, **common).value
        if phase < 1:
            break
        q = min(int(phase), R)
        noise = theorems["nonconvex-3.1-noise"](R=R, q=q, L=constants.L, beta=constants.beta, **common)
        Delta = problem.scale + l1 * START * problem.d
        claim = {"d": problem.d, "M": M, "R": R, "Delta": Delta, "beta": constants.beta}
        bound, printed = (
            theorems["nonconvex-3.1-claim"](**claim, sigma=math.sqrt(noise.value), reading=reading).value
            for reading in ("right", "printed")
        )
        sigma2_hat = math.sqrt(noise.terms["sigma2_hat_squared"])
        found.append(SpiderPoint(R, q, math.sqrt(noise.value), sigma2_hat, bound, printed))
    return min(found, key=lambda point: point.bound)


def spider_gradients(
    context: Context, problem: SmoothNonconvex, point: SpiderPoint, M: int, trials: int, l1: float = 0.0
) -> Array:
    """Mean over w_0 … w_{R−1} of ‖∇F̂(w_r)‖² in each trial, (trials,), from a far start.

    With f¹ = l1·‖w‖₁ it is the squared gradient mapping ‖(w − prox(w − η∇F̂⁰(w)))/η‖², η = 1/(2β).

    That is the expectation over the paper's randomly chosen iterate.
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
    federation = TrialFederation(
        problem.gradients, records, releases, trials=trials, N=M, streams=context.streams, clip=constants.L,
        stepsize=1 / (2 * constants.beta), prox=soft_threshold(l1) if l1 else no_prox,
    )  # fmt: skip
    spider = ALGORITHMS["fedprox_spider"](  # type: ignore[call-arg]
        point.R, phase_length=point.q, smoothness=constants.beta
    )
    total, step = np.zeros(trials), 1 / (2 * constants.beta)

    def watch(r: int, state: State) -> None:
        if r < point.R:
            w = state.w.numpy()
            gradients = problem.gradients(w[:, None], records[0]).mean(axis=1)
            if l1:
                moved = torch.from_numpy(w - step * gradients)
                gradients = (w - soft_threshold(l1)(moved, torch.tensor(step)).numpy()) / step
            total[:] += (gradients**2).sum(axis=1)

    # In the flat part of the loss, where it is not convex.
    run(spider, federation, np.full(problem.d, START), watch)
    return total / point.R
