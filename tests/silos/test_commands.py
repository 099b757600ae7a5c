"""The commands of silos and their coordinator: a whole run as persons start it, and what keeps one from starting."""

import hashlib
import importlib.util
import itertools
import os
import re
import resource
import shutil
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import filelock
import numpy as np
import pytest
import runfiles
import yaml

from silodp.cli import federate, main
from silodp.config.errors import ConfigError
from silodp.extending import plugins
from silodp.silos.hosting import Host
from silodp.silos.keys import fingerprint, make_key, spoken
from silodp.silos.ledger import Ledger, opened
from silodp.silos.silo import Silo
from silodp.silos.slot_store import SlotStore
from silodp.silos.taking_part import Participation, _unreachable, membership, time_replies
from silodp.silos.wire import FAULT, GREETING, HELLO, MARK, NO_MARK, Hello, pack

ROOT = Path(__file__).parents[2]


def demonstration():
    spec = importlib.util.spec_from_file_location("federation", ROOT / "benchmarks" / "federation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_three_silos_train_by_commands_and_each_keeps_its_ledger(tmp_path):
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    folder = tmp_path / "federation"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = demonstration().main(folder, port)
    assert found["error"] < 0.3
    for name in ("north", "east", "west"):
        assert "charge" in (folder / name / "ledger" / "ledger.jsonl").read_text()
    card = (folder / "out" / "card.md").read_text()
    assert "| north | 200 |" in card


@pytest.fixture
def silo(tmp_path):
    """silo.yaml of one of three silos with made-up records."""
    from three_silos import federation_keys

    keys = federation_keys(reply_after=0.0)
    (tmp_path / "federation.yaml").write_text(yaml.safe_dump(keys))
    rows = [f"{20 + i},{20 + i % 9},{'yes' if i % 3 else 'no'}" for i in range(45)]
    (tmp_path / "north.csv").write_text("age,bmi,ill\n" + "\n".join(rows) + "\n")
    keys = {"name": "north", "file": "north.csv", "budget": 5.0, "delta": 1e-4}
    return write_silo(tmp_path, keys)


def agree(silo, **changes):
    """federation.yaml with some keys changed."""
    path = silo.parent / "federation.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


def write_silo(folder, keys):
    (folder / "silo.yaml").write_text(yaml.safe_dump(keys))
    return folder / "silo.yaml"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "nort"}, "name: 'nort': must be one of east, north, west"),
        ({"delta": 1e-6}, "delta: 1e-06: must be at least the run's"),
        ({"file": "none.csv"}, "none.csv"),
        ({}, "key: missing: must be the file that `silodp silo key` made"),
        ({"key": "north.key"}, "silos.north.certificate: must be a whole certificate"),
    ],
)
def test_a_silo_that_cannot_take_part_is_told_in_one_line(changes, said, silo, capsys):
    if said.startswith(("key", "silos.")):
        agree(silo, reply_after=0.5)
    if "key" in changes:
        (silo.parent / "north.key").touch()
        (silo.parent / "north.crt").touch()
    socket = [] if said.startswith(("key", "silos.")) else ["--socket", "unix:/nowhere"]
    path = write_silo(silo.parent, yaml.safe_load(silo.read_text()) | changes)
    assert main(["silo", "join", str(path), *socket]) == 2
    captured = capsys.readouterr()
    if "grpcio: missing" in captured.err:
        pytest.skip("grpcio: requirements/federate.lock")
    assert said in captured.err
    assert captured.err.count("\n") == 1


def join_briefly(silo, *words):
    """Join with nobody there."""
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    write_silo(silo.parent, yaml.safe_load(silo.read_text()) | {"answer_within": 0.1})
    return main(["-q", "silo", "join", str(silo), "--socket", f"unix:{silo.parent}/line", *words])


def question(member, slot, value=0.0):
    return pack(member.silo.run, slot, np.full(member.part.plan.size, value))


def begin(silo, code=b"c" * 32, again=False):
    """Begin or resume a run, answer its first question, and stop; the folders of all runs."""
    part = Participation(silo, f"unix:{silo.parent}/line")
    with membership(part, code, again) as member:
        assert member.reply(question(member, 0)) != FAULT
    return sorted(part.ledger.glob("runs/*"))


def charges(silo):
    ledger = silo.parent / "ledger" / "ledger.jsonl"
    return ledger.read_text().count('"kind": "charge"') if ledger.exists() else 0


