"""A silo's answers without a transport: equal to the simulation, refused but for the plan, safe at every crash."""

import itertools
import math
import os
import shutil
import struct
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from three_silos import CASES, MIXED, records, run_plan, seeded_key, simulated_weights

from silodp.config.errors import ConfigError
from silodp.silos import coordinator
from silodp.silos.coordinator import RemoteFederation, largest_norm, train
from silodp.silos.lattice import lattice_step, steps_of_noise
from silodp.silos.silo import Silo
from silodp.silos.wire import FAULT, pack

RUN = b"r" * 32


def opened(plan, number, folder, key_of=seeded_key, run=RUN):
    folder = folder / str(number)
    folder.mkdir(exist_ok=True, parents=True)
    return Silo(plan, number, records(number), folder, run, b"o" * 32, key_of)


def remote_weights(plan, folder, replies):
    kept = folder / "coordinator"
    kept.mkdir(exist_ok=True)
    runs = dict.fromkeys(range(3), RUN)
    return train(RemoteFederation(plan, runs, lambda silo, question: replies[silo](question), kept, 0))[0]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_silos_give_the_simulations_weights_bit_for_bit(name, options, tmp_path, monkeypatch):
    """And no honest reply is half as long as what is taken for one."""
    plan = run_plan(name, options)
    monkeypatch.setattr(coordinator, "largest_norm", lambda *words: largest_norm(*words) / 2)
    silos = [opened(plan, number, tmp_path) for number in range(3)]
    found = remote_weights(plan, tmp_path, [silo.reply for silo in silos])
    assert torch.equal(found, simulated_weights(plan))
    assert torch.isfinite(found).all()


def test_two_of_three_silos_a_round_are_the_simulations_too(tmp_path):
    plan = run_plan(participants=2)
    silos = [opened(plan, number, tmp_path) for number in range(3)]
    assert torch.equal(remote_weights(plan, tmp_path, [silo.reply for silo in silos]), simulated_weights(plan))


@pytest.mark.parametrize("name", MIXED)
def test_noise_that_is_mixed_over_messages_is_refused(name):
    with pytest.raises(ConfigError, match="mixes the noise of several messages"):
        run_plan(name)


def test_bad_questions_get_one_constant_and_change_nothing(tmp_path):
    plan, generator = run_plan(), np.random.default_rng(0)
    silo, honest = opened(plan, 0, tmp_path), opened(plan, 0, tmp_path / "honest")
    weights = np.zeros(plan.size)
    bad = [pack(RUN, slot, weights) for slot in (4, 5, 2**64 - 1)]
    for value in (np.nan, np.inf, -np.inf, np.nextafter(100.0, 200.0), 1e300):
        bad.append(pack(RUN, 0, np.r_[weights[1:], value]))
    bad += [pack(b"x" * 32, 0, weights), pack(RUN, 0, weights, weights), pack(RUN, 0), pack(RUN, 0, weights)[:-1]]
    bad += [generator.bytes(int(n)) for n in generator.integers(0, 200, 1000)]
    flipped = pack(RUN, 0, weights)
    bad += [flipped[:i] + bytes([flipped[i] ^ 1]) + flipped[i + 1 :] for i in range(32)]
    assert {silo.reply(question) for question in bad} == {FAULT}
    good = [pack(RUN, slot, weights + slot) for slot in (2, 0, 3, 1)]
    assert [silo.reply(question) for question in good] == [honest.reply(question) for question in good]


@pytest.mark.parametrize("slot", [7.0, "7", True, float("nan"), -1, 2**64, None])
def test_a_slot_is_an_exact_whole_number(slot):
    with pytest.raises(TypeError):
        pack(RUN, slot, np.zeros(4))


def test_a_slot_is_answered_once_and_equal_bytes_get_equal_bytes(tmp_path):
    plan = run_plan()
    silo = opened(plan, 0, tmp_path, key_of=None)
    question = pack(RUN, 1, np.zeros(plan.size))
    first = silo.reply(question)
    assert first != FAULT
    assert silo.reply(question) == first
    assert silo.reply(pack(RUN, 1, np.ones(plan.size))) == FAULT
    assert opened(plan, 0, tmp_path, key_of=None).reply(question) == first, "after a restart"


@pytest.mark.parametrize(("deadline", "is_made"), [(5.0, True), (math.nextafter(5.0, 0), False)])
def test_a_reply_is_made_until_its_deadline(deadline, is_made, tmp_path, monkeypatch):
    plan = run_plan()
    silo = opened(plan, 0, tmp_path)
    monkeypatch.setattr("silodp.silos.silo.time", SimpleNamespace(monotonic=lambda: 5.0))
    assert (silo.reply(pack(RUN, 0, np.zeros(plan.size)), deadline) != FAULT) == is_made
    assert bool(silo.store.digests) == is_made


