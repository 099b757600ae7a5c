"""Schedules of the convex paper: what they prescribe, and that Algorithm 2 run on one keeps to its rate."""

import inspect
from math import log, sqrt

import numpy as np
import pytest

from silodp.theory import SCHEDULES, AssumptionError
from silodp.theory.convex.schedules import multi_stage, theorem_4_1_strong

SIZES = {"n": 1000, "d": 10, "M": 50, "N": 100}
POINT = SIZES | {"L": 1.0, "D": 1.0, "beta": 1.0, "mu": 0.1, "epsilon": 1.0, "delta": 1e-6}


def plan(name, **change):
    accepted = inspect.signature(SCHEDULES[name]).parameters
    return SCHEDULES[name](**{k: v for k, v in (POINT | change).items() if k in accepted})


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_is_complete(name):
    got = plan(name)
    assert got.name == name
    assert got.rounds >= 1
    assert got.sigma2 > 0
    assert 1 <= got.batch <= 1000
    if got.stages:
        assert sum(stage.rounds for stage in got.stages) == got.rounds
        stage = got.stages[0]
        assert stage.alphas[0] == 1.0
        assert stage.etas.shape == stage.alphas.shape == (stage.rounds,)
        assert stage.etas[0] == pytest.approx(2 * stage.upsilon)
        with pytest.raises(ValueError, match="of Algorithm 2"):
            _ = got.steps
    else:
        assert got.steps.shape == got.weights.shape == (got.rounds,)
        assert got.weights.sum() == pytest.approx(1)
        decay = 1 - got.strong * got.step
        assert np.allclose(got.weights[1:] * decay, got.weights[:-1], rtol=1e-9, atol=0)
    assert (got.envelope is None) == (not name.startswith(("theorem-2.2", "theorem-2.4")))


def test_stages_by_hand():
    # β = 8, μ = 1, Δ = 1, V² = 3: 4√16 = 16 and 128·3/(3·2^-2) = 512; then 1024 (V² part doubles with each stage).
    stages = multi_stage(2000, 8.0, 1.0, 1.0, sqrt(3.0))
    assert [s.rounds for s in stages] == [512, 1024, 464]
    # υ_1 = √(1·3/(3·1)·512·513·514).
    assert stages[0].upsilon == pytest.approx(sqrt(512 * 513 * 514))
    assert multi_stage(2000, 8.0, 1.0, 1.0, sqrt(3.0), reading="printed")[0].upsilon == 16
    # Without noise a stage lasts 4√(2·8/1) = 16 rounds.
    assert [s.rounds for s in multi_stage(40, 8.0, 1.0, 1.0, 0.0)] == [16, 16, 8]
    assert multi_stage(5, 8.0, 1.0, 1.0, 0.0) == multi_stage(5, 8.0, 1.0, 1.0, 0.0, reading="printed")


def accelerate(stages, curvatures, start, V, regularisation, generator, trials):
    """Algorithm 2 on ½wᵀdiag(h)w (+ λ/2‖w‖²), unconstrained, with gradient noise of standard deviation V in norm."""
    ag = np.tile(start, (trials, 1))
    h, d = curvatures + regularisation, len(curvatures)
    for stage in stages:
        w = ag.copy()
        mu = stage.mu
        for a, eta in zip(stage.alphas, stage.etas, strict=True):
            middle = (1 - a) * (mu + eta) * ag + a * ((1 - a) * mu + eta) * w
            middle /= eta + (1 - a * a) * mu
            g = middle * h + generator.standard_normal(middle.shape) * V / sqrt(d)
            w = (a * mu * middle + ((1 - a) * mu + eta) * w - a * g) / (mu + eta)
            ag = a * w + (1 - a) * ag
    return float((0.5 * ag**2 @ curvatures).mean())