def test_joins_that_get_no_question_cost_nothing_and_a_spent_budget_refuses(silo, capsys):
    """Four of them took a ledger from ε 2 to 3.6."""
    assert [join_briefly(silo, *["--again"] * (place > 1)) for place in range(4)] == [2] * 4
    assert "must answer within 0.1 s" in capsys.readouterr().err
    assert charges(silo) == 0
    (line,) = Ledger(silo.parent / "ledger").lines
    assert (line["kind"], line["epsilon"]) == ("budget", 5.0), "with the ledger's secret, before anybody dials"
    code = federate.code_digest(Participation(silo, "unix:/none").federation)
    begin(silo, code)
    begin(silo, code)
    assert charges(silo) == 1
    assert join_briefly(silo, "--again") == 2
    assert "budget: 5: with this charge the total would be" in capsys.readouterr().err
    assert main(["silo", "budget", str(silo), "--raise", "20"]) == 0
    begin(silo, code, again=True)
    assert charges(silo) == 2


def test_a_budget_is_raised_and_never_set_to_what_it_is_or_lower(silo, capsys):
    for words in (["silo", "budget", str(silo), "--raise", "5"], ["ledger", "show", str(silo.parent / "ledger")]):
        assert main(words) == 2
        assert "ledger: no such folder: must be a ledger's, which `silodp silo check` makes" in capsys.readouterr().err
    (silo.parent / "ledger").mkdir()
    assert [main(["silo", "budget", str(silo), "--raise", to]) for to in ("5", "4.99", "5", "5.01")] == [0, 2, 2, 0]
    assert "--raise: 5: must be above the budget 5" in capsys.readouterr().err
    assert Ledger(silo.parent / "ledger").budget == 5.01


def test_a_check_says_what_a_run_then_sends_and_charges(silo, capsys):
    def said():
        assert main(["silo", "check", str(silo)]) == 0
        text = capsys.readouterr().out
        sent = re.search(r"would leave: (\d+) messages of (\d+) numbers, (\d+) bytes", text)
        return [int(number) for number in sent.groups()], *re.search(r"= (\S+) before, (\S+) after", text).groups()

    agreed = silo.parent / "federation.yaml"
    keys = yaml.safe_load(agreed.read_text())
    for entry in keys["silos"].values():
        entry["certificate"] = ""
    agreed.write_text(yaml.safe_dump(keys | {"coordinator": {"address": "unix:/nowhere"}}))
    part = Participation(silo, f"unix:{silo.parent}/line")
    (messages, numbers, sent), before, after = said()
    with membership(part, b"c" * 32, again=False) as member:
        replies = [member.reply(question(member, slot)) for slot in range(len(part.plan.slots[part.number]))]
    assert (messages, numbers, sent) == (len(replies), part.plan.size, sum(map(len, replies)))
    with opened(part.ledger) as ledger:
        total = federate.rounded(ledger.total()[0], "up")
    assert (before, after) == ("0", total)
    assert main(["silo", "budget", str(silo), "--raise", "20"]) == 0
    assert said()[1] == total


def test_the_first_question_that_is_wholly_right_is_charged_before_its_slots_line(silo, monkeypatch):
    part, seen = Participation(silo, f"unix:{silo.parent}/line"), []
    with membership(part, b"c" * 32, again=False) as member:
        bad = [question(member, 4), question(member, 0, 101.0), question(member, 0, np.nan), question(member, 0)[:-8]]
        bad += [b"x" * 32 + question(member, 0)[32:], b"", question(member, 0) + bytes(8 * part.plan.size)]
        assert {member.reply(one) for one in bad} == {FAULT}
        assert charges(silo) == 0
        opening = SlotStore.open_slot
        monkeypatch.setattr(SlotStore, "open_slot", lambda *words: seen.append(charges(silo)) or opening(*words))
        first = member.reply(question(member, 2))
        assert member.reply(question(member, 2)) == first != FAULT
        assert member.reply(question(member, 1)) != FAULT
        assert seen == [1, 1]
    assert charges(silo) == 1


def test_a_charge_is_held_against_the_ledger_as_it_is_then(silo):
    """Another charge came while the silo waited."""
    part = Participation(silo, f"unix:{silo.parent}/line")
    with membership(part, b"c" * 32, again=False) as member:
        with opened(part.ledger) as ledger:
            ledger.charge(part.plan.accounted[0], {"run": "another"})
        with pytest.raises(ConfigError, match="budget: 5: with this charge the total would be"):
            member.reply(question(member, 0))
        assert member.silo.store.digests == {}


