"""Every theorem against its formula written a second time, from the papers, at its example and at random points."""

import random
import re
from math import e, exp, expm1, log, log1p, sqrt
from types import SimpleNamespace

import pytest

from silodp.theory import THEOREMS, AssumptionError


def points(key, reading="right", count=5):
    """The worked example, then random points inside the assumptions, without a parameter at a round number."""
    theorem, generator = THEOREMS[key], random.Random(key + reading)
    found = [dict(theorem.example)]
    for attempt in range(3000):
        point = {}
        for name, symbol in theorem.parameters.items():
            if symbol.choices:
                continue
            value = theorem.example.get(name, symbol.typical) or generator.random()
            value *= 10 ** generator.uniform(-1, 1) ** (1 + 2 * (attempt % 3))
            point[name] = max(1, round(value)) if symbol.integer else value
        try:
            theorem(**point)
        except AssumptionError:
            continue
        found.append(point)
        if len(found) == count:
            break
    assert len(found) == count
    return [point | ({"reading": reading} if "reading" in theorem.parameters else {}) for point in found]


# Numbers that formulas share.
DERIVED = {
    "ln": lambda p: log(1 / p.delta),
    "xi": lambda p: log(2.5 * p.R / p.delta) * log(2 / p.delta) / (p.n * p.epsilon) ** 2,
    "shuffle_logs": lambda p: log(p.R * p.M**2 / (p.N * p.delta)) * log(p.R / p.delta) * p.ln,
    "draw": lambda p: (p.N - p.M) / ((p.N - 1) * p.M),
    "silos": lambda p: p.draw * p.upsilon**2,
    "noise": lambda p: p.d * p.sigma**2 / p.M,
    "erm_noise": lambda p: (p.phi**2 / (p.K * p.R) + p.d * p.L**2 * p.xi) / p.M,
    "ld": lambda p: p.L * p.D,
    "strong": lambda p: p.L**2 / p.mu,
    "shrunk": lambda p: p.Delta * (1 - p.mu / (2 * p.beta)) ** p.R,
    "ratio": lambda p: p.n / (p.K * sqrt(p.K * p.M)),
    "budget": lambda p: p.epsilon * p.N / (4 * p.M * sqrt(2 * p.ln)),
    "used": lambda p: 1 - 2 * exp(-p.n * p.p0 / p.m),
    "kappa": lambda p: p.beta / p.mu,
    "root": lambda p: sqrt(p.L * p.beta * p.Delta * p.d * p.ln) / (p.epsilon * p.n),
    "cubed": lambda p: p.d * log(p.d * p.n * p.N / p.delta) ** 3,
    "local_noise": lambda p: p.d * p.ln / ((p.n * p.epsilon) ** 2 * p.M),
    "scale": lambda p: p.epsilon * p.n * p.N,
    "spread": lambda p: sqrt(1 / p.n + 1 / p.m) + sqrt(log(1 / p.delta2) / p.n),
    "least_svrg": lambda p: p.epsilon * p.n / (4 * sqrt(2 * p.S * p.E * p.Q * log(2 / p.delta))),
    "spider_unit": lambda p: 16 * p.ln / (p.n * p.epsilon) ** 2,
    "local_power": lambda p: p.d / ((p.epsilon * p.n) ** 2 * p.N),
    "smooth_size": lambda p: sqrt(p.L**2 + p.p * p.sigma**2),
    "message": lambda p: p.phi**2 / (p.M * p.K) + p.draw * p.upsilon**2,
    "swap": lambda p: 2 * exp(2 * p.epsilon0) * expm1(p.epsilon0) / p.n,
}


class Point(SimpleNamespace):
    """Numbers by name; a name of `DERIVED` is computed from the others."""

    def __getattr__(self, name):
        return DERIVED[name](self)


def symbols(key, point):
    """The point's numbers by name, with optional ones as the paper has them left out."""
    defaults = {"upsilon": 0.0, "gradient": 0.0, "C": 1.0}
    return Point(**(defaults | THEOREMS[key].example | point))


def replaced(p, epsilon):
    """m(e^ε'+1)."""
    return p.m * (exp(epsilon) + 1)


def svrg(p, parts, logs):
    """256L²·parts·ln(2/δ)·logs/(εn)²."""
    return 256 * p.L**2 * parts * log(2 / p.delta) * logs / (p.n * p.epsilon) ** 2


