"""A coordinator's process and its silos over a socket, in threads: who takes part, and what each is told at the end."""

import contextlib
import hashlib
import math
import struct
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from three_silos import SIZES, federation_keys, seeded_key

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.own_data.federation_output import write_model
from silodp.own_data.released_model import load_model
from silodp.silos.hosting import Host
from silodp.silos.silo import PunctualReplies
from silodp.silos.taking_part import Participation, membership
from silodp.silos.wire import FAULT, HEAD, HELLO, Hello

CODE = b"c" * 32
ENDS = {silo: bytes([silo]) * 32 for silo in range(3)}


def files_of_silos(folder, more=5, **changes):
    """federation.yaml, and for each silo a folder with its silo.yaml and `more` records than it declares."""
    agreed = folder / "federation.yaml"
    agreed.write_text(yaml.safe_dump(federation_keys(**changes), sort_keys=False))
    for name, size in SIZES.items():
        rows = [f"{20 + i},{20 + i % 9},{'yes' if i % 3 else 'no'}" for i in range(size + more)]
        (folder / f"{name}.csv").write_text("age,bmi,ill\n" + "\n".join(rows) + "\n")
        keys = {"name": name, "file": f"{name}.csv", "ledger": f"of-{name}", "budget": 9.0, "delta": 1e-4}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(keys | {"answer_within": 20.0}))
    return agreed


def host_of(agreed):
    """The coordinator over a socket, what it trained, and its thread."""
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    host, trained = Host(agreed, agreed.parent / "out", Path("none"), CODE, f"unix:{agreed.parent}/line"), []

    def finish(models, output):
        trained.append((models, output))
        return ENDS

    return host, trained, threading.Thread(target=host.run, args=(finish,), daemon=True)


@pytest.mark.parametrize("names", [["north", "east", "west"], ["east", "north"]])
def test_silos_that_come_train_one_model_and_get_its_digest(names, tmp_path, caplog):
    """Over a socket a silo is known by its name, whatever certificates the agreed file has."""
    caplog.set_level("INFO", "silodp")
    agreed = files_of_silos(tmp_path, at_least=2, wait=1.5)
    host, trained, hosting = host_of(agreed)
    hosting.start()
    ends, runs = {}, {}

    def take_part(name):
        part = Participation(tmp_path / f"{name}.yaml", host.address)
        with membership(part, CODE, again=False) as member:
            runs[part.number] = member.silo.run
            ends[name] = member.answer()

    silos = [threading.Thread(target=take_part, args=(name,), daemon=True) for name in names]
    for thread in silos:
        thread.start()
    for thread in [*silos, hosting]:
        thread.join(60)
    assert ends == {name: ENDS[place] for place, name in enumerate(SIZES) if name in names}
    assert host.runs == runs
    ((models, output),) = trained
    assert models.shape == (1, host.plan.size)
    assert output.isfinite().all()
    assert not list(tmp_path.glob("of-*/runs/*/replies")), "of a run that is over nothing is asked again"
    rounds = [said for said in caplog.messages if said.startswith("round ")]
    without = "" if len(names) == 3 else ": no reply of west"
    assert rounds == [f"round {r} of 4{without}" for r in (1, 2, 3, 4)]
    missing = [said for said in caplog.messages if said.startswith("goes on without")]
    assert missing == ([] if len(names) == 3 else ["goes on without west"])


def test_a_run_ends_where_too_few_silos_can_come(tmp_path, monkeypatch):
    """Two of three have to come."""
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    monkeypatch.setattr("silodp.silos.line.Lines.wait", lambda self, least, seconds: [0])
    agreed = files_of_silos(tmp_path, at_least=2)
    for early in ([], ["east"]):  # while two can still come, the coordinator waits
        host, trained, _ = host_of(agreed)
        turns = iter([early, early, ["east", "north"]])
        with pytest.raises(ConfigError, match="at_least: 2: ended early: east, north"):
            host.run(lambda models, output: ENDS, turns.__next__)
        assert next(turns, None) is None
        assert not trained


def test_a_reply_leaves_at_its_time_and_none_that_took_longer():
    asked = []

    def slow(question, deadline):
        asked.append(deadline - time.monotonic())
        time.sleep(float(question))
        return question

    silo = SimpleNamespace(reply=slow)
    for question, reply in ((b"0", b"0"), (b"0.05", b"0.05"), (b"0.6", FAULT)):
        began = time.monotonic()
        assert PunctualReplies(silo, 0.3).reply(question) == reply
        assert time.monotonic() - began >= 0.3
    assert all(0.2 < left <= 0.3 for left in asked)
    assert PunctualReplies(SimpleNamespace(reply=lambda question: b"now"), 0.0).reply(b"") == b"now"


class Kill(BaseException):
    """The coordinator's process ends here."""


