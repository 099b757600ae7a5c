"""What a silo promises, by statistics and by accident: time, noise at the worst questions, old ledgers, plug-ins."""

import contextlib
import itertools
import math
import os
import threading
import time
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats
from three_silos import run_plan, seeded_key

from silodp.config.errors import ConfigError
from silodp.federation.clipped_sums import Points
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.silos.lattice import LatticeMessages
from silodp.silos.ledger import opened
from silodp.silos.silo import PunctualReplies, Silo
from silodp.silos.wire import FAULT, GREETING, HELLO, NO_MARK, pack, unpack
from silodp.streams import Streams

RUN = b"r" * 32
MODELS = {"logistic": {"name": "logistic"}, "perceptron": {"name": "perceptron", "hidden": 40}}


def many_coordinates(rounds=40):
    return run_plan(rounds=rounds, model={"name": "perceptron", "hidden": 40})


def made_silo(plan, folder, records):
    folder.mkdir(parents=True)
    return Silo(plan, 0, records, folder, RUN, os.urandom(32))


def alike(n=40, value=0.4):
    """Records that all have one gradient, so that a batch's mean does not depend on the batch."""
    return torch.full((n, 3), value, dtype=torch.float64), torch.ones(n, dtype=torch.int64)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logistic", "perceptron"])
def test_the_time_of_a_reply_tells_nothing_of_a_record(model, tmp_path):
    """200 replies with and without a record whose gradient overflows."""
    plan = run_plan(rounds=200, model=MODELS[model], reply_after=0.15)
    x, y = alike()
    odd = x.clone()
    odd[0] = 1e300
    y = y.double() if model == "logistic" else y
    made = [made_silo(plan, tmp_path / str(place), records) for place, records in enumerate(((x, y), (odd, y)))]
    replies, times, late = [PunctualReplies(one, 0.15) for one in made], ([], []), [0, 0]
    # In random order slot by slot, so that the machine's other work falls on both.
    for slot, first in enumerate(np.random.default_rng(0).integers(0, 2, 200)):
        for place in (first, 1 - first):
            began = time.monotonic()
            late[place] += replies[place].reply(pack(RUN, slot, np.full(plan.size, 0.5))) == FAULT
            times[place].append(time.monotonic() - began)
    assert min(min(took) for took in times) >= 0.15
    assert stats.ks_2samp(*times).pvalue > 1e-4
    # On a busy machine work may take too long, whatever the records.
    assert stats.fisher_exact([late, [200 - late[0], 200 - late[1]]]).pvalue > 1e-4


def worst_points(plan, slots):
    """Questions that a hostile coordinator may ask, one a slot: ±B, saturating, zero, alternating, repeated, tiny."""
    B, d = plan.federation.bound, plan.size
    signs = np.where(np.arange(d) % 2, 1.0, -1.0)
    kinds = [np.full(d, B), np.full(d, -B), np.full(d, 30.0), np.zeros(d), B * signs, -B * signs]
    kinds += [np.full(d, 0.5), np.full(d, 5e-324)]
    return list(itertools.islice(itertools.cycle(kinds), slots))


def deviations(plan, folder, records, line=contextlib.nullcontext):
    """Replies less the mean without noise, over the plan's noise, (slots, d).

    Slots are asked in another order, pairs at opposite weights. Each question again gets the same bytes, and another of
    its slot the fault. `line(silo)` gives what asks.
    """
    made, slots, found = made_silo(plan, folder, records), plan.slots[0], []
    points = worst_points(plan, len(slots))
    quiet = LatticeMessages(plan.model, [alike()], lambda *_: bytes(32), plan.federation.bound)
    _, clip = plan.point()
    with line(made) as asks:
        ask = made.reply if asks is made else asks
        for number in map(int, np.random.default_rng(0).permutation(len(points))):
            slot, asked = slots[number], [points[number], -points[number]][: 1 + slots[number].has_pair]
            question = pack(RUN, number, *asked)
            reply = ask(question)
            assert ask(question) == reply
            assert ask(pack(RUN, number, *[np.full(plan.size, 0.1)] * len(asked))) == FAULT
            values = unpack(reply, RUN, plan.size)[1][0]
            weights, *previous = (torch.from_numpy(point)[None] for point in asked)
            at = Points(weights, clip, previous[0] if previous else None, slot.factors)
            mean = quiet.clipped_sum(at, [0], [slice(None)])[0].numpy() / len(alike()[1])
            found.append((values - mean) / (plan.plans[0][slot.kind].noise * plan.federation.clip))
    return np.array(found)