def test_a_plan_with_memory_is_answered_in_rising_order(tmp_path):
    plan = run_plan("one_pass_accelerated_sgd", rounds=5)
    silo = opened(plan, 0, tmp_path)
    asked = [silo.reply(pack(RUN, slot, np.zeros(plan.size))) != FAULT for slot in (0, 2, 1, 3)]
    assert asked == [True, True, False, True]


class Crash(BaseException):
    pass


@pytest.mark.parametrize("name", ["minibatch_sgd", "one_pass_accelerated_sgd"])
def test_no_crash_and_no_lost_write_gives_a_slot_two_noises(name, tmp_path, monkeypatch):
    """The process ends before or after each write or sync, and writes that were not synced are lost or stay."""
    plan, sync, write = run_plan(name, rounds=3), os.fsync, os.pwrite
    questions = [pack(RUN, slot, np.full(plan.size, slot / 10)) for slot in range(len(plan.slots[0]))][:3]
    ended = 0
    for end, lost in itertools.product(range(0, 36, 3), (True, False)):
        folder, safe, left = tmp_path / f"{end}{lost}", {}, [end]
        out = []

        def count(left=left):
            left[0] -= 1
            if left[0] < 0:
                raise Crash

        def fsync(handle, safe=safe, count=count):
            count()
            path = os.readlink(f"/proc/self/fd/{handle}")
            sync(handle)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    safe[path] = file.read()
            count()

        def pwrite(handle, data, place, count=count):
            count()
            return write(handle, data, place)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "pwrite", pwrite)
        try:
            silo = opened(plan, 0, folder, key_of=None)
            for question in questions:
                out.append((question, silo.reply(question)))
        except Crash:
            ended += 1
        monkeypatch.undo()
        if lost:
            for file in (folder / "0").glob("*"):
                file.write_bytes(safe.get(str(file), b""))
        silo = opened(plan, 0, folder, key_of=None)
        for question, reply in out:
            assert silo.reply(question) in (reply, FAULT)
        replies = [silo.reply(question) for question in questions]
        # In an ordered plan a stored reply goes when a later slot is asked.
        again = [silo.reply(question) for question in questions]
        assert all(reply in (first, FAULT) for first, reply in zip(replies, again, strict=True))
        assert name != "minibatch_sgd" or again == replies
        shutil.rmtree(folder)
    assert 8 < ended < 24, "crashes cover the run and reach its end"


def test_noise_is_of_the_operating_system_and_no_seed_is_kept(tmp_path):
    plan = run_plan()
    question = pack(RUN, 0, np.zeros(plan.size))
    replies = {opened(plan, 0, tmp_path / str(i), key_of=None).reply(question) for i in range(3)}
    assert len(replies) == 3


def test_replies_lie_on_the_lattice_and_their_last_bits_tell_nothing(tmp_path):
    """Before the lattice the last bits of mean + noise rule out a neighbour; on it every reply is a multiple."""
    from silodp.silos.lattice import lattice_step

    plan = run_plan()
    step = lattice_step(plan.plans[0].releases[0].noise)
    silo = opened(plan, 0, tmp_path, key_of=None)
    for slot in range(4):
        reply = silo.reply(pack(RUN, slot, np.full(plan.size, 0.3)))
        values = np.frombuffer(reply[40:], "<f8")
        assert (values / step == np.round(values / step)).all()


def test_a_reply_is_its_digest_slot_and_array(tmp_path):
    plan = run_plan()
    reply = opened(plan, 0, tmp_path).reply(pack(RUN, 3, np.zeros(plan.size)))
    assert (len(reply), reply[:32], struct.unpack("<Q", reply[32:40])) == (40 + 8 * plan.size, RUN, (3,))


@pytest.mark.parametrize("noise", [1e-9, 0.3, 1.0, 1.5, math.nextafter(2.0, 0), 2.0, 1e6 / 3])
def test_noise_in_whole_steps_is_never_less_and_hardly_more(noise):
    steps = steps_of_noise(noise)
    assert 2**20 <= steps <= 2**21
    assert noise <= steps * lattice_step(noise) < noise * (1 + 2**-19)


def test_a_silo_without_a_reply_is_left_out_if_enough_are_there(tmp_path):
    def replies_of(plan, folder):
        made = [opened(plan, number, folder) for number in range(3)]
        return [made[0].reply, made[1].reply, lambda question: None]

    plan, whole = run_plan(at_least=2), run_plan()
    assert torch.isfinite(remote_weights(plan, tmp_path, replies_of(plan, tmp_path))).all()
    replies = replies_of(whole, tmp_path / "all")
    with pytest.raises(ConfigError, match="round 1: no reply of west: at_least 3 must reply"):
        remote_weights(whole, tmp_path / "all", replies)
