"""Who takes part in a round, and how many messages a silo sends."""

import itertools
from collections import Counter

import numpy as np
import pytest
import small
import torch
from scipy import stats
from small import ALGORITHM_CASES, MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.streams import Streams

SIZES = (4, 6, 5, 7, 3)
ONE = (Point(1.0, 0.1, 1.0),)


def make(M, seed=1, method=None):
    case = MODEL_CASES["linear"]
    method = method or ALGORITHMS["minibatch_sgd"](3)
    silos = small.records(case, SIZES, torch.float64)
    streams = Streams(seed).child("federation")
    return small.federation(case.model(), silos, small.plans(method, ONE, SIZES), ONE, M, streams)


def test_every_set_of_silos_is_equally_likely():
    """χ² over the 10 ascending pairs of 5 silos in 4,000 rounds, each asked for twice; the level is 0.001."""
    federation = make(2)
    drawn, again = ([tuple(federation.silos(r)) for r in range(4000)] for _ in range(2))
    assert drawn == again
    counts = Counter(drawn)
    assert set(counts) == set(itertools.combinations(range(5), 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_the_number_of_silos_is_drawn_evenly_from_its_values():
    """A random number of silos a round (convex paper, Assumption 2)."""
    values = [1, 2, 5]
    federation = make(values)
    counts = np.bincount([len(federation.silos(r)) for r in range(3000)], minlength=6)
    assert set(np.flatnonzero(counts)) == set(values)
    # Each 1,000 ± 4 standard deviations of 25.8.
    assert np.abs(counts[values] - 1000).max() <= 104


def test_all_algorithms_of_a_trial_meet_the_same_silos():
    a = make(2, method=ALGORITHMS["minibatch_sgd"](3))
    b = make(2, method=ALGORITHMS["fed_spider"](3))
    assert [a.silos(r) for r in range(20)] == [b.silos(r) for r in range(20)]
    assert [a.silos(r) for r in range(20)] != [make(2, seed=2).silos(r) for r in range(20)]


@pytest.mark.parametrize("algorithm", ALGORITHM_CASES)
def test_a_silo_sends_no_more_than_its_plan_counts(algorithm):
    """Over a whole run with M = N, local steps one by one: each message as planned, and as many as planned."""
    case, rounds, sizes = MODEL_CASES["linear"], 7, (5, 4)
    sizes = (9, 8) if ALGORITHM_CASES[algorithm].once else sizes
    method, points = ALGORITHM_CASES[algorithm].make(rounds), [Point(1.0, 0.01, 1.0)]
    silos = small.records(case, sizes, torch.float64)
    plans = small.plans(method, points, sizes)
    federation = small.federation(case.model(), silos, plans, points)
    check, sent = federation.hold_to_plans(), Counter()

    def count(query, silos, releases, clip, noises):
        check(query, silos, releases, clip, noises)
        for silo, release, noise in zip(silos, releases, noises, strict=True):
            assert (noise > 0).all()
            sent[silo, query.kind] += release.steps

    federation.messages.check = count
    small.iterates(method, federation, small.start(case.model(), torch.float64), 1)
    assert sent == Counter(
        {(silo, release.kind): release.count for silo in range(2) for release in plans[0][silo].releases}
    )
