"""What a coordinator takes for a reply: one that its plan can send, of a silo that need not be honest."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from three_silos import records, run_plan, seeded_key

from silodp.silos import coordinator
from silodp.silos.coordinator import RemoteFederation, largest_norm, train
from silodp.silos.silo import Silo
from silodp.silos.wire import FAULT, pack, unpack

RUN = b"r" * 32
CASES = [("minibatch_sgd", {}), ("local_sgd", {"noise_at": "step"}), ("local_sgd", {"noise_at": "end"})]


def trained(plan, folder, hostile):
    """What a run keeps for silo 2, whose every reply passes through `hostile(slot, asked, values)`."""
    silos = []
    for number in range(3):
        (folder / str(number)).mkdir(parents=True)
        silos.append(Silo(plan, number, records(number), folder / str(number), RUN, b"o" * 32, seeded_key))

    def ask(silo, question):
        reply = silos[silo].reply(question)
        if silo < 2:
            return reply
        slot, (asked, *_) = unpack(question, RUN, plan.size)
        return hostile(slot, asked, unpack(reply, RUN, plan.size)[1][0])

    kept = folder / "kept"
    kept.mkdir()
    models, _ = train(RemoteFederation(plan, dict.fromkeys(range(3), RUN), ask, kept, 0))
    return [(kept / f"west-{slot}").read_bytes()[32:] for slot in range(len(plan.slots[2]))], models


def test_a_message_may_be_a_clip_long_and_its_noise_eleven_deviations_longer_than_on_average():
    """Of a silo's mean over K records, and of a local model after K steps."""
    for name, options in (("minibatch_sgd", {}), ("local_sgd", {"noise_at": "end"})):
        plan = run_plan(name, options)
        (release,), slot = plan.plans[2].releases, plan.slots[2][0]
        noise = release.noise * (plan.size**0.5 + 11)
        bound = 0.75 * (1 + noise)
        if slot.is_local:
            bound = 0.5 * 0.75 * release.records_drawn * (1 + noise) + 2.0**-50 * plan.size**0.5 * 100
        assert largest_norm(plan, 2, slot) == pytest.approx(bound, rel=1e-12)
        if not slot.is_local:  # each of four tensors may be a clip long
            releases = (replace(release, clipping="per_tensor", tensors=4),)
            parts = replace(plan, plans=[*plan.plans[:2], replace(plan.plans[2], releases=releases)])
            assert largest_norm(parts, 2, slot) == pytest.approx(bound + 0.75, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "kind", "bound"),
    [
        # L(1 + σ(√d + 11)), of a joint clip too; twice L for a difference of two gradients, each clipped.
        ("minibatch_sgd", "gradient", lambda s, far, K: 0.75 * (1 + s * far)),
        ("dp_mu2", "gradient", lambda s, far, K: 0.75 * (1 + s * far)),
        ("fedprox_spider", "difference", lambda s, far, K: 0.75 * (2 + s * far)),
        # η(KL + √K σL(√d + 11)), noise in each step.
        ("local_sgd", "step", lambda s, far, K: 0.5 * 0.75 * (K + K**0.5 * s * far) + 2.0**-50 * 2 * 100),
    ],
)
def test_the_largest_norm_is_as_the_formula_of_its_kind_has_it(name, kind, bound):
    plan = run_plan(name, {"phase_length": 2} if name == "fedprox_spider" else {})
    release = plan.plans[2][kind]
    slot = next(slot for slot in plan.slots[2] if slot.kind == kind)
    expected = bound(release.noise, plan.size**0.5 + 11, release.records_drawn)
    assert largest_norm(plan, 2, slot) == pytest.approx(expected, rel=1e-12)


def test_the_line_about_a_long_reply_names_the_round_of_all_silos(tmp_path, caplog):
    """Of local steps it named the message's number."""
    plan = run_plan("dp_scaffold", {"phase_length": 2}, at_least=2)
    trained(plan, tmp_path, lambda slot, asked, values: pack(RUN, slot, values + 1e9 * (slot % 2)))
    assert [re.match(r"west: round (\d):", said)[1] for said in caplog.messages] == ["1", "2", "3", "4"]


def test_a_silo_that_gives_no_reply_is_waited_for_once_in_a_round_that_asks_twice(tmp_path):
    plan = run_plan("dp_scaffold", {"warm_start": True}, at_least=2)
    asked = []

    def ask(silo, question):
        asked.append(silo)
        slot = unpack(question, RUN, plan.size)[0]
        return None if silo == 2 else pack(RUN, slot, np.zeros(plan.size))

    train(RemoteFederation(plan, dict.fromkeys(range(3), RUN), ask, tmp_path, 0, lambda: {2} if 2 in asked else ()))
    assert [asked.count(silo) for silo in range(3)] == [5, 5, 1]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_reply_that_is_longer_than_its_plan_allows_is_none(name, options, tmp_path, caplog):
    """One silo of three moved the model as far as it liked."""
    plan = run_plan(name, options, at_least=2)
    slots = plan.slots[2]

    def moved(share):
        def hostile(slot, asked, values):
            start = asked if slots[slot].is_local else 0 * asked
            direction = np.ones(plan.size) / np.sqrt(plan.size)
            return pack(RUN, slot, start + share * largest_norm(plan, 2, slots[slot]) * direction)

        return hostile

    kept, _ = trained(plan, tmp_path / "within", moved(0.99))
    assert [len(reply) for reply in kept] == [40 + 8 * plan.size] * len(slots)
    assert caplog.messages == []
    kept, models = trained(plan, tmp_path / "beyond", moved(1e6))
    assert kept == [FAULT] * len(slots)
    assert torch.isfinite(models).all()
    assert caplog.messages[0] == "west: round 1: its reply is 1e+06 times as long as its plan allows: taken as none"
    assert len(caplog.messages) == len(slots)


@pytest.mark.parametrize(("longer", "is_taken"), [(1.0, True), (1 + 2**-52, False)])
def test_a_reply_as_long_as_its_plan_allows_is_taken_and_none_longer(longer, is_taken, tmp_path, monkeypatch):
    monkeypatch.setattr(coordinator, "largest_norm", lambda plan, silo, slot: 1.0 if silo == 2 else np.inf)
    plan = run_plan(at_least=2)
    kept, _ = trained(plan, tmp_path, lambda slot, *words: pack(RUN, slot, longer * np.eye(plan.size)[0]))
    assert [reply != FAULT for reply in kept] == [is_taken] * 4


@pytest.mark.parametrize(
    "reply",
    [
        lambda plan: pack(RUN, 0, np.full(plan.size, np.nan)),
        lambda plan: pack(RUN, 0, np.full(plan.size, -np.inf)),
        lambda plan: pack(RUN, 0, np.zeros(plan.size), np.zeros(plan.size)),
        lambda plan: pack(RUN, 1, np.zeros(plan.size)),
        lambda plan: pack(b"x" * 32, 0, np.zeros(plan.size)),
        lambda plan: pack(RUN, 0),
        lambda plan: b"",
        lambda plan: FAULT,
    ],
)
def test_what_is_no_reply_to_the_slot_is_stored_as_an_absence(reply, tmp_path):
    plan = run_plan(at_least=2)
    kept, models = trained(plan, tmp_path, lambda slot, asked, values: reply(plan) if slot == 0 else FAULT)
    assert kept == [FAULT] * 4
    assert torch.isfinite(models).all()