@pytest.mark.parametrize("V", [0.0, 0.1, 1.0])
def test_single_stage_keeps_the_accelerated_rate(V):
    """Lemma D.10's βD²/R² + VD/√R with a constant of 4, on a badly conditioned quadratic (noise from 200 trials)."""
    R, D, beta = 200, 1.0, 1.0
    h = np.geomspace(1e-6, beta, 20)
    strength = V / (2 * D * sqrt(R)) if V else 0.0
    got = plan("theorem-D.1")
    stage = type(got.stages[0])(R, 2 * (beta + strength), strength)
    start = np.full(20, D / sqrt(20))
    risk = accelerate((stage,), h, start, V, strength, np.random.default_rng(3), 200)
    assert risk <= 4 * (beta * D**2 / R**2 + V * D / sqrt(R))


def test_multi_stage_reaches_its_target():
    """The stages' promise, Δ halves with each, is met under both readings of υ: two full stages, Δ/4."""
    h = np.linspace(0.05, 1.0, 20)
    start = np.full(20, sqrt(2 / h.sum()))
    for reading in ("right", "printed"):
        stages = multi_stage(2560, 1.0, 0.05, 1.0, 0.5, reading=reading)
        assert [stage.rounds for stage in stages] == [854, 1706]
        assert accelerate(stages, h, start, 0.5, 0.0, np.random.default_rng(4), 100) <= 0.5 ** len(stages)


@pytest.mark.parametrize("name", SCHEDULES)
def test_bad_parameters_are_refused_in_one_line(name):
    bad = {"n": 0, "d": 1.5, "M": 0.5, "L": -1.0, "epsilon": 0.0, "delta": 1.0, "D": float("nan")}
    for key, wrong in bad.items():
        if key in inspect.signature(SCHEDULES[name]).parameters:
            with pytest.raises(AssumptionError, match=rf"^{name}: .*{key} = .* is not allowed, it has to be [^\n]*$"):
                plan(name, **{key: wrong})


def test_parameters_have_to_fit_together():
    with pytest.raises(AssumptionError, match=r"theorem-2.1-strong: .* mu = 2 is not allowed"):
        plan("theorem-2.1-strong", mu=2.0)
    with pytest.raises(AssumptionError, match=r"theorem-2.4: .* M = 200 is not allowed"):
        plan("theorem-2.4", M=200)
    with pytest.raises(AssumptionError, match="batch size"):
        plan("theorem-2.1", K=1)
    with pytest.raises(AssumptionError, match=r"theorem-2.3: .* epsilon = 2 is not allowed, it has to be at most 1"):
        plan("theorem-2.3", epsilon=2.0)


def test_behind_a_shuffler_fewer_rounds_or_silos_than_theorem_4_1_asks_for_are_refused():
    """n²Nε² = 4·5000·0.25 = 5000 rounds; 16 ln(18·5000·5000/1e-8) = 617 silos."""
    point = {"n": 2, "d": 3, "N": 5000, "M": 5000, "L": 1.7, "D": 2.3, "beta": 3.1, "mu": 0.6, "epsilon": 0.5}
    found = theorem_4_1_strong(**point, delta=1e-8, sigma=2.0)
    variance = (4 * 1.7**2 + 3 * 4.0) / 5000
    assert (found.rounds, found.batch, found.sigma2, found.strong) == (5000, 1, 4.0, 0.6)
    assert found.step == pytest.approx(log((0.6 * 2.3 * 5000) ** 2 / (2 * variance)) / (0.6 * 5000))
    with pytest.raises(AssumptionError, match=r"rounds of Theorem 4.1: R = 100 is not allowed, .* at least 5000"):
        theorem_4_1_strong(**point, delta=1e-8, sigma=2.0, R=100)
    with pytest.raises(AssumptionError, match=r"enough shuffled messages: M = 500 is not allowed"):
        theorem_4_1_strong(**(point | {"N": 500, "M": 500}), delta=1e-8, sigma=2.0)


WEIRD = {"n": 370, "d": 3, "M": 5, "N": 11, "L": 1.7, "D": 2.3, "beta": 3.1, "mu": 0.6, "epsilon": 0.9, "delta": 1e-4}


def xi(R):
    return log(2.5 * R / 1e-4) * log(2 / 1e-4) / (370 * 0.9) ** 2