def test_a_charge_takes_nothing_of_the_time_of_its_reply(silo, monkeypatch):
    agree(silo, reply_after=0.5, wait=60.0)
    part, charge = Participation(silo, f"unix:{silo.parent}/line"), Ledger.charge
    monkeypatch.setattr(Ledger, "charge", lambda *words: time.sleep(0.7) or charge(*words))
    with membership(part, b"c" * 32, again=False) as member:
        assert member.reply(question(member, 0)) != FAULT


def test_a_silo_says_how_long_it_goes_on_trying(silo, capsys, monkeypatch):
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    monkeypatch.setattr("silodp.silos.taking_part._DIAL", 0.2)
    write_silo(silo.parent, yaml.safe_load(silo.read_text()) | {"answer_within": 2.5})
    assert main(["silo", "join", str(silo), "--socket", f"unix:{silo.parent}/line"]) == 2
    (seconds,) = re.findall(r"trying for ([\d.]+) s more", capsys.readouterr().err)
    assert 0.5 < float(seconds) < 2.4


def test_an_end_while_slots_are_open_says_how_to_go_on(silo, capsys, monkeypatch):
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    monkeypatch.setattr(federate, "code_digest", lambda federation: b"c" * 32)
    ends = iter([b"m" * 32, None])
    monkeypatch.setattr("silodp.silos.taking_part.Membership.answer", lambda self: next(ends))
    for said in (f"{'6d' * 32}\nslots are open: `join` goes on with this run", "the plan is used up; no end came\n"):
        assert main(["silo", "join", str(silo), "--socket", "unix:/nowhere"]) == 0
        assert said in capsys.readouterr().out


def test_a_file_that_changed_does_not_resume(silo, capsys):
    join_briefly(silo)
    file = silo.parent / "north.csv"
    file.write_text(file.read_text().replace("20,20,no", "21,20,no"))
    capsys.readouterr()
    assert join_briefly(silo) == 2
    assert "north.csv: has changed since the run began" in capsys.readouterr().err


def test_a_plug_in_is_the_file_that_all_agreed_on(silo, capsys, monkeypatch, request):
    source = "from silodp.algorithms.minibatch_sgd import MinibatchSGD\n\n\nclass Own(MinibatchSGD):\n"
    path = silo.parent / "own_sgd.py"
    path.write_text(source + '    name = "own_sgd"\n')
    monkeypatch.setenv("SILODP_PLUGINS", str(path))
    request.addfinalizer(runfiles.deactivate_plugins)
    agreed = silo.parent / "federation.yaml"
    keys = yaml.safe_load(agreed.read_text()) | {"algorithm": {"name": "own_sgd"}}
    keys["coordinator"] = {"address": "unix:/nowhere"}
    for entry in keys["silos"].values():
        entry["certificate"] = ""
    digest, imported = hashlib.sha256(path.read_bytes()).hexdigest(), plugins._imported
    for plugin, code, said in (
        (None, 2, f"plugin: missing: must be the SHA-256 of {path}"),
        ("0" * 64, 2, f"plugin: {'0' * 64}: must be the SHA-256 of {path}"),
        (digest, 0, "own_sgd is foreign code"),
    ):
        monkeypatch.setattr("silodp.extending.plugins._imported", imported if code == 0 else None)  # not run before
        agreed.write_text(yaml.safe_dump(keys | ({"plugin": plugin} if plugin else {})))
        assert main(["silo", "check", str(silo)]) == code
        captured = capsys.readouterr()
        assert said in captured.out + captured.err


def test_of_two_joins_at_once_the_second_is_refused_and_charges_nothing(silo, capsys):
    folder = silo.parent / "ledger"
    folder.mkdir()
    with filelock.FileLock(folder / ".join.lock"):
        assert join_briefly(silo) == 2
    assert "another join of this silo is running" in capsys.readouterr().err
    assert not (folder / "ledger.jsonl").exists()


def test_a_run_is_not_resumed_where_the_ledgers_secret_is_lost(silo):
    part = Participation(silo, f"unix:{silo.parent}/line")
    with membership(part, b"c" * 32, again=False):
        pass
    (part.ledger / ".ledger.key").unlink()
    with pytest.raises(ConfigError, match="secret"), membership(part, b"c" * 32, again=False):
        pass


