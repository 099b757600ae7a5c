"""The mechanism test: every plant is found, and what is honest is left in peace."""

import functools
import itertools
import math

import numpy as np
import pytest
import small
import torch
from plants import PLANTS
from scipy.stats import binom, chi2, kstest

from silodp.audit import noise_at_size
from silodp.audit.mechanism_test import Transcripts, draw_findings, hostile_findings, mechanism_test, noise_findings
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


def planted_transcripts(plant):
    """Honest noise (runs, silos, messages, coordinates) and moves (runs, messages), changed in place by `plant`."""
    generator = np.random.default_rng(3)
    noise, moves = generator.normal(size=(400, 2, 4, 4)), (generator.random((400, 4)) < 0.5).astype(float)
    plant(noise, moves)
    return Transcripts(("gradient", "difference") * 2, noise, moves)


def first_of(noise, rows):
    """The first silo's noise of the messages that `rows` chooses."""
    return np.where(rows[..., None], np.abs(noise[:, 0]), noise[:, 0])


@pytest.mark.parametrize(
    ("plant", "test", "place"),
    [
        (lambda z, m: z[:, :, ::2, 1].__imul__(2), "wrong size of noise", "coordinate 2 of gradient"),
        (lambda z, m: np.abs(z[:, :, 1::2, 2], out=z[:, :, 1::2, 2]), "noise off centre", "coordinate 3 of difference"),
        (lambda z, m: z[:, :, 1].__imul__(2), "wrong size of noise", "message 2, difference"),
        (lambda z, m: z[:, 1].__imul__(2), "wrong size of noise", "silo 2"),
        (lambda z, m: z.__setitem__((..., 3), z[..., 0]), "noise repeated", "coordinates 1 and 4"),
        (lambda z, m: z[:, :, 2].__setitem__(..., z[:, :, 0]), "noise repeated", "messages 1 and 3"),
        (lambda z, m: z[:, 1].__setitem__(..., z[:, 0]), "noise repeated", "silos 1 and 2"),
        (lambda z, m: z[1::2].__setitem__(..., z[::2]), "noise repeated", "successive runs"),
        (
            lambda z, m: z[:, 0, :, 2].__setitem__(..., first_of(z, m > 0)[..., 2]),
            "noise follows records",
            "coordinate 3, canary drawn",
        ),
        (
            lambda z, m: z[:, 0, :, 2].__setitem__(..., first_of(z, m == 0)[..., 2]),
            "noise follows records",
            "coordinate 3, canary not drawn",
        ),
        (lambda z, m: z[:, 0].__imul__(1 + m[..., None]), "noise follows records", "size, canary drawn"),
        (lambda z, m: z[:, 0].__imul__(2 - m[..., None]), "noise follows records", "size, canary not drawn"),
        (lambda z, m: m[:, 2].__setitem__(..., m[:, 0]), "records drawn again", "messages 1 and 3"),
        (lambda z, m: m[:, 3].__setitem__(..., m[:, 2]), "records drawn again", "messages 3 and 4"),
        (lambda z, m: m[1::2].__setitem__(..., m[::2]), "records drawn again", "difference of successive runs"),
        (lambda z, m: m[:, 1].__imul__(0), "record drawn too often or too seldom", "difference"),
        (lambda z, m: None, None, None),
    ],
)
def test_a_finding_names_where_the_fault_is(plant, test, place):
    """Half of the records are drawn; silo 1 holds the canary."""
    releases = tuple(Release(kind, 2, 5, 1.0, sampler="subset") for kind in ("gradient", "difference"))
    plan = PrivacyPlan("fed_spider", Budget(10, 4, 1.0, 1e-3, 1.0), releases)
    sent = planted_transcripts(plant)
    found = [(one.test, one.where) for one in (*noise_findings(sent), *draw_findings(sent, plan)) if one.p < 1e-6]
    assert (test, place) in found if test else not found


