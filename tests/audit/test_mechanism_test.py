"""The mechanism test: every plant is found, and what is honest is left in peace."""

import functools
import math

import numpy as np
import pytest
import small
import torch
from plants import PLANTS
from scipy.stats import binom

from silodp.audit.mechanism_test import Transcripts, draw_findings, mechanism_test, noise_findings
from silodp.audit.noise_at_size import Size, size_tests
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.privacy.plan import Budget, PrivacyPlan, Release

STREAMS = Streams(17).child("mechanism")
# A claim so small that the noise hides a canary that is drawn a few times.
EPSILON, N, R = 0.75, 20, 4
PLANTED = ["minibatch_sgd", "fed_spider", "local_sgd"]


@functools.cache
def made(name):
    algorithm = small.ALGORITHM_CASES[name].make(R).fitted(N, None)
    return algorithm, algorithm.plan(Budget(N, R, EPSILON, N**-2.0, 4.0))


def verdict(name, streams, mechanism=Messages, runs=200, together=True, size=None):
    algorithm, plan = made(name)
    return mechanism_test(algorithm, [plan], streams, runs=runs, messages=mechanism, together=together, size=size)[0]


@pytest.mark.parametrize("name", small.ALGORITHM_CASES)
def test_the_trainers_messages_are_as_planned(name):
    found = verdict(name, STREAMS.child("honest", name), size=Size())
    assert not found.broken, found
    assert found.verdict_text == "as planned"


@pytest.mark.parametrize("name", [*PLANTED, "one_pass_accelerated_sgd"])
def test_runs_played_one_by_one_are_as_planned(name):
    assert not verdict(name, STREAMS.child("one by one", name), runs=30, together=False).broken


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("fault", PLANTS)
def test_every_plant_is_caught(fault, name):
    kinds = frozenset(release.kind for release in made(name)[1].releases if release.count)
    if not PLANTS[fault].applies(kinds):
        pytest.skip("nothing in this algorithm's messages can have this fault")
    plant = PLANTS[fault]
    runs = 40 if plant.alone else 200
    size = Size() if plant.at_size else None
    found = verdict(name, STREAMS.child(fault, name), plant.mechanism, runs, together=not plant.alone, size=size)
    assert found.broken, found
    assert found.p < 1e-5


def test_honest_mechanisms_fail_no_more_often_than_the_level():
    values = np.array([verdict("minibatch_sgd", STREAMS.child("level", k), runs=40).p for k in range(40)])
    for level in (0.05, 0.2, 0.5):
        assert binom.sf((values <= level).sum() - 1, len(values), level) > 1e-4
    assert values.min() > 1e-4


@pytest.mark.parametrize("noise_at", ["contracted_step", "end"])
def test_contracted_steps_are_audited(noise_at):
    """Hostile records meet these steps on linear models alone, and every other message on a network too."""
    algorithm = small.ALGORITHM_CASES["local_sgd"].make(R, noise_at=noise_at)
    plan = algorithm.plan(Budget(N, R, EPSILON, N**-2.0, 4.0))
    found = mechanism_test(algorithm, [plan], STREAMS.child("contracted", noise_at), runs=100)[0]
    assert found.verdict_text == "as planned"


def test_what_is_found_is_named():
    found = verdict("minibatch_sgd", STREAMS, PLANTS["no noise on the first half of the coordinates"].mechanism, 40)
    assert found.verdict_text.startswith("wrong size of noise (coordinate ")
    found = verdict("minibatch_sgd", STREAMS, PLANTS["the same batch in every round"].mechanism)
    assert found.verdict_text.startswith("records drawn again (messages ")


@pytest.mark.parametrize("size", [Size(31, 2, torch.float32), Size(5000, 25, torch.float32), Size(1, 1, torch.float64)])
@pytest.mark.parametrize("name", ["fed_spider", "local_sgd"])
def test_noise_at_any_size_is_as_planned(name, size):
    p = [family.p.min() * len(family.p) for family in size_tests(made(name)[1], Messages, STREAMS, size)]
    assert min(p) * len(p) > 1e-3