def hosted(agreed, members, killed_at=None, gone=(), back_at=None):
    """SHA-256 of the models of a coordinator whose silos are called, not dialled.

    It is killed before it asks in round `killed_at`, and each silo of `gone` is away from its round on, until all of
    them say hello again in round `back_at`.
    """
    host, gone, found, times = Host(agreed, agreed.parent / "out", Path("none"), CODE, "unix:/none"), dict(gone), [], []

    class Lines:
        def __init__(self, address, silos, key, certificate, size, greet, admit):
            self.away = set(silos)
            for name, member in members.items():
                if gone.get(name) != 0:
                    assert admit(member.part.number, Hello(*HELLO.unpack(member.greeted(greet(member.part.number)))))
                    self.away.discard(member.part.number)

        def wait(self, silos, seconds):
            return sorted(set(range(len(SIZES))) - self.away)

        def ask(self, silo, question, seconds):
            name, (_, slot) = list(SIZES)[silo], HEAD.unpack_from(question)
            if slot == killed_at:
                raise Kill
            times.append((name, slot))
            if slot == back_at:
                gone.clear()
                self.away.clear()
            if slot < gone.get(name, math.inf):
                return members[name].reply(question)
            self.away.add(silo)
            return None

        def end(self, last):
            pass

    def finish(models, output):
        found.append(hashlib.sha256(models.numpy().tobytes()).hexdigest())
        return ENDS

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "silodp.silos.line", SimpleNamespace(Lines=Lines))
        host.run(finish)
    return found[0], times, host


@pytest.fixture
def silos_of(request):
    """Members of all silos of an agreed file, whose noise is seeded."""

    def opened(agreed):
        entered = contextlib.ExitStack()
        request.addfinalizer(entered.close)
        members = {}
        for name in SIZES:
            part = Participation(agreed.parent / f"{name}.yaml", "unix:/none")
            members[name] = entered.enter_context(membership(part, CODE, again=False))
            members[name].silo._key_of = seeded_key
        return members

    return opened


@pytest.mark.parametrize("killed_at", range(4))
def test_a_coordinator_that_restarts_without_a_silo_goes_on_with_what_it_had_replied(killed_at, tmp_path, silos_of):
    """Its stored replies were replaced by absences, and the others were asked at other weights."""
    found = []
    for folder in ("killed", "whole"):
        (tmp_path / folder).mkdir()
        agreed = files_of_silos(tmp_path / folder, more=0, at_least=2)
        members = silos_of(agreed)
        if folder == "killed":
            with pytest.raises(Kill):
                hosted(agreed, members, killed_at)
            kept = {path: path.read_bytes() for path in agreed.parent.glob("out/*-[0-9]")}
            found.append(hosted(agreed, members, gone={"west": 0})[0])
            assert len(kept) == 3 * killed_at
            assert {path: path.read_bytes() for path in kept} == kept
            # Now that west's absences are decided, who comes back or goes changes nothing.
            found += [hosted(agreed, members)[0], hosted(agreed, members, gone={"north": 0})[0]]
        else:
            found.append(hosted(agreed, members, gone={"west": killed_at})[0])
    assert len(set(found)) == 1


def test_a_silo_that_is_away_costs_its_wait_once_and_is_averaged_again_when_it_is_back(tmp_path, silos_of, caplog):
    caplog.set_level("INFO", "silodp")
    agreed = files_of_silos(tmp_path, more=0, at_least=2, rounds=20)
    members = silos_of(agreed)
    _, asked, host = hosted(agreed, members, gone={"west": 3}, back_at=6)
    assert [slot for name, slot in asked if name == "west"] == [0, 1, 2, 3, *range(7, 20)]
    without = [said for said in caplog.messages if said.startswith("round ") and said.endswith(": no reply of west")]
    assert without == [f"round {r} of 20: no reply of west" for r in range(4, 8)]
    assert [host.replied[r][2] for r in range(20)] == [True] * 3 + [False] * 4 + [True] * 13


def test_the_card_says_who_replied_and_promises_for_those_that_came(tmp_path, silos_of):
    agreed = files_of_silos(tmp_path, more=0, at_least=1)
    _, _, host = hosted(agreed, silos_of(agreed), gone={"west": 3, "east": 0})
    weights = torch.zeros(1, host.plan.size)
    write_model(host, weights, weights, tmp_path, lambda value: f"{value:.3g}")
    # Where each silo has its own model, its file has it.
    models = torch.arange(3.0)[None, :, None].expand(1, 3, host.plan.size)
    told = write_model(host, models, weights, tmp_path, lambda value: f"{value:.3g}")
    files = [tmp_path / f"model-{name}.npz" for name in host.plan.names]
    assert told == {silo: hashlib.sha256(file.read_bytes()).digest() for silo, file in enumerate(files)}
    assert all(
        f"{file.name}: SHA-256 {told[silo].hex()}," in (tmp_path / "card.md").read_text()
        for silo, file in enumerate(files)
    )
    found = {name: set(load_model(tmp_path / f"model-{name}.npz").weights) for name in host.plan.names}
    assert found == {name: {float(place)} for place, name in enumerate(host.plan.names)}
    rows = [line for line in (tmp_path / "card.md").read_text().splitlines() if line.startswith("| ")]
    assert rows[2:] == [
        "| north | 40 | 4 (declared 4) | 0.0001 | 4 of 4 rounds |",
        "| east | never came | nothing left it | | 0 of 4 rounds |",
        "| west | 31 | 4 (declared 4) | 0.0001 | 3 of 4 rounds |",
    ]