def window(p, p0=1.0, epsilon0=None):
    """Theorem 3.2 at p0 and ε0."""
    x = p.epsilon0 if epsilon0 is None else epsilon0
    return p0 * expm1(x) * sqrt(2 * exp(x) * p.ln / p.m) + p0**2 * exp(x) * expm1(x) ** 2 / (2 * p.m)


def averaged(p, x):
    return exp(4 * x) * expm1(x) ** 2 * p.spread**2 / 2 + exp(2 * x) * expm1(x) * p.spread * sqrt(2 * p.ln)


def shuffled(p, x):
    return exp(3 * x) * expm1(x) ** 2 / (2 * p.n) + exp(1.5 * x) * expm1(x) * sqrt(2 * p.ln / p.n)


def cap(p, exponent=5.0):
    depth = log(2 / p.delta1) / -log1p(-exp(-exponent * p.epsilon0))
    return (1 - exp(-p.epsilon0)) * p.delta1 / (4 * exp(p.epsilon0) * (2 + depth))


def clones(p, delta):
    return 8 * sqrt(exp(p.n * p.epsilon0) * log(4 / delta) / p.N) + 8 * exp(p.n * p.epsilon0) / p.N


def round_cost(p, delta):
    """Theorem E.2."""
    return log1p(expm1(p.epsilon0) / (exp(p.epsilon0) + 1) * clones(p, delta))


def round_failure(p, delta, factor):
    return delta + factor * 2 * p.N * p.n * exp((p.n - 1) * p.epsilon0) * p.delta0


def rounds_cost(p):
    one, share = round_cost(p, p.N * p.n * p.delta0), p.N * p.n * p.delta0
    return 2 * p.R * one**2 + one * sqrt(2 * p.R * log(1 / (p.R * share)))


def rounds_failure(p):
    share = p.N * p.n * p.delta0
    return p.R * (share + round_failure(p, share, exp(round_cost(p, share)) + 1))


def composed(runs, cost, delta):
    """Advanced composition of the runs, each at `cost`, with slack δ/2."""
    return runs * cost * expm1(cost) / (exp(cost) + 1) + cost * sqrt(2 * runs * log(2 / delta))


def restart(p, logs):
    """ε and δ of a restart."""
    return (p.epsilon, p.delta) if p.S == 1 else (p.epsilon / (2 * sqrt(2 * p.S * logs)), p.delta / (2 * p.S))


def difference(p, logs):
    epsilon, delta = restart(p, logs)
    return epsilon * p.N * p.n / (8 * p.M * p.K * sqrt(4 * p.E * p.Q * log(2 / delta)))