@pytest.mark.parametrize(
    ("change", "test", "place"),
    [
        (lambda z, silo, *of: z.abs() if silo == 2 else z, "noise off centre", "silo 3 of gradient"),
        (lambda z, s, r, w: z * 2 if w.abs().max() > 1e6 else z, "wrong size of noise", "weights of 1e+07 of gradient"),
        (
            lambda z, *of: torch.where((coordinates(z) >= 100) & (coordinates(z) < 200), z.abs(), z),
            "noise off centre",
            "coordinates 101 to 200 of gradient",
        ),
        (lambda z, *of: z * (1 + (coordinates(z) == 1234)), "wrong size of noise", "coordinate 1235 of gradient"),
        (lambda z, *of: z.clamp(-4, 4), "wrong share of large noise", "beyond 4σ, all messages of gradient"),
        (
            lambda z, *of: torch.where(coordinates(z) < 700, z, z.roll(700, 1)),
            "noise repeated",
            "0 messages and 700 coordinates of gradient apart",
        ),
    ],
)
def test_a_finding_at_a_runs_size_names_where_the_fault_is(change, test, place):
    families = size_tests(made("minibatch_sgd")[1], changed_at_size(change), STREAMS.child("named"), Size(1600, 4))
    worst = {(one.test, one.where[int(one.p.argmin())]): float(one.p.min()) for one in families}
    assert worst[test, place] < 1e-4
    assert worst[test, place] == min(p for (other, _), p in worst.items() if other == test)


def both_sides(law, value, discrete=True):
    return min(1.0, 2 * min(law.cdf(value), law.sf(value - 1 if discrete else value)))


def worst(test, tried):
    """`tried` is place → p; the smallest, times their number."""
    place = min(tried, key=tried.get)
    return test, place, min(1.0, tried[place] * len(tried))


def agreement(z, w):
    return both_sides(binom(z.size, 0.5), int(((z > 0) == (w > 0)).sum()))


def findings_one_by_one(sent):
    """What `noise_findings` says of two silos, message by message and coordinate by coordinate."""
    z, drawn = sent.noise, sent.moves > 0.5
    T, S, M, d = z.shape
    found = []
    for kind in dict.fromkeys(sent.kinds):
        of = np.stack([z[:, :, m] for m in range(M) if sent.kinds[m] == kind])
        size = T * S * len(of)
        places = {f"coordinate {c + 1} of {kind}": of[..., c] for c in range(d)}
        squares = {k: both_sides(chi2(size), float((v**2).sum()), False) for k, v in places.items()}
        found.append(worst("wrong size of noise", squares))
        signs = {k: both_sides(binom(size, 0.5), int((v > 0).sum())) for k, v in places.items()}
        found.append(worst("noise off centre", signs))
    messages = {f"message {m + 1}, {sent.kinds[m]}": z[:, :, m] for m in range(M)}
    for parts in (messages, {f"silo {s + 1}": z[:, s] for s in range(S)}):
        tried = {k: both_sides(chi2(v.size), float((v**2).sum()), False) for k, v in parts.items()}
        found.append(worst("wrong size of noise", tried))
    for what, axis in (("coordinates", 3), ("messages", 2), ("silos", 1)):
        parts = np.moveaxis(z, axis, 0)
        pairs = itertools.combinations(range(len(parts)), 2)
        tried = {f"{what} {i + 1} and {j + 1}": agreement(parts[i], parts[j]) for i, j in pairs}
        found.append(worst("noise repeated", tried))
    even = T - T % 2
    found.append(worst("noise repeated", {"successive runs": agreement(z[0:even:2], z[1:even:2])}))
    for name, rows in (("drawn", drawn), ("not drawn", ~drawn)):
        of, count = z[:, 0][rows], int(rows.sum())
        signs = {c: both_sides(binom(count, 0.5), int((of[:, c] > 0).sum())) for c in range(d)}
        follows = {f"coordinate {c + 1}, canary {name}": p for c, p in signs.items()}
        found.append(worst("noise follows records", follows))
        size = {f"size, canary {name}": both_sides(chi2(count * d), float((of**2).sum()), False)}
        found.append(worst("noise follows records", size))
    return [*found, ("noise not normal", "all coordinates", kstest(z.ravel(), "norm").pvalue)]