def test_what_is_stored_as_the_reply_to_another_question_stops_the_run(tmp_path, silos_of):
    agreed = files_of_silos(tmp_path, more=0, at_least=2)
    members = silos_of(agreed)
    hosted(agreed, members)
    path = tmp_path / "out/west-1"
    path.write_bytes(bytes(32) + path.read_bytes()[32:])
    with pytest.raises(ConfigError, match=r"west-1: replies to another question: silodp, its packages"):
        hosted(agreed, members)
    path = tmp_path / "out/west-0"
    path.write_bytes(path.read_bytes()[:-8] + struct.pack("<d", math.nan))
    with pytest.raises(ConfigError, match=r"west-0: damaged: restore it"):
        hosted(agreed, members)
    assert len(path.read_bytes()) > 56, "an absence took its place"


def start_children_by(monkeypatch, child):
    """Silos of this machine as `child(words)` has them, in place of processes."""
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    monkeypatch.setattr("silodp.cli.federate.subprocess", SimpleNamespace(Popen=child))
    monkeypatch.setattr("silodp.cli.federate.code_digest", lambda federation: CODE)


def test_silos_of_one_machine_train_by_one_command(tmp_path, monkeypatch, capsys):
    def child(words):
        assert words[:3] == [sys.executable, "-m", "silodp"]
        thread = threading.Thread(target=main, args=(words[3:],), daemon=True)
        thread.start()
        return SimpleNamespace(poll=lambda: None if thread.is_alive() else 0, wait=lambda: thread.join(10))

    start_children_by(monkeypatch, child)
    (tmp_path / "here").mkdir()
    files_of_silos(tmp_path / "here", rounds=1).rename(tmp_path / "three.yaml")
    for name in SIZES:
        (tmp_path / "here" / f"{name}.yaml").unlink()
    monkeypatch.chdir(tmp_path)
    assert main(["federate", "three.yaml", "--here", "here"]) == 0
    model, said = Path("federations/three/model.npz").read_bytes(), capsys.readouterr().out
    assert said.count(f"word for the SHA-256 of the model: {hashlib.sha256(model).hexdigest()}\n") == 3
    assert "slots are open" not in said
    assert "federations/three: model and card.md" in said
    made = {"name": "north", "federation": "../three.yaml", "file": "north.csv", "ledger": "north.ledger"}
    assert yaml.safe_load(Path("here/north.yaml").read_text()) == made | {"budget": 9999.0, "delta": 0.5}


def test_a_silo_of_this_machine_needs_a_table_or_its_own_file(tmp_path, monkeypatch, capsys):
    """And a run ends where those without which there is none have ended."""
    started, ended = [], []

    def child(words):
        started.append(name := Path(words[5]).name)
        poll = lambda: None if name == "north.yaml" else 2  # noqa: E731
        return SimpleNamespace(poll=poll, wait=lambda: 2, terminate=lambda: ended.append(name))

    start_children_by(monkeypatch, child)
    monkeypatch.setattr("silodp.silos.line.Lines.wait", lambda self, least, seconds: [0])
    agreed, words = files_of_silos(tmp_path), ["--here", str(tmp_path), "--output", str(tmp_path / "out")]
    own = (tmp_path / "north.yaml").read_text()
    for file in ("north.csv", "east.yaml", "west.yaml"):
        (tmp_path / file).unlink()
    (tmp_path / "east.csv").rename(tmp_path / "east.parquet")
    assert main(["federate", str(agreed), *words]) == 2
    assert "at_least: 3: ended early: east, west" in capsys.readouterr().err
    assert started == ended == ["north.yaml", "east.yaml", "west.yaml"], "whom nobody would answer any more"
    assert (tmp_path / "north.yaml").read_text() == own
    assert yaml.safe_load((tmp_path / "east.yaml").read_text())["file"] == "east.parquet"
    (tmp_path / "other.yaml").write_text(agreed.read_text())
    assert main(["federate", str(tmp_path / "other.yaml"), *words]) == 2
    assert "north.yaml be removed" in capsys.readouterr().err
    (tmp_path / "north.yaml").unlink()
    assert main(["federate", str(agreed), *words]) == 2
    assert f"{tmp_path / 'north'}.csv: no such file: must be there for each silo of" in capsys.readouterr().err