def test_a_file_that_is_gone_in_mid_run_changes_no_reply(silo):
    """Records are read once, before the first slot."""
    part = Participation(silo, f"unix:{silo.parent}/line")
    with membership(part, b"c" * 32, again=False) as member:
        # A crash leaves no memory of secrets on the disk.
        assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
        questions = [pack(member.silo.run, slot, np.zeros(part.plan.size)) for slot in range(2)]
        first = member.silo.reply(questions[0])
        (silo.parent / "north.csv").unlink()
        assert member.silo.reply(questions[0]) == first
        assert member.silo.reply(questions[1]) != FAULT


def part_of(silo):
    """The silo's part, with a budget for two runs."""
    return Participation(
        write_silo(silo.parent, yaml.safe_load(silo.read_text()) | {"budget": 9.0}), f"unix:{silo.parent}/line"
    )


def greeted(host, member):
    return Hello(*HELLO.unpack(member.greeted(host.greet(member.part.number))))


def test_a_coordinator_admits_silos_of_its_file_code_plan_and_run_alone(silo, caplog):
    part, code, agreed = part_of(silo), b"c" * 32, silo.parent / "federation.yaml"
    host = Host(agreed, silo.parent / "transcript", Path("none"), code, part.address)
    with membership(part, code, again=False) as member:
        hello = greeted(host, member)
        digest = hello.federation.hex()[:12]
        for changes, said in (
            ({"federation": bytes(32)}, f"has another federation.yaml (SHA-256 {'0' * 12}, here {digest})"),
            ({"code": b"d" * 32}, f"runs another version of silodp (code {'64' * 6}, here {'63' * 6})"),
            ({"run": bytes(32)}, "works out another plan (run's digest): must have the same packages"),
        ):
            assert not host.admit(part.number, hello._replace(**changes))
            assert caplog.messages[-1] == f"north: refused: {said}"
        assert host.runs == {}
        for _ in range(2):
            assert host.admit(part.number, greeted(host, member))
            assert member.why == ""
        assert host.runs == {part.number: member.silo.run}
    with membership(part, code, again=True) as member:
        assert not host.admit(part.number, greeted(host, member))
        assert caplog.messages[-1].endswith("transcript: must go on with it, or --output be another")


def test_a_silo_answers_no_coordinator_of_another_file_or_code(silo):
    part, code = part_of(silo), b"c" * 32
    with membership(part, code, again=False) as member:
        ours = part.federation.digest
        for greeting, said in (
            ((bytes(32), code, NO_MARK), "federation.yaml: the coordinator has another one: all must have the same"),
            ((ours, b"d" * 32, NO_MARK), f"runs another version (code {'64' * 6}, here {'63' * 6}): all must run the"),
        ):
            member.greeted(GREETING.pack(*greeting))
            assert said in member.why
            assert member.reply(question(member, 0)) == FAULT
    assert charges(silo) == 0


def test_a_mark_comes_with_every_reply_and_a_longer_ledgers_stays(silo):
    part, code = part_of(silo), b"c" * 32
    host = Host(silo.parent / "federation.yaml", silo.parent / "transcript", Path("none"), code, part.address)
    assert host.greet(0) == GREETING.pack(host.federation.digest, code, NO_MARK)
    with membership(part, code, again=False) as member:
        marks = []
        for slot in range(2):
            reply = member.reply(question(member, slot))
            assert host.take_mark(0, reply) == member.silo.reply(question(member, slot))
            marks.append(reply[: MARK.size])
            assert host.greet(0) == GREETING.pack(host.federation.digest, code, marks[-1])
            lines, _, run, slots, _ = MARK.unpack(marks[-1])
            assert (lines, run, slots) == (2, member.silo.run, slot + 1)
        for reply in (None, FAULT, marks[0][:50]):
            assert host.take_mark(0, reply) == reply
        with opened(part.ledger) as ledger:
            ledger.set_budget(20.0)
            longer = ledger.mark(member.silo.run, 1)
        host.take_mark(0, longer)
        host.take_mark(0, marks[1])
    assert host.greet(0) == GREETING.pack(host.federation.digest, code, longer)
    assert host.greet(1) == GREETING.pack(host.federation.digest, code, NO_MARK)