def test_noise_that_never_passes_four_deviations_is_found():
    """The mildest cut that an audit sees: 280,000 draws are needed at its level."""

    class Cut(Messages):
        def noise(self, rows, like, silo, round, kind):
            return super().noise(rows, like, silo, round, kind).clamp(-4, 4)

    assert verdict("minibatch_sgd", STREAMS.child("cut"), Cut, 40, size=Size()).verdict_text.startswith(
        "wrong share of large"
    )


def changed_at_size(change):
    """Noise (rows, d) that is changed by (draws, silo, round, weights)."""

    class Changed(Messages):
        def noise(self, rows, like, silo, round, kind):
            return change(super().noise(rows, like, silo, round, kind), silo, round, like)

    return Changed


def coordinates(z):
    return torch.arange(z.shape[1])


def of_silo_at_most(last):
    class Shared(Messages):
        def noise(self, rows, like, silo, round, kind):
            return super().noise(rows, like, min(silo, last), round, kind)

    return Shared


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd"])
@pytest.mark.parametrize(
    ("mechanism", "test"),
    [
        (of_silo_at_most(1), "noise repeated"),
        (changed_at_size(lambda z, *of: z[:, coordinates(z) % 500]), "noise repeated"),
        (changed_at_size(lambda z, *of: torch.where(coordinates(z) < 1000, z, -z.roll(1000, 1))), "noise repeated"),
        (changed_at_size(lambda z, *of: torch.where(coordinates(z) < 500, z, z.abs())), "noise off centre"),
        (changed_at_size(lambda z, silo, *of: z if silo < 2 else z.abs()), "noise off centre"),
        (changed_at_size(lambda z, silo, r, w: z if w.abs().max() < 1e6 else z.abs()), None),
        (changed_at_size(lambda z, *of: z * (coordinates(z) != 1234)), "wrong size of noise"),
    ],
)
def test_what_only_a_run_of_many_silos_and_coordinates_shows_is_found(mechanism, test, name):
    """The canary has two silos and a handful of coordinates: each of these was "as planned"."""
    found = verdict(name, STREAMS.child("many", name), mechanism, 40, size=Size())
    assert found.broken
    assert test is None or found.verdict_text.startswith(test)


def test_late_rows_of_a_draw_that_never_pass_three_deviations_are_found():
    """Of 192 steps the sum alone is seen, which is normal all the same."""
    cut = changed_at_size(lambda z, *of: torch.cat([z[:64], z[64:].clamp(-3, 3)]))
    found = verdict("local_sgd", STREAMS.child("rows"), cut, 20, together=False, size=Size())
    assert found.verdict_text.startswith("wrong share of large noise (beyond 3σ, rows ")


@pytest.mark.parametrize("name", PLANTED)
def test_noise_that_stops_where_training_does_not_go_is_found(name):
    mechanism = PLANTS["no noise at large weights"].mechanism
    assert min(family.p.min() for family in size_tests(made(name)[1], mechanism, STREAMS, Size(50, 2))) < 1e-9


@pytest.mark.parametrize(("noise", "move"), [(math.nan, 0.0), (0.0, math.inf)])
def test_messages_that_are_not_finite_are_a_fault(noise, move):
    plan = PrivacyPlan("minibatch_sgd", Budget(9, 1, 1.0, 1e-3, 1.0), (Release("gradient", 1, 3, 1.0),))
    sent = Transcripts(("gradient",), np.full((4, 1, 1, 1), noise), np.full((4, 1), move))
    faults = [fault for fault in (*noise_findings(sent), *draw_findings(sent, plan)) if fault.test == "not finite"]
    assert [fault.p for fault in faults] == [0.0]


def test_draws_of_a_subset_have_their_own_law():
    """A message draws a record once with probability K/n: by K draws of 1/n the level was .000 to .017 for .05."""
    n, K, runs = 100, 80, 200
    release = Release("gradient", 1, K, 1.0, sampler="subset")
    plan = PrivacyPlan("minibatch_sgd", Budget(n, 1, 1.0, 1e-3, 1.0), (release,))
    generator, below = np.random.default_rng(5), 0
    for _ in range(400):
        moves = (generator.random((runs, 1)) < K / n).astype(float)
        found = draw_findings(Transcripts(("gradient",), np.zeros((runs, 1, 1, 1)), moves), plan)
        below += next(f.p for f in found if f.test.startswith("record drawn too often")) < 0.05
    assert 0.02 < below / 400 < 0.08
