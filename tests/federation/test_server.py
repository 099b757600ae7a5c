"""Who takes part, how messages are averaged, and what algorithms refuse."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
import small
import torch
from scipy import stats
from small import ALGORITHM_CASES, MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.federation.rng import Streams

SIZES = (4, 6, 5, 7, 3)
ONE = (Point(1.0, 0.1, 1.0),)


def make(M, seed=1, points=ONE, method=None, **more):
    case = MODEL_CASES["linear"]
    method = method or ALGORITHMS["minibatch_sgd"](3)
    silos = small.records(case, SIZES, torch.float64)
    streams = Streams(seed).child("federation")
    return small.federation(case.model(), silos, small.plans(method, points, SIZES), points, M, streams, **more)


def test_silos_of_a_round_are_distinct_sorted_and_the_same_each_time_they_are_asked_for():
    federation = make(3)
    for r in range(50):
        chosen = federation.silos(r)
        assert len(set(chosen)) == 3
        assert chosen == sorted(chosen)
        assert set(chosen) <= set(range(5))
        assert chosen == federation.silos(r)


def test_every_set_of_silos_is_equally_likely():
    """χ² over the 10 pairs of 5 silos in 4,000 rounds; the seed is fixed, the level is 0.001."""
    federation, rounds = make(2), 4000
    counts: dict[tuple, int] = {}
    for r in range(rounds):
        pair = tuple(federation.silos(r))
        counts[pair] = counts.get(pair, 0) + 1
    assert len(counts) == 10
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


def test_noise_is_the_plans_noise_times_the_clip_silo_by_silo():
    points = [Point(1.0, 0.1, 2.0), Point(None, 0.1, math.inf), Point(4.0, 0.1, 3.0)]
    method = ALGORITHMS["fed_spider"](3)
    federation = make(5, points=points, method=method)
    plans = small.plans(method, points, SIZES)
    for silo in range(5):
        for kind in ("gradient", "difference"):
            wanted = [
                plans[g][silo][kind].noise * points[g].clip if points[g].epsilon is not None else 0.0 for g in range(3)
            ]
            assert federation.noise[silo][kind].tolist() == wanted
            assert federation.releases[silo][kind] == plans[0][silo][kind]


def test_the_average_is_over_the_silos_of_the_round():
    federation = make(2)
    seen: list[int] = []

    def send(silo):
        seen.append(silo)
        return torch.full((1, 4), float(silo))

    found = federation.average(7, send)
    assert seen == federation.silos(7)
    assert found.tolist() == [[sum(seen) / 2] * 4]
    added = make(2, server_update="sum")
    assert added.average(7, send).tolist() == [[float(sum(federation.silos(7)))] * 4]
    assert added.average(7, send, add_up=False).tolist() == found.tolist()


@pytest.mark.parametrize("algorithm", ALGORITHM_CASES)
def test_a_silo_sends_no_more_than_its_plan_counts(algorithm):
    """Counts messages (local steps one by one) against the plan's releases, over a whole run with M = N."""
    case, rounds, sizes = MODEL_CASES["linear"], 7, (5, 4)
    sizes = (9, 8) if ALGORITHM_CASES[algorithm].once else sizes
    method, points = ALGORITHM_CASES[algorithm].make(rounds), [Point(1.0, 0.01, 1.0)]
    silos = small.records(case, sizes, torch.float64)
    plans = small.plans(method, points, sizes)
    federation = small.federation(case.model(), silos, plans, points)
    sent: Counter[tuple[int, str]] = Counter()
    messages = federation.messages
    message, total, local = messages.message, messages.total, messages.local_model

    def count(query, silo, release, noise, times=1):
        assert release == plans[0][silo][query.kind]
        assert (noise > 0).all()
        sent[silo, query.kind] += times

    def count_message(query, silo, release, clip, noise):
        count(query, silo, release, noise)
        return message(query, silo, release, clip, noise)

    def count_total(query, silos, release, clip, noises):
        for silo, noise in zip(silos, noises, strict=True):
            count(query, silo, dataclasses.replace(release, noise=plans[0][silo][query.kind].noise), noise)
        return total(query, silos, release, clip, noises)

    def count_local(query, silo, release, clip, noise, stepsize):
        count(query, silo, release, noise, release.steps)
        return local(query, silo, release, clip, noise, stepsize)

    messages.message, messages.total, messages.local_model = count_message, count_total, count_local
    small.iterates(method, federation, small.start(case.model(), torch.float64), 1)
    for silo in range(2):
        for release in plans[0][silo].releases:
            assert sent[silo, release.kind] == release.count, release.kind
    assert set(kind for _, kind in sent) <= {release.kind for release in plans[0][0].releases}