def test_an_older_folder_says_no_hello_however_often_it_joins(silo):
    """The first join's hello brought the older mark, and the second join ran."""
    part, code, ledger = part_of(silo), b"c" * 32, silo.parent / "ledger"
    host = Host(silo.parent / "federation.yaml", silo.parent / "transcript", Path("none"), code, part.address)
    copies = {}
    with membership(part, code, again=False) as member:
        shutil.copytree(ledger, copies.setdefault("before the charge", silo.parent / "first"))
        host.take_mark(0, member.reply(question(member, 0)))
        shutil.copytree(ledger, copies.setdefault("before the last slot", silo.parent / "second"))
        host.take_mark(0, member.reply(question(member, 1)))
    for when, copy in copies.items():
        shutil.rmtree(ledger)
        shutil.copytree(copy, ledger)
        said = "the coordinator knows a newer copy of it" if when == "before the charge" else "older than the coordi"
        for _ in range(2):
            with pytest.raises(ConfigError, match=said), membership(part, code, again=False) as member:
                member.greeted(host.greet(0))
        if when == "before the charge":
            assert main(["ledger", "repair", str(ledger), "--epsilon", "4", "--delta", "1e-4"]) == 0
            assert Ledger(ledger).total()[0] == 4.0
            with pytest.raises(
                ConfigError, match="older than the coordinator's last reply: restore the newest, or `--ag"
            ):
                membership(part, code, again=False).__enter__().greeted(host.greet(0))
    with membership(part, code, again=True) as member:
        assert Hello(*HELLO.unpack(member.greeted(host.greet(0)))).run == member.silo.run


def test_after_a_repair_an_older_folder_is_noticed_again(silo):
    """A coordinator kept the mark of lines that the ledger no longer has, and took no later one."""
    part, code, ledger, copy = part_of(silo), b"c" * 32, silo.parent / "ledger", silo.parent / "copy"
    host = Host(silo.parent / "federation.yaml", silo.parent / "transcript", Path("none"), code, part.address)
    with membership(part, code, again=False) as member:
        shutil.copytree(ledger, copy)
        host.take_mark(0, member.reply(question(member, 0)))
    with opened(ledger) as book:  # further lines that the copy has not, whose mark the coordinator knows
        for budget in (20.0, 30.0, 40.0):
            book.set_budget(budget)
        host._marks[0].write_bytes(book.mark(member.silo.run, 1))
    shutil.rmtree(ledger)
    shutil.copytree(copy, ledger)
    with pytest.raises(ConfigError, match="knows a newer copy"), membership(part, code, again=False) as member:
        member.greeted(host.greet(0))
    assert main(["ledger", "repair", str(ledger), "--epsilon", "4", "--delta", "1e-4"]) == 0
    with opened(ledger) as book:
        book.set_budget(99.0)
    with membership(part, code, again=True) as member:
        member.greeted(host.greet(0))
        host.take_mark(0, member.reply(question(member, 0)))
        shutil.rmtree(copy)
        shutil.copytree(ledger, copy)
        host.take_mark(0, member.reply(question(member, 1)))
    shutil.rmtree(ledger)
    shutil.copytree(copy, ledger)
    with (
        pytest.raises(ConfigError, match="older than the coordinator's last reply"),
        membership(part, code, again=False) as member,
    ):
        member.greeted(host.greet(0))


@pytest.mark.parametrize("bound", [0.5, 100.0])
def test_made_up_replies_are_timed_within_the_bound_and_are_replies(bound, silo, monkeypatch):
    """Below B = 1 refusals were timed, and a slow machine was charged."""
    agree(silo, bound=bound)
    part, reply, got = part_of(silo), Silo.reply, []
    monkeypatch.setattr(Silo, "reply", lambda *words: got.append(reply(*words)) or got[-1])
    time_replies(part)
    assert len(got) == 20
    assert FAULT not in got
    monkeypatch.setattr(Silo, "reply", lambda *words: FAULT)
    with pytest.raises(ConfigError, match="a question gets no reply: must be a run that silos can answer"):
        time_replies(part)


def test_what_a_silo_makes_is_its_owners_alone(silo):
    os.umask(mask := os.umask(0o022))
    assert mask & 0o022
    folder = begin(silo)[0]
    made = [silo.parent / "ledger", *(silo.parent / "ledger").rglob("*")]
    assert folder / "asked" in made
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}