@pytest.mark.parametrize("runs", [7, 8])
def test_findings_are_those_of_one_test_after_the_other(runs):
    generator = np.random.default_rng(runs)
    kinds = ("gradient", "difference", "gradient")
    noise, moves = generator.normal(0.2, 1.3, size=(runs, 2, 3, 4)), generator.integers(0, 3, (runs, 3)).astype(float)
    sent = Transcripts(kinds, noise, moves)
    found, wanted = list(noise_findings(sent)), findings_one_by_one(sent)
    assert [(one.test, one.where) for one in found] == [one[:2] for one in wanted]
    np.testing.assert_allclose([one.p for one in found], [one[2] for one in wanted], rtol=1e-9)


@pytest.mark.parametrize("sampler", ["subset", "replacement"])
def test_findings_about_draws_are_those_of_one_test_after_the_other(sampler):
    """Two kinds of 3 of 8 records in turn, over 9 runs, of which the last has no partner."""
    n, K, runs, kinds = 8, 3, 9, ("gradient", "difference", "gradient", "difference")
    releases = (Release("gradient", 2, K, 1.0, sampler=sampler), Release("difference", 2, K, 1.0, sampler=sampler))
    plan = PrivacyPlan("fed_spider", Budget(n, 4, 1.0, 1e-3, 1.0), releases)
    moves = np.random.default_rng(3).integers(0, 2 if sampler == "subset" else 3, (runs, 4)).astype(float)
    found = list(draw_findings(Transcripts(kinds, np.zeros((runs, 1, 4, 1)), moves), plan))
    law = binom(1, K / n) if sampler == "subset" else binom(K, 1 / n)
    differ = 1 - float((law.pmf(range(K + 1)) ** 2).sum())
    wanted = [("moves by no whole number of occurrences", "without noise", 1.0)]
    for kind, members in (("gradient", [0, 2]), ("difference", [1, 3])):
        counts = moves[:, members]
        drawn = binom(counts.size, K / n) if sampler == "subset" else binom(counts.size * K, 1 / n)
        wanted.append(("record drawn too often or too seldom", kind, both_sides(drawn, counts.sum())))
        apart = int((counts[0:8:2] != counts[1:8:2]).sum())
        wanted.append(("records drawn again", f"{kind} of successive runs", both_sides(binom(8, differ), apart)))
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        apart = int((moves[:, i] != moves[:, j]).sum())
        wanted.append(("records drawn again", f"messages {i + 1} and {j + 1}", both_sides(binom(runs, differ), apart)))
    assert [(one.test, one.where) for one in found] == [one[:2] for one in wanted]
    np.testing.assert_allclose([one.p for one in found], [one[2] for one in wanted], rtol=1e-9)


@pytest.mark.parametrize(("factor", "broken"), [(1.0, False), (1.001, True)])
@pytest.mark.parametrize("name", ["minibatch_sgd", "fed_spider", "local_sgd"])
def test_a_message_may_move_by_its_sensitivity_and_no_more(name, factor, broken):
    class Longer(Messages):
        def clipped_sum(self, points, silos, drawn):
            return super().clipped_sum(points, silos, drawn) * factor

        def local_steps(self, start, silos, drawn, noise):
            moved = super().local_steps(start, silos, drawn, noise)
            return start.weights + (moved - start.weights) * factor

    found = [fault for fault in hostile_findings(made(name)[1], Longer) if fault.p == 0]
    assert bool(found) == broken
    assert {fault.test for fault in found} <= {"moves beyond its sensitivity"}


def test_families_at_a_runs_size_are_named_and_have_exact_levels():
    families = list(size_tests(made("local_sgd")[1], Messages, STREAMS.child("names"), Size(40, 3)))
    places = {where for family in families for where in family.where}
    assert {f"silo {silo} of step" for silo in (1, 2, 3)} <= places
    assert {"silo 1 of 192 steps", "weights of 1 of 192 steps", "coordinate 40 of step"} <= places
    assert {where for where in places if where.startswith("rows ")} == {
        f"rows {start} to {start + 63} of step" for start in (1, 65, 129)
    }
    totals, counts = np.array([3.0, 9.0, 30.0]), np.array([0, 4, 9])
    np.testing.assert_allclose(noise_at_size._chi2(totals, 9), 2 * np.minimum(chi2(9).cdf(totals), chi2(9).sf(totals)))
    law = binom(9, 0.3)
    np.testing.assert_allclose(
        noise_at_size._counts(counts, 9, 0.3), 2 * np.minimum(law.cdf(counts), law.sf(counts - 1))
    )


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
