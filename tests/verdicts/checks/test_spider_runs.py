"""FedProx-SPIDER on the smooth non-convex problem: what flattens its slopes."""

from dataclasses import replace

import numpy as np
import pytest
from wrong_theorems import planted

from silodp.streams import Streams
from silodp.theory.problems.known import SmoothNonconvex
from silodp.verdicts.checks import spider_runs
from silodp.verdicts.checks.base import Context


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "rounds", "share"), [(1, 5, 0.61), (2.8, 11, 0.84)])
def test_in_short_phases_iterates_follow_a_part_of_a_fresh_gradients_error(monkeypatch, epsilon, rounds, share):
    """From w_0 = 0, near the minimiser, so that the start has no part in the mean: the share grows with the phase."""
    context, problem = Context(Streams(0)), SmoothNonconvex(4)
    point = spider_runs.spider_point(context, problem, n=1600, M=16, epsilon=epsilon, delta=1e-6)
    monkeypatch.setattr(spider_runs, "START", 0.0)
    found = spider_runs.spider_gradients(context, problem, point, 16, 8).mean()
    assert point.q == rounds
    assert found / (problem.d * point.sigma1**2 / 16) == pytest.approx(share, abs=0.05)


def test_a_phase_of_one_round_is_allowed_and_the_distance_to_the_optimum_counts_the_penalty_at_the_start():
    """Δ = 1 + 0.01·‖w_0‖₁ for a loss from 0 to 1."""
    problem, seen = SmoothNonconvex(4), []
    one_round = planted(Context(Streams(0)), "nonconvex-3.1-phase", lambda result, given: replace(result, value=1.0))
    context = planted(one_round, "nonconvex-3.1-claim", lambda result, given: seen.append(given["Delta"]) or result)
    point = spider_runs.spider_point(context, problem, n=800, M=16, epsilon=2.0, delta=1e-6, l1=0.01)
    assert point.q == 1
    assert set(seen) == {1 + 0.01 * np.abs(np.full(4, spider_runs.START)).sum()}


def test_without_a_penalty_the_gradient_mapping_is_the_gradient():
    """At η = 1/(2β) = 2, so that a step and its inverse differ."""
    context, problem = Context(Streams(0), "smoke"), SmoothNonconvex(8)
    point = spider_runs.spider_point(context, problem, n=400, M=4, epsilon=2.0, delta=1e-6)
    plain, penalised = (spider_runs.spider_gradients(context, problem, point, 4, 2, l1=l1) for l1 in (0.0, 1e-9))
    assert penalised == pytest.approx(plain, rel=1e-6)