@pytest.mark.parametrize(
    ("words", "changes", "said"),
    [
        (["federate", "FILE", "--check"], {}, "reply_after: 0: must be above 0 between machines"),
        (["federate", "FILE", "--check"], {"coordinator": {"address": "h:99999"}}, "h:99999: must be HOST:PORT"),
        (["federate", "FILE", "--listen", "unix:/nowhere"], {}, "--listen: unix:/nowhere: must be HOST:PORT"),
        (["federate", "FILE", "--listen", "h"], {"reply_after": 1.0}, "federation.yaml: h: must be HOST:PORT"),
        (["silo", "check", "SILO"], {"ledger": "north.csv"}, "ledger: "),
    ],
)
def test_an_address_and_a_folder_are_looked_at_first(words, changes, said, silo, capsys):
    if "ledger" in changes:
        write_silo(silo.parent, yaml.safe_load(silo.read_text()) | changes)
    else:
        agree(silo, **changes)
    words = [{"FILE": str(silo.parent / "federation.yaml"), "SILO": str(silo)}.get(word, word) for word in words]
    assert main(words) == 2
    captured = capsys.readouterr()
    if "grpcio: missing" in captured.err:
        pytest.skip("grpcio: requirements/federate.lock")
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_a_damaged_mark_is_told_at_both_ends(silo, capsys):
    begin(silo)
    mark = silo.parent / "ledger" / "refused.mark"
    mark.write_bytes(bytes(50))
    assert main(["ledger", "show", str(mark.parent)]) == 2
    assert "the coordinator knows a newer copy of it (refused.mark)" in capsys.readouterr().err
    assert main(["ledger", "repair", str(mark.parent), "--epsilon", "4", "--delta", "1e-4"]) == 0
    marks = silo.parent / ".silodp-marks"
    marks.mkdir()
    (marks / "north").write_bytes(bytes(50))
    with pytest.raises(ConfigError, match=r"\.silodp-marks/north: damaged: must be as silodp wrote it"):
        Host(silo.parent / "federation.yaml", silo.parent / "transcript", Path("none"), b"", "unix:/none")


def test_a_run_goes_on_by_the_same_code_and_ends_once(silo, caplog):
    part = part_of(silo)
    begin(silo)
    with pytest.raises(ConfigError, match="another version of silodp began this run: must be the same, or `--again`"):
        membership(part, b"d" * 32, again=False).__enter__()
    caplog.set_level("INFO", "silodp")
    begin(silo)
    assert any(said.endswith(": goes on") for said in caplog.messages)
    assert charges(silo) == 1
    with membership(part, b"c" * 32, again=False):
        pass  # the coordinator says that this is the end, which is its word alone
    with membership(part, b"c" * 32, again=False) as member:
        assert all(member.reply(question(member, slot)) != FAULT for slot in range(4))
    assert charges(silo) == 1
    with pytest.raises(ConfigError, match=r"the run of .* is over: `--again` starts and charges another"):
        membership(part, b"c" * 32, again=False).__enter__()
    begin(silo, again=True)
    assert charges(silo) == 2


def test_a_run_goes_on_where_a_key_changes_that_no_reply_depends_on(silo):
    """A longer `wait` was another run, and another charge."""
    write_silo(silo.parent, yaml.safe_load(silo.read_text()) | {"budget": 9.0})
    begun = begin(silo)
    agree(silo, title="another", wait=99.0, at_least=1, coordinator={"address": "elsewhere:1", "certificate": "new"})
    assert begin(silo) == begun
    assert charges(silo) == 1
    agree(silo, bound=99.0)
    assert len(begin(silo)) == 2
    assert charges(silo) == 2


def test_a_run_is_held_to_its_records_as_they_are_read(silo):
    """`20,500` is 20.5 or 20500, as silo.yaml's `form` says, which no digest held."""
    rows = [f"{20 + i},500;{20 + i % 9};{'yes' if i % 3 else 'no'}" for i in range(45)]
    file, keys = silo.parent / "north.csv", yaml.safe_load(silo.read_text())
    file.write_text("age;bmi;ill\n" + "\n".join(rows) + "\n")
    write_silo(silo.parent, keys | {"form": {"separator": ";", "decimal": ","}})
    begun = begin(silo)
    write_silo(silo.parent, keys | {"form": {"separator": ";", "thousands": ","}})
    with pytest.raises(ConfigError, match=r"north\.csv: has changed since the run began"):
        begin(silo)
    file.write_text(file.read_text().replace(",", ".").replace(";", ","))
    write_silo(silo.parent, keys)
    assert begin(silo) == begun, "the same records, written otherwise"


