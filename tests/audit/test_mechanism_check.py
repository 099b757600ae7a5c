"""The mechanism check: it asks what training asks, every plant is found, and what is honest is left in peace."""

import collections
import functools
import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import small
import torch
from plants import PLANTS
from scipy.stats import binom, chi2, kstest
from sensitivity import broken_bounds

from silodp.algorithms import ALGORITHMS
from silodp.audit import mechanism_check
from silodp.audit.canary import CLIP, SCALES, WatchedFederation, deviation, occurrence
from silodp.audit.mechanism_check import (
    ALARM,
    Fault,
    Mechanism,
    Size,
    Transcripts,
    check_mechanism,
    draw_findings,
    noise_findings,
)
from silodp.experiments.training import train_stack
from silodp.federation.messages import Messages
from silodp.federation.simulated import SiloFederation
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.streams import Streams

STREAMS = Streams(17).child("mechanism")
# A claim so small that the noise hides a canary that is drawn a few times.
EPSILON, N, R, SILOS = 0.75, 20, 4, 3
PLANTED = ["minibatch_sgd", "fed_spider", "local_sgd"]
# More local steps than a block of rows of one draw.
STEPS = 80


@functools.cache
def made(name, n=N, batch=None):
    algorithm = small.ALGORITHM_CASES[name].make(R).fitted(n, batch)
    return algorithm, algorithm.plan(Budget(n, R, EPSILON, 1e-3, 4.0, batch))


def verdict(name, streams, mechanism=Messages, *, silos=SILOS, messages=400, **how):
    algorithm, plan = made(name, **how)
    return check_mechanism(algorithm, [[plan] * silos], streams, mechanism=mechanism, messages=messages)[0]


class CountedCalls(Messages):
    """Counts which functions make the messages."""

    calls: ClassVar[collections.Counter] = collections.Counter()

    def message(self, *words):
        self.calls["message"] += 1
        return super().message(*words)

    def total(self, *words):
        self.calls["total"] += 1
        return super().total(*words)

    def local_models(self, *words):
        self.calls["local_models"] += 1
        return super().local_models(*words)


def called(run):
    CountedCalls.calls.clear()
    run()
    return set(CountedCalls.calls)


# Algorithms on silos of 20 records, and the largest at which a round is made in one pass and beyond.
ASKED = [(name, SILOS, N, None) for name in small.ALGORITHM_CASES]
ASKED += [("minibatch_sgd", silos, 512, 512) for silos in (1, 2, 3)]


@pytest.mark.parametrize(("name", "silos", "n", "batch"), ASKED)
def test_the_audit_makes_messages_by_the_functions_that_training_makes_them_by(name, silos, n, batch):
    """And messages one by one beside sums, of which training sees the sums alone."""
    algorithm, plan = made(name, n, batch)
    case = small.MODEL_CASES["linear"]
    records = small.records(case, (n,) * silos, torch.float64)
    model, one = case.model(), torch.ones(1, dtype=torch.float64)
    sent = CountedCalls(model, records, STREAMS)
    federation = SiloFederation(sent, [[plan] * silos], 0.01 * one, one, silos, STREAMS)
    start = small.start(model, torch.float64)
    trained = called(lambda: train_stack(algorithm, federation, model, start, None))
    how = {"mechanism": CountedCalls, "messages": 2}
    audited = called(lambda: check_mechanism(algorithm, [[plan] * silos], STREAMS, **how))
    assert trained
    assert audited == trained | ({"message"} if "total" in trained else set())
    if batch:
        assert trained == ({"total"} if silos == 2 else {"message"})


def five_messages(messages, d, **how):
    """What is played of an algorithm that sends five messages of d coordinates a run."""
    algorithm = ALGORITHMS["minibatch_sgd"].with_options({"rounds": 5})
    plans = [[algorithm.plan(Budget(20, 5, 1.0, 1e-4, 1.0))]]
    CountedCalls.calls.clear()
    (played,) = mechanism_check._play(algorithm, plans, CountedCalls, messages, STREAMS, d, torch.float64, **how)
    return played


