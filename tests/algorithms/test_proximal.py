"""Special cases and noise of the proximal algorithms and of their SDP forms."""

import math

import numpy as np
import pytest
import small
import torch
from events import delivered_epsilon
from scipy.stats import chisquare
from small import MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.federation.interface import Federation
from silodp.federation.prox import Regulariser, no_prox
from silodp.privacy.plan import Budget

ROUNDS = 6
SIZES = (12, 12, 12)
BUDGET = Budget(100, 20, 2.0, 1e-4, 16.0)


def test_proximal_gradient_descent_solves_the_lasso():
    """At a solution v: |∇f_j(v)| ≤ λ where v_j = 0, ∇f_j(v) = −λ sign(v_j) elsewhere."""
    weight, case, point = 0.5, MODEL_CASES["linear"], [Point(None, 0.1, math.inf)]
    method, silos = ALGORITHMS["prox_svrg"](800, phase_length=1), small.records(case, SIZES, torch.float64)
    plans, prox = small.plans(method, point, SIZES), Regulariser(l1=weight).prox
    federation = small.federation(case.model(), silos, plans, point, prox=prox)
    v = small.iterates(method, federation, small.start(case.model(), torch.float64), 1)[-1][0]
    gradient = np.mean([(x.T @ (x @ v - y) / len(x)).numpy() for x, y in silos], axis=0)
    zero = (v == 0).numpy()
    assert zero.any()
    assert not zero.all()
    assert (np.abs(gradient[zero]) <= weight).all()
    np.testing.assert_allclose(gradient[~zero], -weight * np.sign(v.numpy()[~zero]), rtol=1e-6)


def test_the_server_update_of_an_sdp_form_has_the_noise_of_the_sum():
    """Standard deviation of one round's update over 400 coordinates: ησ/M for M silos, ησ/√M for ISRL-DP."""
    N, d, eta, clip = 16, 400, 0.5, 2.0
    case = MODEL_CASES["linear"]
    silos = [(torch.zeros((4, d), dtype=torch.float64), torch.zeros(4, dtype=torch.float64))] * N
    point = [Point(1.0, eta, clip)]
    spread = {}
    for name in ("prox_sgd", "sdp_prox_sgd"):
        method = ALGORITHMS[name].with_options({"rounds": 1, "silos": N, "cohort": N})
        federation = small.federation(case.model(d), silos, small.plans(method, point, (4,) * N), point)
        w = small.iterates(method, federation, torch.zeros(d, dtype=torch.float64), 1)[0]
        spread[name] = float(w.std())
    sigma = ALGORITHMS["prox_sgd"](1).plan(Budget(4, 1, 1.0, 0.02, 9.0))["gradient"].noise * clip
    # Within 4 standard errors, 4/√800.
    assert spread["sdp_prox_sgd"] == pytest.approx(eta * sigma / N, rel=0.15)
    assert spread["prox_sgd"] == pytest.approx(eta * sigma / math.sqrt(N), rel=0.15)


def test_noise_of_prox_sgd_by_hand():
    """K = 5: 16·9.2103404/(2·5)² = 1.4736545 for the theorem; the exact mechanism delivers ε = 2 itself with less."""
    theorem = ALGORITHMS["prox_sgd"](20, noise="theorem").plan(BUDGET)["gradient"]
    assert (theorem.count, theorem.records, theorem.sampler) == (20, 5, "disjoint")
    assert theorem.noise**2 == pytest.approx(1.4736545, rel=1e-6)
    exact = ALGORITHMS["prox_sgd"](20).plan(BUDGET)
    assert exact["gradient"].noise < theorem.noise
    assert delivered_epsilon(exact, 1e-4).upper == pytest.approx(2.0, rel=1e-6)
    assert delivered_epsilon(exact, 1e-4).upper <= 2.0


def test_noise_of_svrg_by_hand():
    """Q = 5, R = 20, nε = 200: K = 20, four anchors; 32·4·9.2103404/200² and 128·20·9.2103404/200²."""
    plan = ALGORITHMS["prox_svrg"](20, phase_length=5).plan(BUDGET)
    difference, anchor = plan["difference"], plan["anchor"]
    assert (difference.count, difference.records, anchor.count, anchor.records) == (20, 20, 4, 100)
    assert anchor.noise**2 == pytest.approx(0.029473089, rel=1e-6)
    assert difference.noise**2 == pytest.approx(0.58946179, rel=1e-6)
    assert plan.sampling == "20 of 100 with replacement, and all"
    # Theorem E.2 with S = 1, E = 4: 256·4·9.9034876·ln(20/1e-4)/200² and 1024·20·9.9034876·ln(100/1e-4)/200².
    plan = ALGORITHMS["prox_svrg"](20, phase_length=5, noise="theorem").plan(BUDGET)
    assert plan["anchor"].noise ** 2 == pytest.approx(256 * 4 * 9.9034876 * math.log(2e5) / 4e4, rel=1e-6)
    assert plan["difference"].noise ** 2 == pytest.approx(1024 * 20 * 9.9034876 * math.log(1e6) / 4e4, rel=1e-6)