def seems_planned(found):
    """Whether deviations are standard normal, in every coordinate, and without a trend from slot to slot."""
    total = stats.chi2(found.size)
    tails = [
        2 * min(total.cdf((found**2).sum()), total.sf((found**2).sum())),
        stats.kstest(found.ravel(), "norm").pvalue,
    ]
    one = stats.chi2(len(found))
    tails += [2 * min(one.cdf(q), one.sf(q)) * found.shape[1] for q in (found**2).sum(0)]
    between = (found[1:] * found[:-1]).sum() / math.sqrt(found[1:].size)
    across = (found[:, 1:] * found[:, :-1]).sum() / math.sqrt(found[:, 1:].size)
    tails += [2 * stats.norm.sf(abs(z)) for z in (between, across)]
    # A saturated Gaussian, cut at 3 deviations, lacks its far tail.
    far = (abs(found) > 3).sum()
    tails.append(stats.binom.cdf(far, found.size, 2 * stats.norm.sf(3)))
    return min(tails) > 1e-5 / len(tails)


@contextlib.contextmanager
def over_a_line(silo, folder):
    """What asks a silo over its line, on a socket in `folder`."""
    line = pytest.importorskip("silodp.silos.line", reason="grpcio: requirements/federate.lock")
    address, size = f"unix:{folder}/line", silo.plan.size
    lines = line.Lines(address, {0: "north"}, b"", b"", size, lambda silo: bytes(GREETING.size), lambda *words: True)
    hello = HELLO.pack(b"n" * 16, b"f" * 32, b"c" * 32, RUN)
    words = (address, "north", None, size, lambda greeting: hello, silo.reply, 60, 60)
    thread = threading.Thread(target=line.join, args=words, daemon=True)
    thread.start()
    assert lines.wait(1, 60) == [0]
    yield lambda question: lines.ask(0, question, 60)
    lines.end({0: bytes(32)})
    thread.join(60)


@pytest.mark.parametrize(("name", "options"), [("minibatch_sgd", {}), ("fedprox_spider", {"phase_length": 2})])
@pytest.mark.parametrize("is_line", [False, True])
def test_the_worst_questions_get_the_noise_of_the_plan(name, options, is_line, tmp_path):
    plan = run_plan(name, options, rounds=60, model={"name": "perceptron", "hidden": 40})
    line = partial(over_a_line, folder=tmp_path) if is_line else contextlib.nullcontext
    assert {slot.has_pair for slot in plan.slots[0]} == ({False, True} if options else {False})
    assert seems_planned(deviations(plan, tmp_path / "honest", alike(), line))


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("noise_at", ["step", "contracted_step", "end"])
def test_local_steps_of_a_silo_lead_where_the_algorithms_do(noise_at, label):
    """The clip bites at one label, and at the other not."""
    plan = run_plan("local_sgd", {"noise_at": noise_at})
    # Records so long that a step of theirs expands distances.
    x, y = alike(value=3.0)
    (stepsize, clip), (release,), long = plan.point(), plan.plans[0].releases, [(x, y * label)]
    query, noise = Query(torch.full((1, plan.size), 0.3, dtype=torch.float64), 0, release.kind), 1e-9 * clip
    exact = Messages(plan.model, long, Streams(0)).local_model(query, 0, release, clip, 0 * noise, stepsize)
    found = LatticeMessages(plan.model, long, seeded_key, plan.federation.bound).local_model(
        query, 0, release, clip, noise, stepsize
    )
    assert abs(exact - query.weights).max() > 0.01
    assert torch.allclose(found, exact, atol=1e-6)
    assert not torch.equal(found, exact)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e160])
@pytest.mark.parametrize("noise_at", ["step", "contracted_step", "end"])
def test_a_record_that_is_not_finite_leaves_a_silos_steps_their_noise(noise_at, value):
    """Its message was NaN, which tells that it was drawn."""
    plan = run_plan("local_sgd", {"noise_at": noise_at})
    (stepsize, clip), (release,) = plan.point(), plan.plans[0].releases
    query = Query(torch.full((1, plan.size), 0.3, dtype=torch.float64), 0, release.kind)
    messages = LatticeMessages(plan.model, [alike(value=value)], seeded_key, plan.federation.bound)
    found = messages.local_model(query, 0, release, clip, 1e-9 * clip, stepsize)
    assert torch.allclose(found, query.weights, atol=1e-6)


@pytest.mark.parametrize("noise_at", ["step", "contracted_step", "end"])
def test_local_steps_of_a_silo_have_the_plans_noise(noise_at):
    """Of records of zeros: η times the noise of each of K steps, or at the end of the mean of K gradients times ηK."""
    plan = run_plan("local_sgd", {"noise_at": noise_at})
    (stepsize, clip), (release,), zeros = plan.point(), plan.plans[0].releases, [alike(value=0.0)]
    messages, sent = LatticeMessages(plan.model, zeros, seeded_key, plan.federation.bound), []
    weights = torch.full((1, plan.size), 0.3, dtype=torch.float64)
    for number in range(300):
        query = Query(weights, number, release.kind)
        sent.append(messages.local_model(query, 0, release, clip, release.noise * clip, stepsize) - weights)
    steps = release.records if release.steps == 1 else math.sqrt(release.steps)
    z = torch.stack(sent).numpy() / (release.noise * float(clip) * float(stepsize) * steps)
    law = stats.chi2(z.size)
    assert min(law.cdf((z**2).sum()), law.sf((z**2).sum())) > 1e-4