@pytest.mark.parametrize(
    ("messages", "runs", "sent"), [(1, 2, 1), (6, 2, 3), (10, 2, 5), (11, 3, 5), (20, 4, 5), (41, 9, 5)]
)
def test_runs_of_five_messages_are_played_until_enough_are_made_and_two_at_least(messages, runs, sent):
    """A run ends where two such would do."""
    played = five_messages(messages, 4, follow=True)
    assert (played.noise.shape, played.moves.shape) == ((runs, sent, 4), (runs, sent))
    assert CountedCalls.calls["message"] == 3 * runs * sent


@pytest.mark.parametrize(("d", "runs", "sent"), [(50_000, 2, 3), (30_000, 2, 5), (29_999, 3, 5)])
def test_of_noise_alone_300000_draws_are_enough(d, runs, sent):
    assert five_messages(10**6, d).noise.shape == (runs, sent, d)
    assert CountedCalls.calls["message"] == 2 * runs * sent


class SilentTotal(Messages):
    def total(self, query, silos, release, clip, noise_scales):
        self.factors = dict.fromkeys(silos, 0.0)
        return super().total(query, silos, release, clip, noise_scales)

    def noise(self, rows, like, silo, round, kind):
        return super().noise(rows, like, silo, round, kind) * getattr(self, "factors", {}).get(silo, 1.0)


class HalfTotal(SilentTotal):
    def noise(self, rows, like, silo, round, kind):
        return Messages.noise(self, rows, like, silo, round, kind) * (0.5 if hasattr(self, "factors") else 1.0)


class SharedTotal(SilentTotal):
    def noise(self, rows, like, silo, round, kind):
        return Messages.noise(self, rows, like, 0 if hasattr(self, "factors") else silo, round, kind)


@pytest.mark.parametrize("mechanism", [SilentTotal, HalfTotal, SharedTotal])
@pytest.mark.parametrize("silos", [2, 5])
def test_rounds_made_in_one_pass_have_every_silos_noise(mechanism, silos):
    """No noise, half of it, the same at all silos: each was "as planned", as single messages alone were looked at."""
    found = verdict("minibatch_sgd", STREAMS.child(silos), mechanism, silos=silos)
    assert found.broken
    assert found.verdict_text.startswith("wrong size of noise (")
    assert not verdict("fed_spider", STREAMS.child(silos), mechanism, silos=silos).broken


@pytest.mark.parametrize("name", small.ALGORITHM_CASES)
def test_the_trainers_messages_are_as_planned(name):
    found = verdict(name, STREAMS.child("honest", name))
    assert not found.broken, found
    assert found.verdict_text == "as planned"


@pytest.mark.parametrize("noise_at", ["contracted_step", "end"])
def test_contracted_steps_are_audited(noise_at):
    algorithm = small.ALGORITHM_CASES["local_sgd"].make(R, noise_at=noise_at)
    plan = algorithm.plan(Budget(N, R, EPSILON, 1e-3, 4.0))
    assert check_mechanism(algorithm, [[plan] * 2], STREAMS.child(noise_at))[0].verdict_text == "as planned"


def test_silos_of_unlike_size_and_points_of_unlike_noise_are_audited_together():
    algorithm = small.ALGORITHM_CASES["minibatch_sgd"].make(R)
    plans = [[algorithm.plan(Budget(n, R, epsilon, 1e-3, 4.0)) for n in (20, 31, 60)] for epsilon in (0.5, 8.0)]
    found = check_mechanism(algorithm, plans, STREAMS.child("unlike"), messages=400)
    assert [one.verdict_text for one in found] == ["as planned"] * 2


@pytest.mark.parametrize("fault", PLANTS)
def test_every_plant_is_found(fault):
    """By the property of clipped sums where the fault is in these, elsewhere by the check of an algorithm of three."""
    plant, size = PLANTS[fault], {"n": STEPS * 2, "batch": STEPS}
    if "clipped_sum" in vars(plant):
        assert any(broken_bounds(plant))
    else:
        assert any(verdict(name, STREAMS.child(fault, name), plant, **size).p < 1e-5 for name in PLANTED)