def spider_share(p, rounds):
    """ρ of ⌈rounds/q⌉ fresh messages and of the differences, over the budget, at the printed variances."""
    fresh = -(-rounds // p.q)
    return fresh / max(p.R / p.q, 1) + (rounds - fresh) / p.R


# (theorem, "" or a term, optionally "printed") → the number.
FORMULAS = {
    "convex-2.1": lambda p: 272 * p.ld / sqrt(p.M) * max(1 / sqrt(p.n), sqrt(p.d * p.xi)),
    "convex-2.1-complete": lambda p: 272 * p.ld / sqrt(p.M_tilde) * max(p.n**-0.5, sqrt(p.d * p.privacy_term)),
    "convex-2.1-strong": lambda p: p.strong / p.M * (1 / p.n + p.d * p.xi),
    "convex-2.1-noise": lambda p: 256 * p.L**2 * p.R * p.xi,
    "convex-2.1-noise sigma": lambda p: 16 * p.L * sqrt(p.R * p.xi),
    "convex-2.1-moments": lambda p: 8 * p.L**2 * p.R * p.ln / (p.n * p.epsilon) ** 2,
    "convex-2.1-moments K_above": lambda p: p.n * sqrt(p.epsilon / (8 * p.R * p.ln)),
    "convex-2.1-moments K_at_most": lambda p: p.n * sqrt(p.epsilon / p.R) / 2,
    "convex-2.2": lambda p: 545 * p.ld / sqrt(p.M) * max(1 / sqrt(p.n), sqrt(p.d * p.xi)),
    "convex-2.2 with_lipschitz_L": lambda p: 272.5 * p.ld * max(1 / sqrt(p.n), sqrt(p.d * p.xi)) / sqrt(p.M),
    "convex-2.2-strong": lambda p: p.strong / p.M * (1 / p.n + p.d * p.xi),
    "convex-2.3": lambda p: p.beta * (p.D / p.n) ** 2 + p.ld * sqrt(p.d * p.ln / (p.M * p.n)) / p.epsilon,
    "convex-2.3 sampling": lambda p: p.ld * sqrt(5 / (p.M * p.n)),
    "convex-2.3 matching_n": lambda p: (p.M * (p.beta * p.D * p.epsilon / p.L) ** 2 / (p.d * p.ln)) ** (1 / 3),
    "convex-2.3-strong": lambda p: (
        p.ld * exp(-p.n / sqrt(p.kappa)) + p.L**2 * p.d * p.ln / (p.mu * p.epsilon**2 * p.M * p.n)
    ),
    "convex-2.3-noise": lambda p: 8 * p.L**2 * log(1.25 / p.delta) / p.epsilon**2,
    "convex-2.4": lambda p: p.ld * sqrt(p.d * p.xi / p.M),
    "convex-2.4-strong": lambda p: p.L**2 * p.d * p.xi / (p.mu * p.M),
    "convex-D.1": lambda p: p.beta * (p.D / p.R) ** 2 + p.D * sqrt(p.erm_noise) + p.D * sqrt(p.draw / p.R) * p.upsilon,
    "convex-D.1-strong": lambda p: p.Delta * exp(-p.R / sqrt(p.kappa)) + p.erm_noise / p.mu + p.silos / (p.mu * p.R),
    "convex-4.1": lambda p: p.ld * (1 / sqrt(p.n * p.M) + sqrt(p.d * p.shuffle_logs) / p.scale),
    "convex-4.1-strong": lambda p: p.strong * (1 / (p.n * p.M) + p.d * p.shuffle_logs / p.scale**2),
    "convex-4.1-noise": lambda p: p.C * p.L**2 * p.R * p.M * p.shuffle_logs / p.scale**2,
    "convex-4.1-noise unit": lambda p: p.L**2 * p.R * p.M * p.shuffle_logs / p.scale**2,
    "convex-gaussian": lambda p: p.sensitivity * sqrt(2 * log(1.25 / p.delta)) / p.epsilon,
    "convex-subsampling": lambda p: 2 * p.epsilon_local * p.K / p.n,
    "convex-subsampling exact": lambda p: log(1 + p.K / p.n * (exp(p.epsilon_local) - 1)),
    "convex-C.1": lambda p: p.epsilon,
    "convex-C.2": lambda p: p.n * p.epsilon,
    "convex-C.2 delta": lambda p: p.n * exp((p.n - 1) * p.epsilon) * p.delta,
    "convex-C.2 delta_exact": lambda p: p.delta * sum(exp(i * p.epsilon) for i in range(p.n)),
    "convex-E.2": lambda p: round_cost(p, p.delta),
    "convex-E.2 delta_tilde": lambda p: round_failure(p, p.delta, exp(round_cost(p, p.delta)) + 1),
    "convex-E.2 delta_tilde printed": lambda p: round_failure(p, p.delta, 1),
    "convex-E.1-corollary": rounds_cost,
    "convex-E.1-corollary rate": lambda p: p.epsilon0 * sqrt(p.R / p.N) * log(1 / (p.N * p.n * p.delta0)),
    "convex-E.1-corollary delta": rounds_failure,
    "convex-E.1-corollary delta printed": lambda p: 14 * p.n * p.N * p.R * p.delta0,
    "convex-free": lambda p: p.d * log(2.5 * p.R / p.delta) * log(2 / p.delta) / p.epsilon**2,
    "convex-free private_over_statistical": lambda p: sqrt(p.d * p.n * p.xi),
    "convex-free short": lambda p: p.d / p.epsilon**2,
    "convex-3.1": lambda p: p.ld * (1 / sqrt(p.n * p.N) + min(1, sqrt(p.d / p.N) / (p.epsilon * p.n))),
    "convex-3.1-strong": lambda p: p.strong / (p.n * p.N) + p.ld * min(1, p.local_power),
    "convex-E.3": lambda p: p.ld * (1 / sqrt(p.n * p.N) + min(1, sqrt(p.d) / p.scale)),
    "convex-E.3-strong": lambda p: p.strong / (p.n * p.N) + p.ld * min(1, p.local_power / p.N),
    "convex-E.4": lambda p: p.ld * min(1, sqrt(p.d / p.N) / (p.epsilon * p.n)),
    "convex-E.4-strong": lambda p: p.ld * min(1, p.local_power),
    "convex-E.5": lambda p: p.ld * min(1, sqrt(p.d) / p.scale),
    "convex-E.5-strong": lambda p: p.ld * min(1, p.local_power / p.N),
    "convex-nonprivate": lambda p: p.phi * p.D / sqrt(p.n * p.N),
    "convex-nonprivate-strong": lambda p: p.phi**2 / (p.mu * p.n * p.N),
    "convex-models": lambda p: sqrt(p.d) / (p.epsilon * p.n * sqrt(p.N)),
    "convex-models central": lambda p: sqrt(p.d) / p.scale,
    "convex-models local": lambda p: sqrt(p.d / (p.n * p.N)) / p.epsilon,
    "convex-E.1-example": lambda p: (
        sqrt(p.d) * max(log(p.d / (1 + (p.d - 1) * exp(-p.epsilon0))), log((exp(p.epsilon0) + p.d - 1) / p.d))
    ),
    "convex-lemma-D.1": lambda p: p.stability + p.empirical,
    "convex-lemma-D.2": lambda p: 2 * p.L**2 * p.R * p.eta / (p.n * p.M),
    "convex-lemma-D.2 from_proof": lambda p: p.L**2 * p.eta * (p.R + 1) / (p.n * p.M),
    "convex-lemma-D.2-strong": lambda p: 4 * p.L**2 / (p.mu * (p.M * p.n - 1)),
    "convex-lemma-D.4": lambda p: p.D**2 / (p.eta * p.R) + 2 * p.eta * (p.message + p.gradient**2 + p.noise / 2),
    "convex-lemma-D.4 printed": lambda p: p.D**2 / (p.eta * p.R) + 2 * p.eta * (p.message + p.noise / 2),
    "convex-lemma-D.4-shifted": lambda p: (
        p.D**2 / (2 * p.eta * p.R) + (p.message + p.noise) / (2 * (1 / p.eta - p.beta))
    ),
    "convex-lemma-D.5": lambda p: p.message + p.noise,
    "convex-lemma-D.9": lambda p: p.L**2 / (2 * p.beta),
    "convex-lemma-D.9 lipschitz printed": lambda p: 2 * p.L,
    "convex-lemma-D.10": lambda p: p.beta * (p.D / p.R) ** 2 + p.V * p.D / sqrt(p.R),
    "convex-lemma-D.10 regularisation": lambda p: p.V / (2 * p.D * sqrt(p.R)),
    "convex-lemma-D.11": lambda p: p.Delta * exp(-p.R / sqrt(p.kappa)) + p.V**2 / (p.mu * p.R),
    "nonconvex-D.1": lambda p: p.rho + 2 * sqrt(p.rho * p.ln),
    "nonconvex-D.1-short": lambda p: p.epsilon**2 / (8 * p.ln),
    "nonconvex-D.1-short converted": lambda p: p.epsilon**2 / (8 * p.ln) + p.epsilon / sqrt(2),
    "nonconvex-D.2": lambda p: 4 * p.sensitivity**2 * p.ln / p.epsilon**2,
    "nonconvex-D.2 rho": lambda p: p.epsilon**2 / (8 * p.ln),
    "nonconvex-composition": lambda p: (
        sqrt(2 * p.R * log(1 / p.delta_slack)) * p.epsilon + p.R * p.epsilon * (exp(p.epsilon) - 1)
    ),
    "nonconvex-composition delta": lambda p: p.R * p.delta + p.delta_slack,
    "nonconvex-lemma-D.1": lambda p: p.R * p.rho,
    "nonconvex-2.1-noise": lambda p: 16 * p.L**2 * p.ln / (p.K * p.epsilon) ** 2,
    "nonconvex-2.1-noise printed": lambda p: 8 * p.L**2 * p.ln / (p.K * p.epsilon) ** 2,
    "nonconvex-2.2-noise": lambda p: 4 * svrg(p, p.S * p.E * p.Q, log(5 * p.S * p.E * p.Q / p.delta)),
    "nonconvex-2.2-noise sigma1_squared": lambda p: svrg(p, p.S * p.E, log(5 * p.S * p.E / p.delta)),
    "nonconvex-2.2-noise printed": lambda p: 4 * svrg(p, p.S * p.E * p.Q, log(2.5 * p.E * p.Q / p.delta)),
    "nonconvex-2.2-noise sigma1_squared printed": lambda p: svrg(p, p.S * p.E, log(5 * p.E / p.delta)),
    "nonconvex-2.2-noise smallest_batch": lambda p: max(1, int(-(-p.least_svrg // 1))),
    "nonconvex-2.2-shuffled-noise": lambda p: difference(p, log(2 / p.delta)),
    "nonconvex-2.2-shuffled-noise printed": lambda p: difference(p, 1.0),
    "nonconvex-2.2-shuffled-noise full_batch": lambda p: difference(p, log(2 / p.delta)) * p.K / p.n,
    "nonconvex-2.2-shuffled-noise full_batch printed": lambda p: difference(p, 1.0),
    "nonconvex-2.2-shuffled-noise epsilon_restart": lambda p: restart(p, log(2 / p.delta))[0],
    "nonconvex-2.2-shuffled-noise delta": lambda p: restart(p, 1.0)[1] / (2 * p.E * p.Q),
    "nonconvex-3.1-noise": lambda p: p.L**2 * max(p.R / p.q, 1) * p.spider_unit * spider_share(p, p.R),
    "nonconvex-3.1-noise printed": lambda p: p.L**2 * max(p.R / p.q, 1) * p.spider_unit,
    "nonconvex-3.1-noise sigma2_squared printed": lambda p: p.beta**2 * p.R * p.spider_unit,
    "nonconvex-3.1-noise sigma2_hat_squared printed": lambda p: 4 * p.L**2 * p.R * p.spider_unit,
    "nonconvex-3.2-budget": lambda p: p.epsilon * p.N / (4 * p.M * sqrt(2 * p.R * p.ln)),
    "nonconvex-3.2-budget fresh": lambda p: p.budget * min(1, sqrt(p.q / p.R)),
    "nonconvex-3.2-budget fresh printed": lambda p: p.budget / max(1, sqrt(p.q) / sqrt(p.R)),
    "nonconvex-3.2-budget delta_fresh": lambda p: p.q * p.delta / (2 * p.R),
    "nonconvex-3.2-budget delta_fresh printed": lambda p: sqrt(p.q) * p.delta / (2 * p.R),
    "nonconvex-vector-sum": lambda p: p.d * (p.L * log(p.d / p.delta) / p.epsilon) ** 2,
    "nonconvex-scalar-sum": lambda p: (p.width / p.g) ** 2 * p.N * (1 / 4 + p.b * p.p * (1 - p.p)),
    "nonconvex-G": lambda p: p.epsilon / p.n,
    "nonconvex-G delta_user": lambda p: exp((p.n - 1) * p.epsilon / p.n) * p.delta / 4,
    "nonconvex-2.1": lambda p: p.strong * (p.kappa**2 * p.local_noise + p.kappa / (p.n * p.M)) + p.silos / p.mu,
    "nonconvex-2.1-shuffled": lambda p: (
        p.strong * (p.kappa**2 * log(p.d / p.delta) ** 2 * p.local_power / p.N + p.kappa / (p.n * p.M))
    ),
    "nonconvex-2.1-recursion": lambda p: p.shrunk + (p.noise + 2 * p.L**2 / (p.M * p.K)) / p.mu,
    "nonconvex-2.1-recursion printed": lambda p: p.shrunk + (2 * p.noise + p.L**2 / (p.M * p.K)) / p.mu,
    "nonconvex-2.2": lambda p: p.kappa * p.L**2 * p.local_noise / p.mu + p.silos / p.mu,
    "nonconvex-2.2 printed": lambda p: p.kappa * p.L**2 * p.local_noise / p.mu + p.silos,
    "nonconvex-2.2-shuffled": lambda p: p.kappa * p.L**2 * p.ln * p.local_power / (p.mu * p.N) + p.silos / p.mu,
    "nonconvex-2.2-restart": lambda p: (
        24 * p.kappa * p.Delta / p.R * max(1, p.ratio) + 3 * p.silos / p.mu + 1.5 * p.noise / p.mu
    ),
    "nonconvex-2.2-restart start printed": lambda p: 3 * p.kappa * p.Delta / p.R * (1 + p.ratio),
    "nonconvex-3.1": lambda p: (
        (p.root / sqrt(p.M)) ** (4 / 3) + p.L**2 * p.local_noise + (p.M < p.N) * (p.root * sqrt(p.L) / p.M + p.silos)
    ),
    "nonconvex-3.1 printed": lambda p: (
        (p.root / sqrt(p.M)) ** (4 / 3)
        + p.L**2 * p.local_noise
        + (p.M < p.N) * (p.root * sqrt(p.L / p.n) / p.M + p.L**2 / (p.M * p.n))
    ),
    "nonconvex-3.1-claim": lambda p: 20 * p.Delta * 2 * p.beta / p.R + 12 * p.noise,
    "nonconvex-3.1-claim printed": lambda p: 16 * (p.Delta * 2 * p.beta / p.R + p.noise),
    "nonconvex-3.1-phase": lambda p: (p.n * p.epsilon) ** 2 * p.M / (128 * p.d * p.R * p.ln),
    "nonconvex-3.1-phase printed": lambda p: (p.n * p.epsilon) ** 2 * p.M / (32 * p.d * p.R * p.ln),
    "nonconvex-3.2": lambda p: (
        (sqrt(p.L * p.beta * p.Delta * p.cubed) / p.scale) ** (4 / 3)
        + p.cubed * (p.L / p.scale) ** 2
        + (p.M < p.N) * p.L * sqrt(p.beta * p.Delta * p.cubed / p.M) / p.scale
        + p.silos
    ),
    "nonconvex-3.2 phase": lambda p: (p.scale * p.L) ** (2 / 3) / (p.beta * p.Delta * p.cubed) ** (1 / 3) / 2,
    "nonconvex-3.2 rounds": lambda p: p.scale ** (4 / 3) * (p.beta * p.Delta / p.L**2 / p.cubed**2) ** (1 / 3),
    "nonconvex-3.3": lambda p: p.L**2 * min(1, p.ln * p.local_power / max(1, log(1 / (p.n * p.N * p.delta))) ** 2),
    "nonconvex-3.3 printed": lambda p: p.L**2 * min(1, p.ln * p.local_power),
    "nonconvex-3.3-shuffled": lambda p: p.L**2 * min(1, p.ln * p.local_power / p.N),
    "nonconvex-G-risk": lambda p: (
        p.strong * (p.kappa**2 * p.d * log(4 * p.n / p.delta) / (p.epsilon**2 * p.N) + p.kappa / (p.n * p.N))
    ),
    "nonconvex-G-risk printed": lambda p: (
        p.strong * (p.kappa**2 * sqrt(p.d * log(4 * p.n / p.delta) / p.N) / p.epsilon**2 + p.kappa / sqrt(p.n * p.N))
    ),
    "nonconvex-figure-3": lambda p: p.kappa * p.local_power,
    "nonconvex-lemma-E.1": lambda p: p.noise / (2 * p.beta),
    "nonconvex-lemma-E.1 value_gap": lambda p: p.noise**2 / (2 * p.beta),
    "nonconvex-lemma-E.2": lambda p: (
        p.value_z + p.inner + (p.beta / 2) * (p.yw + p.zw) + (p.zw - p.yw - p.yz) / (2 * p.eta)
    ),
    "nonconvex-lemma-E.3": lambda p: 8 * p.beta**2 * p.distance / (p.M * p.K) + 2 * p.silos + p.noise,
    "nonconvex-lemma-F.1": lambda p: p.tau2**2 * p.distance + p.tau1**2,
    "nonconvex-lemma-F.2": lambda p: (
        (p.population - p.sample) / ((p.population - 1) * p.sample) * p.size / p.population
    ),
    "nonconvex-clusters": lambda p: p.silos,
    "nonconvex-clusters printed": lambda p: 2 * p.L**2 / (p.M * p.n),
    "checkins-3.2": lambda p: window(p, p.p0),
    "checkins-3.2-short": lambda p: 7 * p.p0 * p.epsilon0 * sqrt(p.ln / p.m),
    "checkins-3.2-approximate": lambda p: window(p, p.p0, 8 * p.epsilon0),
    "checkins-3.2-approximate delta0_cap": cap,
    "checkins-3.2-approximate delta0_cap printed": lambda p: cap(p, p.delta),
    "checkins-3.2-approximate delta_prime": lambda p: p.delta + replaced(p, window(p, p.p0, 8 * p.epsilon0)) * p.delta1,
    "checkins-3.2-approximate delta_prime printed": lambda p: (
        p.delta + replaced(p, window(p, p.p0, 8 * p.epsilon0)) * p.delta0
    ),
    "checkins-3.3": lambda p: exp(1.5 * p.epsilon0) / sqrt(p.n),
    "checkins-3.3 composed": lambda p: composed(
        p.n / p.m, window(Point(**vars(p) | {"delta": p.delta * p.m / (2 * p.n)}), p.m / p.n), p.delta
    ),
    "checkins-3.5": lambda p: p.smooth_size * p.width / (p.used * sqrt(p.m)),
    "checkins-3.5 step": lambda p: p.width * p.used / p.smooth_size,
    "checkins-4.2": lambda p: p.width * sqrt(p.p * p.sigma**2 / p.n + p.L**2 / p.m),
    "checkins-4.2 step": lambda p: p.width / sqrt(p.m * p.p * p.sigma**2 / p.n + p.L**2),
    "checkins-4.2-smooth": lambda p: p.width * p.smooth_size / sqrt(p.n) + p.beta * p.width**2 / p.m,
    "checkins-4.2-smooth step": lambda p: 1 / (p.beta + p.m * p.smooth_size / (p.width * sqrt(p.n))),
    "checkins-4.1": lambda p: averaged(p, p.epsilon0),
    "checkins-4.1 delta_prime": lambda p: p.delta + p.delta2,
    "checkins-4.1-short": lambda p: p.epsilon0 * p.spread,
    "checkins-4.1-short printed": lambda p: p.epsilon0 / sqrt(p.m),
    "checkins-4.1-approximate": lambda p: averaged(p, 8 * p.epsilon0),
    "checkins-4.1-approximate delta_prime": lambda p: (
        p.delta + p.delta2 + replaced(p, averaged(p, 8 * p.epsilon0)) * p.delta1
    ),
    "checkins-4.3": window,
    "checkins-4.3-short": lambda p: 7 * p.epsilon0 * sqrt(p.ln / p.m),
    "checkins-4.3-approximate": lambda p: window(p, 1.0, 8 * p.epsilon0),
    "checkins-5.1": lambda p: shuffled(p, p.epsilon0),
    "checkins-5.1-approximate": lambda p: shuffled(p, 8 * p.epsilon0),
    "checkins-5.1-approximate delta0_cap printed": lambda p: cap(p, p.delta),
    "checkins-5-earlier": lambda p: p.n * p.swap * expm1(p.swap) + p.swap * sqrt(2 * p.n * p.ln),
    "checkins-table-1": lambda p: exp(1.5 * p.epsilon0) / sqrt(p.n),
    "checkins-3.4": lambda p: p.m * (1 - p.p0 / p.m) ** p.n,
    "checkins-3.4-short": lambda p: p.m / exp(p.c),
    "checkins-3.4-short exact": lambda p: p.m * (1 - p.c / p.n) ** p.n,
    "checkins-4.4": lambda p: (p.n - p.m + 1) / e,
    "checkins-4.4 exact": lambda p: (p.n - p.m + 1) * (1 - 1 / p.m) ** p.m,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_theorem_equals_its_formula(name):
    key, *rest = name.split()
    reading = "printed" if "printed" in rest else "right"
    terms = [word for word in rest if word != "printed"]
    for point in points(key, reading):
        result = THEOREMS[key](**point)
        number = result.terms[terms[0]] if terms else result.value
        assert number == pytest.approx(FORMULAS[name](symbols(key, point)), rel=1e-9)


def test_every_theorem_has_a_formula():
    assert {name.split()[0] for name in FORMULAS} == set(THEOREMS)


def fixed_point(step, start=1000.0):
    for _ in range(200):
        start = step(start)
    return start


# Theorem, parameter, the last value that an assumption allows, the direction in which it ends, changes of the example.
ENDS = [
    ("convex-gaussian", "epsilon", lambda p: 1.0, 1),
    ("convex-2.1", "epsilon", lambda p: log(2 / p.delta), 1),
    ("convex-2.1-strong", "epsilon", lambda p: log(2 / p.delta), 1),
    ("convex-2.1-moments", "epsilon", lambda p: 2 * log(1 / p.delta), 1),
    ("convex-2.3", "epsilon", lambda p: 1.0, 1),
    ("convex-2.3-noise", "epsilon", lambda p: 1.0, 1),
    ("convex-subsampling", "epsilon_local", lambda p: 1.0, 1),
    ("convex-4.1", "M", lambda p: p.N, 1),
    ("convex-4.1-strong", "M", lambda p: fixed_point(lambda M: 16 * log(18 * p.R * M**2 / (p.N * p.delta))), -1),
    ("convex-4.1-noise", "M", lambda p: fixed_point(lambda M: 16 * log(18 * p.R * M**2 / (p.N * p.delta))), -1),
    ("convex-3.1", "epsilon", lambda p: sqrt(p.N), 1),
    ("convex-3.1-strong", "mu", lambda p: p.L / p.D, 1),
    ("convex-E.3", "delta", lambda p: 1 / (p.n * p.N), 1),
    ("convex-E.4", "delta", lambda p: 1 / (p.n * p.N) ** 2, 1),
    ("convex-E.2", "epsilon0", lambda p: log(p.N / (16 * log(2 / p.delta))) / p.n, 1),
    ("convex-E.1-corollary", "epsilon0", lambda p: 1 / p.n, 1),
    ("convex-lemma-D.2", "eta", lambda p: 1 / p.beta, 1),
    ("convex-lemma-D.2-strong", "eta", lambda p: 1 / p.beta, 1),
    ("convex-lemma-D.4", "eta", lambda p: 1 / (4 * p.beta), 1),
    ("convex-lemma-D.4-shifted", "eta", lambda p: 1 / (4 * p.beta), 1),
    ("nonconvex-2.1", "epsilon", lambda p: min(8 * log(1 / p.delta), 15), 1),
    ("nonconvex-2.1", "epsilon", lambda p: min(8 * log(1 / p.delta), 15), 1, {"delta": 0.3}),
    ("nonconvex-2.2", "epsilon", lambda p: min(2 * log(2 / p.delta), 15), 1, {"delta": 0.1}),
    ("nonconvex-D.2", "epsilon", lambda p: 2 * log(1 / p.delta), 1),
    ("nonconvex-2.2-noise", "epsilon", lambda p: min(2 * log(2 / p.delta), 15), 1),
    ("nonconvex-2.2", "epsilon", lambda p: min(2 * log(2 / p.delta), 15), 1),
    ("nonconvex-2.1-shuffled", "M", lambda p: p.N * min(p.epsilon / 2, 1), -1),
    ("nonconvex-2.1-recursion", "mu", lambda p: p.beta, 1),
    ("nonconvex-3.2-budget", "epsilon", lambda p: log(1 / p.delta), 1),
    ("nonconvex-3.3", "delta", lambda p: 1 / (p.n * p.N), 1),
    ("nonconvex-3.3-shuffled", "epsilon", lambda p: sqrt(p.N), 1),
    ("nonconvex-G-risk", "epsilon", lambda p: 1.0, 1),
    ("checkins-3.2-approximate", "delta0", cap, 1),
    ("checkins-3.3", "epsilon0", lambda p: 2 * log(p.n / (8 * sqrt(p.m))) / 3, 1, {"n": 3700, "m": 13, "delta": 0.99}),
    ("checkins-3.4-short", "c", lambda p: p.n / p.m, 1),
    ("checkins-3.5", "p0", lambda p: p.m * log(2) / p.n, -1),
]


@pytest.mark.parametrize("end", ENDS, ids=[f"{end[0]}-{end[1]}-{len(end)}" for end in ENDS])
def test_assumptions_end_where_they_say(end):
    key, name, limit, direction, *changes = end
    point = THEOREMS[key].example | (changes[0] if changes else {})
    last = limit(symbols(key, point))
    THEOREMS[key](**point | {name: last * (1 - direction * 1e-6)})
    with pytest.raises(AssumptionError, match=rf"^{re.escape(key)}: .*{name} = "):
        THEOREMS[key](**point | {name: last * (1 + direction * 1e-6)})


def test_enough_silos_for_the_lower_bound():
    point = THEOREMS["convex-3.1"].example
    least = 16 * log(2 / (point["delta"] * point["n"]))
    THEOREMS["convex-3.1"](**point | {"N": int(least) + 1})
    with pytest.raises(AssumptionError, match="enough silos"):
        THEOREMS["convex-3.1"](**point | {"N": int(least)})


@pytest.mark.parametrize("key", [key for key in THEOREMS if re.match("convex-(3|E.[345])", key)])
def test_private_lower_bounds_end_at_the_trivial_risk(key):
    result = THEOREMS[key](**THEOREMS[key].example | {"epsilon": 1e-9, "L": 1.7, "D": 2.3})
    assert result.terms.get("private", result.value) == pytest.approx(1.7 * 2.3)
