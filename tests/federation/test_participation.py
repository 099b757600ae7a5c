"""A random number of silos a round (convex paper, Assumption 2), and the variance of its message (Lemma D.5)."""

import math

import numpy as np
import pytest
import small
import torch
from small import MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.federation.rng import Streams
from silodp.theory import THEOREMS

SIZES = (6, 6, 6, 6, 6)
VALUES = [1, 2, 5]


def test_the_number_of_silos_is_drawn_evenly_from_its_values():
    method, point = ALGORITHMS["minibatch_sgd"](3), [Point(1.0, 0.1, 1.0)]
    case = MODEL_CASES["linear"]
    silos = small.records(case, SIZES, torch.float64)
    federation = small.federation(case.model(), silos, small.plans(method, point, SIZES), point, VALUES)
    counts = np.bincount([len(federation.silos(r)) for r in range(3000)], minlength=6)
    assert set(np.flatnonzero(counts)) == set(VALUES)
    # Each 1,000 ± 4 standard deviations of 25.8.
    assert np.abs(counts[VALUES] - 1000).max() <= 104
    assert federation.silos(7) == federation.silos(7)


@pytest.mark.parametrize("cohort", [pytest.param(3, marks=pytest.mark.slow), VALUES])
def test_the_aggregated_message_has_the_full_gradient_as_mean_and_the_variance_of_lemma_d5(cohort):
    """8,000 rounds: each coordinate's mean within 4.5 standard errors, the variance within 6 % (4 standard errors)."""
    case, rounds = MODEL_CASES["logistic"], 8000
    silos, model = small.records(case, SIZES, torch.float64), case.model()
    point, method = [Point(8.0, 0.1, 50.0)], ALGORITHMS["minibatch_sgd"](rounds, noise=0.01)
    plans = small.plans(method, point, SIZES, batch_records=2)
    federation = small.federation(model, silos, plans, point, cohort, Streams(3).child("participation"))
    w = small.start(model, torch.float64)[None]
    draws = torch.cat(
        [federation.average(r, lambda silo, r=r: federation.message(w, silo, r)) for r in range(rounds)]
    ).numpy()

    none = torch.full((1,), math.inf, dtype=torch.float64)
    each = [
        np.concatenate([model.clipped_gradient_sum(w, x[i : i + 1], y[i : i + 1], none).numpy() for i in range(len(x))])
        for x, y in silos
    ]
    means = np.array([gradients.mean(axis=0) for gradients in each])
    assert max(np.linalg.norm(gradients, axis=1).max() for gradients in each) < 50, "the clip must not act"
    phi2 = np.mean([((g - m) ** 2).sum(axis=1).mean() for g, m in zip(each, means, strict=True)])
    upsilon2 = ((means - means.mean(axis=0)) ** 2).sum(axis=1).mean()
    M = cohort if isinstance(cohort, int) else len(cohort) / sum(1 / m for m in cohort)
    wanted = THEOREMS["convex-lemma-D.5"](
        d=model.size, N=5, M=M, K=2, phi=math.sqrt(phi2), upsilon=math.sqrt(upsilon2), sigma=0.01 * 50
    ).value

    deviations = draws - means.mean(axis=0)
    errors = draws.std(axis=0) / math.sqrt(rounds)
    assert (np.abs(deviations.mean(axis=0)) <= 4.5 * errors).all()
    assert (deviations**2).sum(axis=1).mean() == pytest.approx(wanted, rel=0.06)