def test_a_silo_over_tls_needs_its_whole_pair_of_keys(silo, tmp_path):
    """The agreed file has the certificate of its key, and the coordinator's."""
    ours, other = (make_key(tmp_path / f"{name}.key") for name in ("north", "other"))
    agreed = yaml.safe_load((tmp_path / "federation.yaml").read_text()) | {"reply_after": 0.5}
    path = write_silo(tmp_path, yaml.safe_load(silo.read_text()) | {"key": "north.key"})
    for certificate, coordinator, said in (
        (other, other, r"silos.north.certificate: is not that of .*north.key: must be the whole of .*north.crt"),
        (ours, "none", "coordinator.certificate: must be a whole certificate"),
        (ours, other, None),
    ):
        agreed["silos"]["north"]["certificate"] = certificate
        agreed["coordinator"]["certificate"] = coordinator
        (tmp_path / "federation.yaml").write_text(yaml.safe_dump(agreed))
        if said:
            with pytest.raises(ConfigError, match=said):
                Participation(path).pins()
        else:
            assert Participation(path).pins() == (other.encode(), (tmp_path / "north.key").read_bytes(), ours.encode())


def test_both_ends_print_the_same_figures_before_anybody_has_a_key(silo, tmp_path, capsys):
    """The owner of a silo checks a draft; the certificates come later, and change no other line."""
    silos = yaml.safe_load((tmp_path / "federation.yaml").read_text())["silos"]
    blank = {name: entry | {"certificate": ""} for name, entry in silos.items()}
    printed = {}
    for drafted in (True, False):
        if not drafted:
            blank["east"]["certificate"] = make_key(tmp_path / "east.key")
        agree(silo, silos=blank, reply_after=2.0)
        assert main(["silo", "check", str(silo)]) == 0
        at_silo = capsys.readouterr().out
        assert main(["federate", str(tmp_path / "federation.yaml"), "--check"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "\n".join(lines) in at_silo
        printed[drafted] = dict(line.split(": ") for line in lines)
        assert {name for name, said in printed[drafted].items() if said == "none yet"} == {
            f"certificate of {name}" for name in ("coordinator", "north", "east", "west")[: 4 if drafted else None]
        } - ({"certificate of east"} if not drafted else set())
    before, after = printed[True], printed[False]
    assert list(after)[:2] == ["agreed", "code"]
    assert {name for name in before if before[name] != after[name]} == {"agreed", "certificate of east"}
    assert after["certificate of east"] == spoken(fingerprint(blank["east"]["certificate"]))


def test_a_check_refuses_an_agreed_certificate_of_another_key(silo, tmp_path, capsys):
    silos = yaml.safe_load((tmp_path / "federation.yaml").read_text())["silos"]
    silos = {name: entry | {"certificate": ""} for name, entry in silos.items()}
    ours, other = (make_key(tmp_path / f"{name}.key") for name in ("north", "other"))
    write_silo(tmp_path, yaml.safe_load(silo.read_text()) | {"key": "north.key"})
    for certificate, code in ((other, 2), (ours, 0)):
        silos["north"]["certificate"] = certificate
        agree(silo, silos=silos, reply_after=2.0)
        assert main(["silo", "check", str(silo)]) == code
    assert "silos.north.certificate: is not that of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reply_after", "outcome"), [(0.5, "refused"), (1.0, "warned"), (3.9, "warned"), (4.0, ""), (4.1, "")]
)
def test_a_machine_that_is_too_slow_begins_no_run(reply_after, outcome, silo, monkeypatch, caplog):
    """Replies take a second each by this clock."""
    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    agree(silo, reply_after=reply_after)
    part, code = Participation(silo, f"unix:{silo.parent}/line"), b"c" * 32
    said = f"federation.yaml: reply_after: {reply_after:g} s: a reply took 1 s here: "
    with monkeypatch.context() as patched:
        patched.setattr("silodp.silos.taking_part.time", clock)
        if outcome == "refused":
            with pytest.raises(ConfigError, match=said + "all must agree on four times as much"):
                membership(part, code, again=False).__enter__()
        else:
            with membership(part, code, again=False):
                pass
    if outcome == "refused":
        begin(silo)
        assert charges(silo) == 1
        monkeypatch.setattr("silodp.silos.taking_part.time", clock)
        with membership(part, code, again=False):
            pass  # what is charged goes on
    assert any(said in message for message in caplog.messages) == bool(outcome)