def test_what_is_found_is_named():
    found = verdict("minibatch_sgd", STREAMS, PLANTS["no noise on the first half of the coordinates"])
    assert found.verdict_text.startswith("wrong size of noise (coordinates 1 to ")
    found = verdict("minibatch_sgd", STREAMS, PLANTS["the same batch in every round"])
    assert found.verdict_text == "records drawn again (gradient of successive rounds)"


def test_a_mechanism_is_broken_below_the_alarms_level():
    worst = Fault("wrong size of noise", "gradient", ALARM / 4)
    assert [Mechanism(worst, p, 4).broken for p in (math.nextafter(ALARM, 0), ALARM, 1.0)] == [True, False, False]


def test_honest_mechanisms_fail_no_more_often_than_the_level():
    values = np.array([verdict("fed_spider", STREAMS.child("level", k), messages=60).p for k in range(40)])
    for level in (0.05, 0.2, 0.5):
        assert binom.sf((values <= level).sum() - 1, len(values), level) > 1e-4
    assert values.min() > 1e-4


def test_plans_whose_noise_is_not_known_are_refused():
    algorithm = ALGORITHMS["fedprox_spider"].with_options({"rounds": 4, "phase_length": 2, "smoothness": 1.0})
    for epsilon, message in ((1.0, "rests on an assumption"), (None, "no noise")):
        method = algorithm if epsilon else made("minibatch_sgd")[0]
        with pytest.raises(ValueError, match=message):
            check_mechanism(method, [[method.plan(Budget(N, R, epsilon, 1e-3, 4.0))] * 2], STREAMS)
    algorithm, plan = made("fed_spider")
    for place in (0, 1):
        bare = tuple(replace(release, noise=release.noise * (k != place)) for k, release in enumerate(plan.releases))
        with pytest.raises(ValueError, match="no noise"):
            check_mechanism(algorithm, [[plan, replace(plan, releases=bare)]], STREAMS)


TESTS_MADE = [("minibatch_sgd", 1, 4 + 2 * 27), ("minibatch_sgd", 2, 4 + 3 * 27), ("local_sgd", 2, 4 + 2 * 27)]
TESTS_MADE += [("prox_svrg", 1, 5 + 2 * 52), ("prox_svrg", 2, 5 + 3 * 52)]


@pytest.mark.parametrize(("name", "silos", "tests"), TESTS_MADE)
def test_a_verdict_counts_its_tests_of_messages_and_of_sums_where_such_are_made(name, silos, tests):
    """Of each kind's noise 5 of 5 families, 2 of all noise; played for draws, for noise, and apart beside sums."""
    found = verdict(name, STREAMS, silos=silos, messages=10)
    assert (found.tests, found.p) == (tests, min(1.0, found.worst.p * tests))