def expected_rounds(name, R, K, Xi):
    """R that the theorem asks for, written from the paper."""
    draw, dpsi = 0.6 * 0.8**2, 3 * 1.7**2 * Xi
    s2 = min(370, 1 / (3 * Xi))
    erm = (1.3**2 / K + draw) / dpsi
    gap = 1.7 * 2.3
    return {
        "theorem-2.1": max(3.1 * 2.3 * sqrt(5) / 1.7 * sqrt(s2), s2 / K),
        "theorem-2.1-strong": max(8 * 3.1 / 0.6 * log(3.1 * 2.3**2 * 0.6 * 5 / dpsi), 1.7**2 / dpsi),
        "theorem-2.2": 5 * s2,
        "theorem-2.2-strong": max(8 * 5 * s2 * log(0.6 * 5 * s2 * 2.3**2 * 0.6 * 5 / dpsi), 1.7**2 / dpsi),
        "theorem-2.4": max(1.7 * sqrt(5) / sqrt(dpsi), erm),
        "theorem-2.4-strong": max(sqrt(5 * 1.7**2 / dpsi) * log(gap * 0.6 * 5 / dpsi), erm),
        "theorem-D.1": max(sqrt(3.1 * 2.3 * sqrt(5) / sqrt(dpsi)), erm),
        "theorem-D.1-strong": max(sqrt(3.1 / 0.6) * log(gap * 0.6 * 5 / dpsi), erm),
    }[name]


@pytest.mark.parametrize("name", [name for name in SCHEDULES if not name.startswith("theorem-2.3")])
def test_rounds_noise_and_steps_at_a_point_without_ones(name):
    got = plan(name, **WEIRD, phi=1.3, upsilon=0.8, K=60)
    R, Xi = got.rounds, xi(got.rounds)
    assert expected_rounds(name, R, 60, Xi) <= R < expected_rounds(name, R, 60, xi(R)) + 2
    assert got.batch == 60
    assert got.sigma2 == pytest.approx(256 * 1.7**2 * R * Xi)
    s2 = min(370, 1 / (3 * Xi))
    envelope = {
        "theorem-2.2": 1.7 * sqrt(5 * s2) / 2.3,
        "theorem-2.2-strong": 0.6 * 5 * s2,
        "theorem-2.4": sqrt(5) * 1.7 / (2.3 * sqrt(3 * Xi)),
        "theorem-2.4-strong": 0.6 * 5 / (3 * Xi),
    }
    assert got.envelope == (pytest.approx(envelope[name]) if name in envelope else None)
    beta = got.envelope or 3.1
    if not got.stages:
        variance = 4 * 1.7**2 / (5 * 60) + 3 * got.sigma2 / 5
        free = 2.3 * sqrt(5 * s2) / (1.7 * R)
        if name.endswith("strong"):
            free = log(max(2, (0.6 * 2.3 * R) ** 2 / (2 * variance))) / (0.6 * R)
        assert got.step == pytest.approx(min(1 / (4 * beta), free))
        assert got.first_iterate == 1
    V = sqrt(1.3**2 / 300 + 0.6 * 0.8**2 / 5 + 3 * got.sigma2 / 5)
    if name in ("theorem-2.4", "theorem-D.1"):
        assert got.regularisation == pytest.approx(V / (2 * 2.3 * sqrt(R)))
        assert got.stages[0].upsilon == pytest.approx(2 * (beta + got.regularisation))
    elif got.stages:
        assert got.stages == multi_stage(R, beta, 0.6, 1.7 * 2.3, V)


def test_one_pass_at_a_point_without_ones():
    sigma2 = 8 * 1.7**2 * log(1.25e4) / 0.9**2
    V = sqrt((5 * 1.7**2 + 3 * sigma2) / 5)
    got = plan("theorem-2.3", **WEIRD)
    assert got.sigma2 == pytest.approx(sigma2)
    assert got.regularisation == pytest.approx(V / (2 * 2.3 * sqrt(370)))
    assert plan("theorem-2.3-strong", **WEIRD).stages == multi_stage(370, 3.1, 0.6, 1.7 * 2.3, V)
    assert plan("theorem-2.3-strong", **WEIRD, Delta=9.0).stages == multi_stage(370, 3.1, 0.6, 9.0, V)