def test_replies_that_are_timed_are_those_of_the_algorithm(silo, caplog):
    """A question of SPIDER has two points; what is refused takes no time."""
    agree(silo, algorithm={"name": "fedprox_spider", "options": {"phase_length": 2}})
    assert time_replies(Participation(silo, "unix:/nowhere")) > 0
    assert caplog.messages == []


@pytest.mark.parametrize(("takes", "times", "said"), [(0.5, 4, "the coordinator closed the line"), (2.0, 1, "silent")])
def test_a_silo_gives_up_after_its_patience_and_dials_no_more(takes, times, said, silo, monkeypatch):
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    write_silo(silo.parent, yaml.safe_load(silo.read_text()) | {"answer_within": 2.0})
    now, dialled = [5.0], []

    def dial(*words):
        dialled.append(now[0])
        now[0] += takes

    monkeypatch.setattr("silodp.silos.line.join", dial)
    with membership(Participation(silo, "unix:/nowhere"), b"c" * 32, again=False) as member:
        member._heard = 5.0
        clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: None)
        monkeypatch.setattr("silodp.silos.taking_part.time", clock)
        with pytest.raises(ConfigError, match=rf"unix:/nowhere: {said}.*: must answer within 2 s \(answer_within\)"):
            member.answer()
    assert dialled == [5.0 + takes * number for number in range(times)]


def test_a_silo_whose_run_is_refused_is_told_and_dials_no_more(silo, monkeypatch):
    """Nothing was said at the silo, and it dialled for ever."""
    line = pytest.importorskip("silodp.silos.line", reason="grpcio: requirements/federate.lock")
    address, answered = f"unix:{silo.parent}/line", []
    lines = line.Lines(address, {0: "north"}, b"", b"", 4, lambda silo: host.greet(0), lambda silo, hello: False)
    part, code = Participation(silo, address), b"c" * 32
    host = Host(silo.parent / "federation.yaml", silo.parent / "transcript", Path("none"), code, address)
    with membership(part, code, again=False) as member:
        monkeypatch.setattr(member, "reply", answered.append)
        with pytest.raises(
            ConfigError, match=r"the coordinator refused this run: must go on with .*--output be another"
        ):
            member.answer()
    lines.end(None)
    assert answered == []
    assert charges(silo) == 0


def test_who_cannot_be_reached_is_nobody_or_not_who_is_expected():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert _unreachable(address) == f"{address}: no coordinator is there"
        other.listen()
        assert _unreachable(address).startswith(f"{address}: who listens there has not the coordinator's certificate")
    for nobody in ("127.0.0.1:99999", "unix:/nowhere:1"):
        assert _unreachable(nobody) == f"{nobody}: no coordinator is there"


def test_between_machines_a_reply_has_its_time(silo, tmp_path):
    """Work that depends on records must not show in it."""
    with pytest.raises(ConfigError, match=r"reply_after: 0: must be above 0 between machines"):
        Participation(silo)
    make_key(tmp_path / "coordinator.key")
    certificate = (tmp_path / "coordinator.crt").read_text()
    silos = {"north": yaml.safe_load((tmp_path / "federation.yaml").read_text())["silos"]["north"]}
    silos["north"]["certificate"] = certificate
    coordinator = {"address": "127.0.0.1:1", "certificate": certificate}
    agree(silo, coordinator=coordinator, silos=silos, participants=1)
    with pytest.raises(ConfigError, match=r"reply_after: 0: must be above 0 between machines"):
        Host(tmp_path / "federation.yaml", tmp_path / "out", tmp_path / "coordinator.key", b"c" * 32)


def test_a_coordinator_listens_where_it_is_told_to(silo, tmp_path, capsys):
    """Behind a router it has another address than the one that silos dial; that it cannot have ended in a traceback."""
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    certificates = {name: make_key(tmp_path / f"{name}.key") for name in ("coordinator", "north", "east", "west")}
    silos = yaml.safe_load((tmp_path / "federation.yaml").read_text())["silos"]
    silos = {name: entry | {"certificate": certificates[name]} for name, entry in silos.items()}
    coordinator = {"address": "hospital.example:8470", "certificate": certificates["coordinator"]}
    agree(silo, coordinator=coordinator, silos=silos, reply_after=0.5)
    words = ["federate", str(tmp_path / "federation.yaml"), "--output", str(tmp_path / "out")]
    assert main([*words, "--listen", "203.0.113.7:8470"]) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert "203.0.113.7:8470: cannot be listened at: must be a free port of this machine: `--listen HOST:PORT`" in told
