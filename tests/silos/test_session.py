"""A silo's part of a run: charged once whatever stops, and never after its records or its ledger changed."""

import numpy as np
import pandas as pd
import pytest
import yaml
from three_silos import federation_keys

from silodp.config.errors import ConfigError
from silodp.silos.ledger import Ledger
from silodp.silos.session import Member, SiloRun, held_by_one
from silodp.silos.wire import FAULT, GREETING, HELLO, NO_MARK, Hello, pack

CODE = b"c" * 32


@pytest.fixture
def silo_file(tmp_path):
    """silo.yaml of the north silo with 45 records, 5 more than it declares."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"age": generator.integers(0, 120, 45), "bmi": generator.uniform(10, 50, 45)})
    table.assign(ill=np.where(table["bmi"] > 30, "yes", "no")).to_csv(tmp_path / "north.csv", index=False)
    (tmp_path / "federation.yaml").write_text(yaml.safe_dump(federation_keys()))
    (tmp_path / "silo.yaml").write_text(yaml.safe_dump({"name": "north", "file": "north.csv", "budget": 6.0}))
    return tmp_path / "silo.yaml"


def begun(silo_file, code=CODE, again=False):
    return SiloRun(Member(silo_file), code, again)


def charges(run):
    return len(Ledger(run.ledger_folder).charges)


def question(run, slot):
    return pack(run.digest, slot, np.zeros(run.member.plan.size))


def test_a_stopped_run_goes_on_with_the_same_charge_and_the_same_replies(silo_file):
    first = begun(silo_file)
    reply = first.silo.reply(question(first, 0))
    again = begun(silo_file)
    assert again.digest == first.digest
    assert again.silo.reply(question(again, 0)) == reply != FAULT
    assert charges(again) == 1
    assert first.total[0] <= 4.0


def test_the_declared_number_of_records_is_drawn_once(silo_file):
    first, again = begun(silo_file), begun(silo_file)
    (x, y), (same, _) = (run.silo.messages.silos[0] for run in (first, again))
    assert len(y) == 40
    assert np.array_equal(x, same)
    assert float(x.abs().max()) <= 1


def test_a_run_ends_once_and_another_is_charged_when_asked_for(silo_file):
    run = begun(silo_file)
    run.end()
    with pytest.raises(ConfigError, match="has come to its end here: `--again`"):
        begun(silo_file)
    other = begun(silo_file, again=True)
    assert other.digest != run.digest
    assert charges(other) == 2
    with pytest.raises(ConfigError, match=r"budget: 6: with this charge the total would be epsilon = "):
        begun(silo_file, again=True)


@pytest.mark.parametrize("what", ["not what it was", "another version"])
def test_records_and_code_stay_as_they_were(what, silo_file):
    begun(silo_file)
    if what == "not what it was":
        file = silo_file.parent / "north.csv"
        file.write_text(file.read_text() + "3,20,no\n")
    with pytest.raises(ConfigError, match=what):
        begun(silo_file, code=CODE if what == "not what it was" else b"d" * 32)


def test_hello_names_the_run_and_a_later_mark_stops_it(silo_file):
    run = begun(silo_file)
    member, greeting = run.member, lambda mark: GREETING.pack(run.member.federation.digest, CODE, mark)
    said = Hello(*HELLO.unpack(run.hello(greeting(NO_MARK))))
    assert (said.run, said.federation, run.stop) == (run.digest, member.federation.digest, "")
    run.hello(greeting(b"x" * len(NO_MARK)))
    assert run.stop == "", "a mark that is not this ledger's own tells nothing"
    run.end()
    kept = (run.ledger_folder / "ledger.jsonl").read_bytes(), (run.ledger_folder / ".ledger.key").read_bytes()
    later = begun(silo_file, again=True).mark
    (run.ledger_folder / "ledger.jsonl").write_bytes(kept[0])
    (run.ledger_folder / ".ledger.key").write_bytes(kept[1])
    run.hello(greeting(later))
    assert "has seen later lines" in run.stop
    run.hello(GREETING.pack(bytes(32), CODE, NO_MARK))
    assert "another federation.yaml" in run.stop


def test_what_does_not_fit_is_refused_before_a_charge(silo_file):
    file = silo_file.parent / "north.csv"
    whole = file.read_text()
    for text, expected in (
        ("\n".join(whole.splitlines()[:31]), r"30 records: must have the 40 that"),
        (whole.replace("yes", "maybe"), r"north\.csv: .*'ill'"),
        (whole.replace("bmi", "weight"), r"north\.csv: no column is called 'bmi'"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=expected):
            begun(silo_file)
    assert not (silo_file.parent / "ledger").exists()
    file.write_text(whole)
    assert charges(begun(silo_file)) == 1


def test_one_join_at_a_time(tmp_path):
    with held_by_one(tmp_path), pytest.raises(ConfigError, match="must end first"), held_by_one(tmp_path):
        pass