def test_a_theorem_whose_batch_is_too_small_says_so():
    def plan(K):
        return ALGORITHMS["prox_svrg"](4, phase_length=100, noise="theorem").plan(Budget(100, 4, 4.0, 1e-4, 16.0, K))

    with pytest.raises(ValueError, match=r"K = 1: must be at least \d+ for Theorem E.2 at epsilon = 4") as told:
        plan(1)
    least = int(str(told.value).split("at least ")[1].split(" ")[0])
    assert plan(least)["difference"].records == least > 2
    with pytest.raises(ValueError, match=f"K = {least - 1}: must be at least {least}"):
        plan(least - 1)


# What each paper's algorithm returns one of: numbers of steps taken.
RETURNED = {
    "prox_svrg": ({"phase_length": 3}, range(6)),
    "sdp_prox_svrg": ({"phase_length": 3}, range(6)),
    "prox_pl_svrg": ({"phase_length": 6, "restarts": 1}, range(6)),
    "fedprox_spider": ({"phase_length": 2, "random_iterate": True}, range(1, 7)),
    "sdp_fedprox_spider": ({"phase_length": 3, "random_iterate": True}, range(1, 7)),
    "fed_spider": ({"random_iterate": True}, range(1, 11)),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_an_algorithm_returns_is_a_uniformly_random_one_of_the_printed_iterates(name):
    """Over 2,000 streams each iterate is picked as often as the others, by a chi-squared test."""
    options, expected = RETURNED[name]
    method, counts = ALGORITHMS[name].with_options({"rounds": ROUNDS, **options}), dict.fromkeys(expected, 0)
    for seed in range(2000):
        federation, state = _Counting(small.Streams(seed).child("x"), "svrg" in name), method.start(torch.zeros(1, 1))
        for r in range(ROUNDS):
            state = method.round(r, state, federation)
        counts[int(method.output(state))] += 1
    assert len(counts) == len(expected)
    assert chisquare(list(counts.values())).pvalue > 1e-4, counts


class _Counting(Federation):
    """A federation whose every round moves w by one."""

    stepsize = torch.ones(1, 1)

    def __init__(self, streams, moves_by_differences=False):
        self.streams, self.moves_by_differences = streams, moves_by_differences
        self.prox = no_prox

    def answer(self, query, silo):
        # A correction of nothing, and a gradient that moves w by one; SVRG adds the two up.
        moves = (query.kind == "difference") == self.moves_by_differences
        return -torch.ones_like(query.weights) * moves

    def average(self, round, send, *, add_up=True):
        return send(0)


SUMMED = ["sdp_prox_sgd", "sdp_prox_svrg", "sdp_prox_pl_svrg", "sdp_fedprox_spider"]


@pytest.mark.parametrize("name", [*SUMMED, "prox_svrg", "fedprox_spider", "minibatch_sgd"])
def test_a_summation_protocol_takes_the_place_of_the_messages(name):
    """What the protocol hands over is what the server uses, and no silo sends anything past it."""
    asked = []

    def protocol(federation, query):
        asked.append((query.round, query.kind, query.previous is not None))
        return torch.ones_like(query.weights)

    case, point = MODEL_CASES["linear"], [Point(1.0, 0.1, 1.0)]
    method = ALGORITHMS[name].with_options({"rounds": 4, "phase_length": 2})
    silos = small.records(case, SIZES, torch.float64)
    plans = small.plans(method, point, SIZES)
    federation = small.federation(case.model(), silos, plans, point, summation=protocol)
    federation.answer = None
    small.iterates(method, federation, small.start(case.model(), torch.float64), 1)
    sent = {release.kind: release.count for release in plans[0][0].releases}
    assert {kind: sum(one[1] == kind for one in asked) for kind in sent} == sent
    assert all(differs == (kind == "difference") for _, kind, differs in asked)
