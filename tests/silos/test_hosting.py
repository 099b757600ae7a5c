"""A coordinator's process and its silos over a socket, in threads: who takes part, and what each is told at the end."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from three_silos import SIZES, federation_keys

from silodp.config.errors import ConfigError
from silodp.silos.hosting import Host
from silodp.silos.silo import PunctualReplies
from silodp.silos.taking_part import Part, membership
from silodp.silos.wire import FAULT

CODE, DIGEST = b"c" * 32, b"m" * 32


def files_of_silos(folder, **changes):
    """federation.yaml, and for each silo a folder with its silo.yaml and made-up records."""
    agreed = folder / "federation.yaml"
    agreed.write_text(yaml.safe_dump(federation_keys(**changes), sort_keys=False))
    for name, size in SIZES.items():
        rows = [f"{20 + i},{20 + i % 9},{'yes' if i % 3 else 'no'}" for i in range(size + 5)]
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
        return DIGEST

    return host, trained, threading.Thread(target=host.run, args=(finish,), daemon=True)


@pytest.mark.parametrize("names", [["north", "east", "west"], ["east", "north"]])
def test_silos_that_come_train_one_model_and_get_its_digest(names, tmp_path, caplog):
    caplog.set_level("INFO", "silodp")
    """Over a socket a silo is known by its name, whatever certificates the agreed file has."""
    agreed = files_of_silos(tmp_path, at_least=2, wait=1.5)
    host, trained, hosting = host_of(agreed)
    hosting.start()
    ends, runs = {}, {}

    def take_part(name):
        part = Part(tmp_path / f"{name}.yaml", host.address)
        with membership(part, CODE, again=False) as member:
            runs[part.number] = member.silo.run
            ends[name] = member.answer()

    silos = [threading.Thread(target=take_part, args=(name,), daemon=True) for name in names]
    for thread in silos:
        thread.start()
    for thread in [*silos, hosting]:
        thread.join(60)
    assert ends == dict.fromkeys(names, DIGEST)
    assert host.runs == runs
    ((models, output),) = trained
    assert models.shape == (1, host.plan.size)
    assert output.isfinite().all()
    assert not list(tmp_path.glob("of-*/runs/*/replies")), "of a run that is over nothing is asked again"
    rounds = [said for said in caplog.messages if said.startswith("round ")]
    assert rounds == [f"round {r} of 4" for r in (1, 2, 3, 4)]
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
            host.run(lambda models, output: DIGEST, turns.__next__)
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
