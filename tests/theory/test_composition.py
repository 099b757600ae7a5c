"""The exact composition, and the errata of the non-convex paper that rest on it: what fails, and from where on."""

from itertools import product
from math import exp, expm1, log, prod, sqrt

import pytest
from exact_composition import composed_delta, composed_epsilon

from silodp.theory import THEOREMS, AssumptionError

DELTA = 1e-6


@pytest.mark.parametrize(("count", "epsilon0", "epsilon"), [(1, 0.7, 0.2), (3, 0.5, 0.4), (4, 0.3, 0.9), (4, 0.3, 1.3)])
def test_composed_delta_is_that_of_randomised_response_by_enumeration(count, epsilon0, epsilon):
    keep = exp(epsilon0) / (1 + exp(epsilon0))
    answers = product((0, 1), repeat=count)
    laws = [(prod(keep if a else 1 - keep for a in one), prod(1 - keep if a else keep for a in one)) for one in answers]
    wanted = sum(max(p - exp(epsilon) * q, 0.0) for p, q in laws)
    assert composed_delta(count, epsilon0, 0.0, epsilon) == pytest.approx(wanted, abs=1e-15)


def restart(S, reading="printed", epsilon=1.0):
    terms = THEOREMS["nonconvex-2.2-shuffled-noise"](
        n=1000, N=10, M=10, K=100, E=2, Q=2, S=S, epsilon=epsilon, delta=DELTA, reading=reading
    ).terms
    return terms["epsilon_restart"], terms["delta_restart"]


@pytest.mark.parametrize(("S", "spent"), [(4, 0.707), (8, 1.000), (9, 1.061), (100, 1.565)])
def test_restarts_of_algorithm_9_as_printed_are_safe_up_to_eight_and_overspend_beyond(S, spent):
    """The least that S restarts of (ε/(2√(2S)), δ/(2S)) compose to, over ε = 1: ε at S = 8, and √(S/8)ε at first."""
    found = composed_epsilon(S, *restart(S), DELTA)
    assert found == pytest.approx(spent, abs=0.001)
    assert (found <= 1.0) == (S <= 8)
    assert composed_epsilon(S, *restart(S, "right"), DELTA) < 1.0


@pytest.mark.parametrize(("R", "spent"), [(100, 0.9585), (400, 2.1248)])
def test_fresh_messages_of_algorithm_10_as_printed_overspend_where_there_are_many(R, spent):
    """R/4 fresh messages, each with the budget of one: within ε at R = 100, twice ε at R = 400."""
    found = {}
    for reading in ("printed", "right"):
        terms = THEOREMS["nonconvex-3.2-budget"](N=10, M=10, R=R, q=4, epsilon=1.0, delta=DELTA, reading=reading).terms
        found[reading] = composed_epsilon(R // 4, terms["fresh"], terms["delta_fresh"], DELTA)
    assert found["printed"] == pytest.approx(spent, abs=0.001)
    assert found["right"] < 0.27


@pytest.mark.parametrize(("E", "Q", "spent"), [(5, 72, 0.311), (20, 200, 0.907), (60, 300, 1.181)])
def test_full_batches_of_algorithm_8_as_printed_overspend_for_long_epochs_only(E, Q, spent):
    """E full-batch messages alone, M = N; n = 90Q and N = 1000 keep K = 90 within its K ≥ (n²/M)^(1/3)."""
    point = {"n": 90 * Q, "N": 1000, "M": 1000, "K": 90, "E": E, "Q": Q, "S": 1, "epsilon": 1.0, "delta": DELTA}
    assert (point["n"] ** 2 / 1000) ** (1 / 3) <= 90 + 1e-9
    found = {}
    for reading in ("printed", "right"):
        terms = THEOREMS["nonconvex-2.2-shuffled-noise"](**point, reading=reading).terms
        found[reading] = composed_epsilon(E, terms["full_batch"], terms["delta"], DELTA)
    assert found["printed"] == pytest.approx(spent, abs=0.001)
    assert found["right"] < 0.2
    # By hand: ε̃ = √Q ε/(16√(E ln(2/δ))).
    assert terms["full_batch"] == pytest.approx(sqrt(Q / (E * log(2 / DELTA))) / 16 / Q)


@pytest.mark.parametrize("epsilon0", [1e-4, 1e-3])
def test_shuffled_rounds_compose_as_advanced_composition_with_a_rounder_second_term(epsilon0):
    """Corollary E.1 has 2Rε² where advanced composition has Rε(e^ε − 1), which is less up to ε = 1.2564."""
    N, n, R, delta0 = 10**6, 100, 40, 1e-20
    found = THEOREMS["convex-E.1-corollary"](N=N, n=n, R=R, epsilon0=epsilon0, delta0=delta0)
    single, slack = found.terms["epsilon_round"], R * N * n * delta0
    composed = THEOREMS["nonconvex-composition"](R=R, epsilon=single, delta=1e-9, delta_slack=slack).value
    assert found.value - composed == pytest.approx(R * single * (2 * single - expm1(single)), rel=1e-6)


def test_a_shuffled_rounds_clones_scale_as_printed_and_its_failure_counts_both_neighbours():
    """Clones are 8√(x ln(4/δ)) + 8x, x = e^(nε0)/N; four times x tells the two terms apart."""
    N, n, delta, delta0 = 10**7, 10, 1e-6, 1e-15

    def at(group: float, reading: str = "right"):
        point = {"N": N, "n": n, "delta": delta, "delta0": delta0, "reading": reading}
        return THEOREMS["convex-E.2"](**point, epsilon0=log(group) / n)

    one, four = (at(group).terms["clones"] for group in (2.0, 8.0))
    assert (four - 2 * one) / (2.0 / N) == pytest.approx(16, rel=1e-6)
    assert (4 * one - four) / sqrt(2.0 / N * log(4 / delta)) == pytest.approx(16)
    # Next to no ε0: both neighbours fail in n records of N silos, by Lemma E.6 twice.
    failures = [(at(1 + 1e-9, word).terms["delta_tilde"] - delta) / (N * n * delta0) for word in ("printed", "right")]
    assert failures == pytest.approx([2, 4], rel=1e-3)
    most = N / (16 * log(2 / delta))
    at(0.999 * most)
    with pytest.raises(AssumptionError):
        at(1.001 * most)
    # Corollary E.1 rounds 1 + 2e up to 7 in each round and adds as much for the composition's slack.
    rounds = THEOREMS["convex-E.1-corollary"](N=N, n=n, R=3, epsilon0=1e-6, delta0=delta0, reading="printed")
    assert rounds.terms["delta"] == pytest.approx(3 * 2 * 7 * N * n * delta0)