@pytest.mark.parametrize("name", ["minibatch_sgd_correlated", "dp_mu2_difference"])
def test_correlated_noise_is_audited_as_the_draws_that_it_is_mixed_from(name):
    size = Size(20, torch.float64)
    (found,), (plain,) = (
        check_mechanism(algorithm, [[plan]], STREAMS, size, messages=10)
        for algorithm, plan in (made(name), made("prox_sgd"))
    )
    assert found.worst[:2] == plain.worst[:2]
    assert found.worst.p == pytest.approx(plain.worst.p, rel=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", PLANTED)
def test_the_canary_moves_a_message_as_far_as_the_plan_allows(name, scale):
    """Of one record, drawn for sure: a gradient by 2L, a difference by 4L, but for what all records share."""
    algorithm, plan = made(name, 1, 1)
    sent = [
        WatchedFederation(
            [[plan] * 2], Messages, STREAMS, 4, torch.float64, scale, canary=canary, noisy=False, apart=True
        ).play(algorithm, math.inf, math.inf)
        for canary in (True, False)
    ]
    for one, other in zip(*sent, strict=True):
        assert not one.content[:, 2:].any()
        moved = float(np.linalg.norm(one.content - other.content))
        release = plan[one.kind]
        assert moved == pytest.approx(occurrence(plan, one.kind) * (0 in one.silos), rel=1e-6)
        assert occurrence(plan, one.kind) == pytest.approx(release.sensitivity * CLIP, rel=1e-3)


def test_local_steps_are_short_enough_for_the_silo_that_moves_most():
    algorithm, plan = made("local_sgd")
    far = algorithm.plan(Budget(N, R, EPSILON / 20, 1e-3, 4.0))

    def step(*plans, scale=1.0):
        return float(WatchedFederation([list(plans)], Messages, STREAMS, 4, torch.float64, scale).stepsize)

    assert step(plan, far) == step(far, plan) == step(far) < step(plan)
    assert step(plan, scale=1e7) == pytest.approx(1e7 * step(plan), rel=1e-12)
    # All steps and six deviations of their noise go a tenth of the way to where a gradient turns round.
    reach = CLIP * (plan["step"].steps + 6 * math.sqrt(plan["step"].steps) * plan["step"].noise)
    assert step(plan) * reach == pytest.approx(0.1 / 32, rel=1e-12)


def test_noise_at_the_end_of_local_steps_is_seen_at_its_size():
    algorithm = small.ALGORITHM_CASES["local_sgd"].make(R, noise_at="end")
    plan = algorithm.plan(Budget(N, R, EPSILON, 1e-3, 4.0))
    (sent, *_), (clean, *_) = (
        WatchedFederation([[plan]], Messages, STREAMS, 2000, torch.float64, 1.0, noisy=noisy).play(algorithm, 1, 1)
        for noisy in (True, False)
    )
    assert (sent.content - clean.content).std() == pytest.approx(deviation([plan], sent), rel=0.1)


@pytest.mark.parametrize(("coordinates", "played"), [(1, 2), (2, 2), (9, 9)])
def test_noise_is_played_at_the_models_coordinates_of_which_a_canary_takes_two(coordinates, played):
    widths = set()

    def note(z, silo, r, w):
        widths.add(z.shape[1])
        return z

    algorithm, plan = made("minibatch_sgd")
    check_mechanism(algorithm, [[plan]], STREAMS, Size(coordinates), mechanism=changed(note), messages=2)
    assert widths == {mechanism_check._FEW[0], played}


def test_the_noise_of_a_sum_is_that_of_all_its_silos():
    algorithm, plan = made("minibatch_sgd")
    other = algorithm.plan(Budget(N, R, 3.0, 1e-3, 4.0))
    federation = WatchedFederation([[plan, other]], Messages, STREAMS, 4, torch.float64, 1.0)
    (sent, *_) = federation.play(algorithm, 1, math.inf)
    assert sent.silos == (0, 1)
    both = CLIP * math.hypot(plan["gradient"].noise, other["gradient"].noise)
    assert deviation([plan, other], sent) == pytest.approx(both)


def coordinates(z):
    return torch.arange(z.shape[1])


def changed(change):
    """Noise (rows, d) that is changed by (draws, silo, round, weights)."""

    class Changed(Messages):
        def noise(self, rows, like, silo, round, kind):
            return change(super().noise(rows, like, silo, round, kind), silo, round, like)

    return Changed


class SharedFromTheThird(Messages):
    def noise(self, rows, like, silo, round, kind):
        return super().noise(rows, like, min(silo, 1), round, kind)


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd"])
@pytest.mark.parametrize(
    ("mechanism", "test"),
    [
        (SharedFromTheThird, None),
        (changed(lambda z, *of: z[:, coordinates(z) % 500]), "noise repeated"),
        (changed(lambda z, *of: torch.where(coordinates(z) < 1000, z, -z.roll(1000, 1))), "noise repeated"),
        (changed(lambda z, *of: torch.where(coordinates(z) < 500, z, z.abs())), None),
        (changed(lambda z, silo, *of: z if silo < 2 else z.abs()), None),
        (changed(lambda z, silo, r, w: z if w.abs().max() < 1e6 else z.abs()), None),
        (changed(lambda z, *of: z * (coordinates(z) != 1234)), "wrong size of noise (coordinate 1235 of "),
    ],
)
def test_what_only_a_run_of_many_silos_and_coordinates_shows_is_found(mechanism, test, name):
    found = verdict(name, STREAMS.child("many", name), mechanism)
    assert found.broken
    assert test is None or found.verdict_text.startswith(test)


def test_noise_that_never_passes_four_deviations_is_found():
    """The mildest cut that an audit sees: 280,000 draws are needed at its level."""
    cut = changed(lambda z, *of: z.clamp(-3.999, 3.999))
    found = verdict("minibatch_sgd", STREAMS.child("cut"), cut, messages=3000)
    assert found.verdict_text == "wrong share of large noise (beyond 4σ, all messages of gradient)"


@pytest.mark.parametrize("runs", [slice(None), slice(1)])
@pytest.mark.parametrize(("noise", "move"), [(math.nan, 0.0), (0.0, math.inf)])
def test_messages_that_are_not_finite_are_a_fault(noise, move, runs):
    plan = PrivacyPlan("minibatch_sgd", Budget(9, 1, 1.0, 1e-3, 1.0), (Release("gradient", 1, 3, 1.0),))
    sent = Transcripts(("gradient",), ((0,),), np.zeros((4, 1, 1)), np.zeros((4, 1)))
    sent.noise[runs], sent.moves[runs] = noise, move
    faults = [fault for fault in (*noise_findings(sent), *draw_findings(sent, plan)) if fault.test == "not finite"]
    assert [fault.p for fault in faults] == [0.0]


KINDS = ("gradient", "gradient", "difference", "difference") * 2
OF = ((0,), (1,)) * 4


LARGE = "wrong share of large noise"
AGAIN, UNDRAWN = "records drawn again", "canary not drawn of gradient"
APART = "{} runs, {} messages and {} coordinates apart"


def transcripts(plant):
    """Noise (runs, messages of two silos, coordinates) and moves (runs, messages), changed in place by `plant`."""
    generator = np.random.default_rng(3)
    noise, moves = generator.normal(size=(400, 8, 4)), (generator.random((400, 8)) < 0.5).astype(float)
    moves[:, 1::2] = 0
    plant(noise, moves)
    return Transcripts(KINDS, OF, noise, moves)


@pytest.mark.parametrize(
    ("plant", "test", "place"),
    [
        (lambda z, m: z[..., 1].__imul__(2), "wrong size of noise", "coordinate 2 of gradient"),
        (lambda z, m: np.abs(z[..., 2], out=z[..., 2]), "noise off centre", "coordinate 3 of difference"),
        (lambda z, m: z[:, 2].__imul__(2), "wrong size of noise", "message 3 of difference"),
        (lambda z, m: z[:, 1::2].__imul__(1.15), "wrong size of noise", "silo 2 of gradient"),
        (lambda z, m: z[1::2].__imul__(2), "wrong size of noise", "weights of 1e+07 of gradient"),
        (lambda z, m: z.clip(-2.5, 2.5, out=z), LARGE, "beyond 3σ, all messages of gradient"),
        (lambda z, m: z.__setitem__((..., 3), z[..., 0]), "noise repeated", APART.format(0, 0, 3)),
        (lambda z, m: z[:, 4].__setitem__(..., z[:, 0]), "noise repeated", APART.format(0, 4, 0)),
        (lambda z, m: z[:, 1::2].__setitem__(..., z[:, ::2]), "noise repeated", APART.format(0, 1, 0)),
        (lambda z, m: z[1::2].__setitem__(..., z[::2]), "noise repeated", APART.format(1, 0, 0)),
        (lambda z, m: z.__imul__(1 + 0.15 * m[..., None]), "wrong size of noise", "canary drawn of gradient"),
        (lambda z, m: z[:, ::2].__imul__(1.15 - 0.15 * m[:, ::2, None]), "wrong size of noise", UNDRAWN),
        (lambda z, m: m[:, 4].__setitem__(..., m[:, 0]), "records drawn again", "gradient of successive rounds"),
        (lambda z, m: m[:, 2].__setitem__(..., m[:, 0]), AGAIN, "gradient and the difference behind it"),
        (lambda z, m: m[1::2].__setitem__(..., m[::2]), "records drawn again", "difference of successive runs"),
        (lambda z, m: m[:, 2].__imul__(0), "record drawn too often or too seldom", "difference"),
        (lambda z, m: m[:, 2].__imul__(1.1), "moves by no whole number of occurrences", "without noise"),
        (lambda z, m: None, None, None),
    ],
)
def test_a_finding_names_where_the_fault_is(plant, test, place):
    """Half of the records are drawn; silo 1 holds the canary."""
    releases = tuple(Release(kind, 2, 5, 1.0, sampler="subset") for kind in ("gradient", "difference"))
    plan = PrivacyPlan("fed_spider", Budget(10, 4, 1.0, 1e-3, 1.0), releases)
    sent = transcripts(plant)
    found = [(one.test, one.where) for one in (*noise_findings(sent), *draw_findings(sent, plan)) if one.p < 1e-6]
    assert (test, place) in found if test else not found


def both_sides(law, value, discrete=True):
    return min(1.0, 2 * min(law.cdf(value), law.sf(value - 1 if discrete else value)))


def worst(test, tried):
    """`tried` is place → p; the smallest, times their number."""
    place = min(tried, key=tried.get)
    return test, place, min(1.0, tried[place] * len(tried))


def findings_one_by_one(sent):
    """What `noise_findings` says, test by test and place by place, but for repeats."""
    found = []
    for kind in dict.fromkeys(sent.kinds):
        of = [m for m, other in enumerate(sent.kinds) if other == kind]
        z, moves, silos = sent.noise[:, of], sent.moves[:, of], np.array([sent.silos[m][0] for m in of])
        first = np.broadcast_to(silos == 0, moves.shape)
        groups = {"weights of 1": z[0::2], "weights of 1e+07": z[1::2]}
        groups |= {"silo 1": z[:, silos == 0], "canary drawn": z[first & (moves > 0.5)]}
        groups |= {"canary not drawn": z[first & (moves <= 0.5)], "silo 2": z[:, silos == 1]}
        messages = {f"message {m + 1}": sent.noise[:, m] for m in of}
        blocks = {f"coordinates {c + 1} to {c + 1}": z[..., c] for c in range(z.shape[2])}
        single = {f"coordinate {c + 1}": z[..., c] for c in range(z.shape[2])}
        families = [{"all messages": z}, groups, messages, blocks, single]

        def add(test, p, what="", kind=kind, families=families):
            for family in families:
                found.append(worst(test, {f"{what}{name} of {kind}": p(values) for name, values in family.items()}))

        add("wrong size of noise", lambda v: both_sides(chi2(v.size), float((v**2).sum()), False))
        add("noise off centre", lambda v: both_sides(binom(v.size, 0.5), int((v > 0).sum())))
        for at in (2, 3, 4):
            law, what = chi2(1).sf(at**2), f"beyond {at}σ, "
            add(LARGE, lambda v, at=at, q=law: both_sides(binom(v.size, q), int((np.abs(v) > at).sum())), what)
    return [*found, ("noise not normal", "all messages", kstest(sent.noise.ravel(), "norm").pvalue)]


@pytest.mark.parametrize("runs", [7, 8])
def test_findings_are_those_of_one_test_after_the_other(runs):
    generator = np.random.default_rng(runs)
    kinds, silos = ("gradient", "gradient", "difference", "difference"), ((0,), (1,), (0,), (1,))
    noise = generator.normal(0.2, 1.3, size=(runs, 4, 3))
    noise[0], noise[1] = (2, 3, -4), 0
    moves = generator.integers(0, 3, (runs, 4)) * np.array([0.5, 0.0, 0.5, 0.0])
    sent = Transcripts(kinds, silos, noise, moves)
    found, wanted = [one for one in noise_findings(sent) if one.test != "noise repeated"], findings_one_by_one(sent)
    assert max(one.p for one in noise_findings(sent)) <= 1
    assert [(one.test, one.where) for one in found] == [one[:2] for one in wanted]
    np.testing.assert_allclose([one.p for one in found], [one[2] for one in wanted], rtol=1e-9)


def test_repeats_are_looked_for_at_every_distance():
    """By hand: the signs of a sequence agree with those `lag` places on more or less often than half of the times."""
    signs = np.sign(np.random.default_rng(0).normal(size=(5, 3, 4)))
    signs[3:] = signs[:2]
    flat = signs.ravel()
    alike = {lag: int((flat[lag:] == flat[:-lag]).sum()) for lag in range(1, flat.size)}
    p = {lag: both_sides(binom(flat.size - lag, 0.5), agree) * flat.size for lag, agree in alike.items()}
    found = mechanism_check._repeated(signs)
    assert found.where == "3 runs, 0 messages and 0 coordinates apart"
    assert found.p == pytest.approx(p[36]) == pytest.approx(min(p.values()))


def test_a_group_of_one_value_is_tested_too():
    sent = Transcripts(("gradient",), ((0,),), np.array([[[9.0]], [[0.1]]]), np.array([[1.0], [0.0]]))
    assert list(noise_findings(sent))[1][:2] == ("wrong size of noise", "weights of 1 of gradient")


def test_moves_are_not_counted_where_any_kind_has_only_its_mean_clipped():
    releases = Release("gradient", 1, 3, 1.0), Release("difference", 1, 3, 1.0, clipping="batch_mean")
    plan = PrivacyPlan("any", Budget(9, 1, 1.0, 1e-3, 1.0), releases)
    sent = Transcripts(("gradient", "difference"), ((0,),) * 2, np.zeros((4, 2, 1)), np.full((4, 2), 0.5))
    assert list(draw_findings(sent, plan)) == []


def test_a_message_may_be_a_fiftieth_of_an_occurrence_off():
    """Of one, or of all where there are several."""
    plan = PrivacyPlan("any", Budget(9, 1, 1.0, 1e-3, 1.0), (Release("gradient", 1, 3, 1.0),))
    for move, p in ((0.02, 1.0), (math.nextafter(0.02, 1), 0.0), (0.97, 0.0), (3.05, 1.0), (3.07, 0.0)):
        sent = Transcripts(("gradient",), ((0,),), np.zeros((4, 1, 1)), np.full((4, 1), move))
        assert next(draw_findings(sent, plan)) == ("moves by no whole number of occurrences", "without noise", p)


@pytest.mark.parametrize("sampler", ["subset", "replacement"])
def test_a_record_that_moves_messages_more_often_than_they_draw_is_a_fault(sampler):
    """As where nothing is clipped: the binomial law has no probability for it."""
    plan = PrivacyPlan("any", Budget(9, 1, 1.0, 1e-3, 1.0), (Release("gradient", 1, 3, 1.0, sampler=sampler),))
    sent = Transcripts(("gradient",), ((0,),), np.zeros((4, 1, 1)), np.full((4, 1), 300.0))
    assert {fault.p for fault in draw_findings(sent, plan) if fault.test.startswith("record drawn")} == {0.0}


REPLACED = "replacement", "replacement"


@pytest.mark.parametrize(
    ("samplers", "K"), [(("subset", "subset"), 3), (REPLACED, 3), (REPLACED, 800), (("subset", "replacement"), 3)]
)
def test_findings_about_draws_are_those_of_one_test_after_the_other(samplers, K):
    """Two kinds of K of 8 records in turn, over 9 runs, of which the last has no partner."""
    n, runs, kinds = 8, 9, ("gradient", "difference", "gradient", "difference")
    releases = tuple(Release(kind, 2, K, 1.0, sampler=how) for kind, how in zip(kinds, samplers, strict=False))
    plan = PrivacyPlan("fed_spider", Budget(n, 4, 1.0, 1e-3, 1.0), releases)
    moves = np.random.default_rng(3).integers(0, 2 if "subset" in samplers else 3, (runs, 4)).astype(float)
    found = list(draw_findings(Transcripts(kinds, ((0,),) * 4, np.zeros((runs, 4, 1)), moves), plan))
    laws = [binom(1, K / n) if how == "subset" else binom(K, 1 / n) for how in samplers]

    def again(pairs, one, other):
        differ = 1 - float((one.pmf(range(K + 1)) * other.pmf(range(K + 1))).sum())
        apart = [first != second for first, second in pairs]
        return both_sides(binom(len(apart), differ), sum(apart))

    wanted = [("moves by no whole number of occurrences", "without noise", 1.0)]
    for kind, (i, j), how, law in zip(kinds, ((0, 2), (1, 3)), samplers, laws, strict=False):
        counts = moves[:, [i, j]]
        drawn = binom(counts.size, K / n) if how == "subset" else binom(counts.size * K, 1 / n)
        wanted.append(("record drawn too often or too seldom", kind, both_sides(drawn, counts.sum())))
        pairs = zip(counts[0:8:2].ravel(), counts[1:8:2].ravel(), strict=True)
        wanted.append(("records drawn again", f"{kind} of successive runs", again(pairs, law, law)))
        pairs = zip(moves[:, i], moves[:, j], strict=True)
        wanted.append(("records drawn again", f"{kind} of successive rounds", again(pairs, law, law)))
    for places, where in (((0, 2), "gradient and the difference"), ((1,), "difference and the gradient")):
        pairs = [(row[m], row[m + 1]) for row in moves for m in places]
        wanted.append(("records drawn again", f"{where} behind it", again(pairs, *laws)))
    assert [(one.test, one.where) for one in found] == [one[:2] for one in wanted]
    np.testing.assert_allclose([one.p for one in found], [one[2] for one in wanted], rtol=1e-9)


@pytest.mark.parametrize(
    ("how", "moves", "sound"),
    [
        ({"sampler": "disjoint"}, [[0, 1], [0, 0]], True),
        ({"sampler": "disjoint"}, [[1, 1], [0, 0]], False),
        ({"sampler": "all"}, [[1, 1], [1, 1]], True),
        ({"sampler": "all"}, [[1, 1], [0, 0]], False),
        ({"sampler": "all", "part": (0, 3)}, [[1, 1], [0, 0]], True),
        ({"sampler": "all", "part": (0, 3)}, [[1, 1], [0, 1]], False),
    ],
)
def test_a_record_is_drawn_as_often_as_the_sampler_says(how, moves, sound):
    plan = PrivacyPlan("any", Budget(9, 2, 1.0, 1e-3, 1.0), (Release("gradient", 2, 3, 1.0, **how),))
    sent = Transcripts(("gradient",) * 2, ((0,),) * 2, np.zeros((2, 2, 1)), np.array(moves, dtype=float))
    p = {fault.test: fault.p for fault in draw_findings(sent, plan)}
    assert p["record not drawn once"] == float(sound)


def test_draws_of_a_subset_have_their_own_law():
    """A message draws a record once with probability K/n: by K draws of 1/n the level was .000 to .017 for .05."""
    n, K, runs = 100, 80, 200
    release = Release("gradient", 1, K, 1.0, sampler="subset")
    plan = PrivacyPlan("minibatch_sgd", Budget(n, 1, 1.0, 1e-3, 1.0), (release,))
    generator, below = np.random.default_rng(5), 0
    for _ in range(400):
        moves = (generator.random((runs, 1)) < K / n).astype(float)
        found = draw_findings(Transcripts(("gradient",), ((0,),), np.zeros((runs, 1, 1)), moves), plan)
        below += next(f.p for f in found if f.test.startswith("record drawn too often")) < 0.05
    assert 0.02 < below / 400 < 0.08