PLANTS = {
    "half the noise": lambda draws: draws // 2,
    "cut at 3 deviations": lambda draws: draws.clip(-3 * (1 << 20), 3 * (1 << 20)),
    "no noise on a coordinate": lambda draws: np.concatenate([draws[:, :-1], 0 * draws[:, -1:]], axis=1),
    "one draw for all coordinates": lambda draws: np.repeat(draws[:, :1], draws.shape[1], axis=1),
    "uniform": lambda draws: np.round(np.random.default_rng().uniform(-1, 1, draws.shape) * abs(draws).max()),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_the_same_questions_find_a_silo_with_other_noise(plant, tmp_path, monkeypatch):
    steps = LatticeMessages._steps
    monkeypatch.setattr(LatticeMessages, "_steps", lambda *words: PLANTS[plant](steps(*words)).astype(np.float64))
    rounds = 150 if plant.startswith("cut") else 40  # a far tail takes many draws
    assert not seems_planned(deviations(many_coordinates(rounds), tmp_path / "planted", alike()))


def test_noise_that_repeats_is_found(tmp_path, monkeypatch):
    plan = many_coordinates()
    with monkeypatch.context() as patched:
        patched.setattr(os, "urandom", lambda size: bytes(size))
        assert not seems_planned(deviations(plan, tmp_path / "repeats", alike()))


@pytest.mark.parametrize("lost", ["the newest line", "the ledger and its secret"])
def test_an_older_ledger_is_told_by_the_coordinators_mark(lost, tmp_path):
    def changed(do):
        with opened(tmp_path) as ledger:
            return do(ledger)

    ledger, key = tmp_path / "ledger.jsonl", tmp_path / ".ledger.key"
    changed(lambda book: book.set_budget(3.0))
    older, yesterday = (ledger.read_bytes(), key.read_bytes()), changed(lambda book: book.mark(RUN, 1))
    changed(lambda book: book.set_budget(4.0))
    newest, today = (ledger.read_bytes(), key.read_bytes()), changed(lambda book: book.mark(RUN, 2))
    for mark in (NO_MARK, yesterday, today):
        changed(lambda book, mark=mark: book.hold_to(mark))
    ledger.write_bytes(older[0])
    key.write_bytes(older[1])
    if lost != "the newest line":
        ledger.unlink()
        key.unlink()
    changed(lambda book: book.set_budget(5.0))  # a line that is another's in the newest
    with pytest.raises(ConfigError, match=r"the coordinator knows a newer copy of it \(refused\.mark\)"):
        changed(lambda book: book.hold_to(today))
    with pytest.raises(ConfigError, match="a newer copy"):
        changed(lambda book: book.set_budget(9.0))
    mended = ledger.read_bytes(), key.read_bytes()
    ledger.write_bytes(newest[0])
    key.write_bytes(newest[1])
    changed(lambda book: book.stop_in_trouble())  # the newest was restored
    ledger.write_bytes(mended[0])
    key.write_bytes(mended[1])
    changed(lambda book: book.repair(1.5, 1e-6))
    changed(lambda book: book.hold_to(today))
    assert changed(lambda book: book.total()) == (1.5, 1e-6)
    with pytest.raises(ConfigError, match="a newer copy"):
        changed(lambda book: book.hold_to(today[:-1] + bytes([today[-1] ^ 1])))


def test_no_secret_of_a_slot_and_no_noise_is_on_the_disk(tmp_path, monkeypatch):
    """What a kill leaves: bits of the operating system and draws are in memory alone."""
    secrets, drawn, urandom, steps = [], [], os.urandom, LatticeMessages._steps

    def noted_bits(size):
        secrets.append(urandom(size))
        return secrets[-1]

    def noted_steps(*words):
        drawn.append(steps(*words))
        return drawn[-1]

    plan = run_plan()
    silo = made_silo(plan, tmp_path / "silo", (alike()[0], alike()[1].double()))
    monkeypatch.setattr(os, "urandom", noted_bits)
    monkeypatch.setattr(LatticeMessages, "_steps", noted_steps)
    assert all(silo.reply(pack(RUN, slot, np.zeros(plan.size))) != FAULT for slot in range(4))
    assert (len(secrets), len(drawn)) == (4, 4)
    content = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    forms = [part for draw in drawn for part in (draw.tobytes(), draw.astype(np.float64).tobytes())]
    assert not any(part in content for part in [*secrets, *forms])
    assert RUN in content
