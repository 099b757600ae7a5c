"""What a ledger must hold: every charge counts, whatever it is called, and nothing that was written goes unnoticed."""

import json
import math
import multiprocessing
import stat
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.privacy.true_epsilon import upper_end
from silodp.silos.ledger import opened, plan_of

ABOUT = {"file": "patients.csv", "run": "patients"}


def plan(noise=1.0, delta=1e-4, n=50):
    message = Release("gradient", 4, n, noise, sampler="all")
    return PrivacyPlan("minibatch_sgd", Budget(n, 4, 1.0, delta, 1.0), (message,))


def charged(folder, *charges):
    for one in charges:
        with opened(folder) as ledger:
            line = ledger.charge(one, ABOUT)
    return line


def totalled(folder):
    with opened(folder) as ledger:
        return ledger.total()


def of_one(folder):
    folder.mkdir(exist_ok=True)
    with opened(folder) as ledger:
        return ledger.total(plan())[0]


def test_a_line_keeps_every_field_of_a_plan(tmp_path):
    message = Release("g", 2, 3, 0.7, 2, 3, "disjoint", "per_tensor", 2, True, (1.0, -0.5), True, (0, 30))
    given = PrivacyPlan("a", Budget(30, 2, 0.3, 1e-5, 0.7, 4), (message,), None, 3, None, "unproven")
    with opened(tmp_path) as ledger:
        ledger.charge(given, ABOUT)
    with opened(tmp_path) as ledger:
        assert [plan_of(line) for line in ledger.charges] == [given]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.9]), st.sampled_from([1e-4, 1e-6])), min_size=1, max_size=4))
def test_a_total_never_falls(pairs):
    with TemporaryDirectory() as folder, opened(Path(folder)) as ledger:
        plans = [plan(*pair) for pair in pairs]
        epsilon, delta = ledger.total(*plans)
        assert delta == max(pair[1] for pair in pairs)
        assert epsilon >= ledger.total(*plans[:-1])[0] * (1 - 1e-9)


def test_a_line_of_an_earlier_version_counts_as_today_and_show_says_so(tmp_path, capsys):
    """Such a line knows `tries`, and its total credits steps that do not expand distances, as no lattice's do."""
    step = Release("step", 200, 1, 0.8, steps=10, contracted=True)
    local = PrivacyPlan("local_sgd", Budget(50, 20, 1.0, 1e-4, 1.0), (step,))
    with opened(tmp_path) as ledger:
        line = ledger.charge(local, ABOUT)
        ledger.lines.clear()
        stored = [one | {"tries": 1.0} for one in line["plans"]]
        ledger._write("charge", about=ABOUT, plans=stored, total_epsilon=upper_end([local]), total_delta=1e-4)
    assert totalled(tmp_path)[0] == upper_end([local.with_steps_seen]) > upper_end([local])
    assert main(["ledger", "show", str(tmp_path)]) == 0
    assert "line 1 said" in capsys.readouterr().out
    charged(tmp_path, local)
    assert main(["ledger", "show", str(tmp_path)]) == 0
    assert "said" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "plans", [lambda one: [one | {"tries": 4.0}], lambda one: [one, one], lambda one: [one | {"releases": [{}]}]]
)
def test_a_line_that_no_run_writes_is_refused(tmp_path, plans):
    """A choice among runs, or among silos' plans, as earlier versions released; a plan that lacks a key."""
    with opened(tmp_path) as ledger:
        (stored,) = ledger.charge(plan(), ABOUT)["plans"]
        ledger.lines.clear()
        ledger._write("charge", about=ABOUT, plans=plans(stored), total_epsilon=1.0, total_delta=1e-4)
    with pytest.raises(ConfigError, match="line 1: damaged, or of an earlier version"), opened(tmp_path):
        pass


def test_a_ledger_csv_of_an_earlier_version_is_refused(tmp_path):
    (tmp_path / "ledger.csv").touch()
    with pytest.raises(ConfigError, match=r"ledger.csv of an earlier version is read no more: .*ledger repair"):
        charged(tmp_path, plan())
    assert main(["ledger", "repair", str(tmp_path), "--epsilon", "2", "--delta", "1e-3"]) == 0
    with pytest.raises(ConfigError, match="is read no more"):
        charged(tmp_path, plan())
    (tmp_path / "ledger.csv").unlink()
    assert totalled(tmp_path) == (2, 1e-3)
    charged(tmp_path, plan())


def test_lines_without_their_secret_stop_until_a_bound_is_given(tmp_path):
    """A ledger that lost its end and its secret counted as whole under a new one."""
    charged(tmp_path, plan(), plan())
    secret, path = tmp_path / ".ledger.key", tmp_path / "ledger.jsonl"
    assert stat.S_IMODE(secret.stat().st_mode) == stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(json.loads(secret.read_text())["key"]) == 2 * 32  # bytes, in hexadecimal digits
    before, text = totalled(tmp_path), path.read_text()
    secret.unlink()
    path.write_text(text.splitlines(keepends=True)[0])
    with pytest.raises(ConfigError, match=r"secret .ledger.key is lost: restore it, or `silodp ledger repair`"):
        charged(tmp_path, plan())
    assert main(["ledger", "show", str(tmp_path)]) == 2
    assert main(["ledger", "repair", str(tmp_path), "--epsilon", "2", "--delta", "1e-3"]) == 0
    assert totalled(tmp_path)[0] == of_one(tmp_path / "none") + 2 < before[0] + 2
    assert charged(tmp_path, plan())["number"] == 3
    path.write_text(path.read_text().replace('"noise": 1.0', '"noise": 9.0', 1))
    with pytest.raises(ConfigError, match="line 1: is not what was written"), opened(tmp_path):
        pass


def test_a_lost_line_stops_until_its_bound_is_given(tmp_path, capsys):
    charged(tmp_path, plan(), plan(), plan())
    path = tmp_path / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for left in (lines[:1], []):
        path.write_text("".join(left))
        with pytest.raises(ConfigError, match=f"{3 - len(left)} lines are lost at its end"):
            charged(tmp_path, plan())
    path.write_text(lines[0])
    one = totalled(tmp_path)
    assert main(["ledger", "repair", str(tmp_path), "--epsilon", "2", "--delta", "1e-3"]) == 0
    assert totalled(tmp_path) == (one[0] + 2, one[1] + 1e-3)
    charged(tmp_path, plan())
    assert main(["ledger", "repair", str(tmp_path), "--epsilon", "2", "--delta", "1e-3"]) == 2
    assert "nothing to repair" in capsys.readouterr().err


@pytest.mark.parametrize("old", ['"noise": 1.0', '"number": 1', '"kind": "charge"', '"run": "patients"', "{"])
def test_a_change_elsewhere_stops_everything(tmp_path, old):
    charged(tmp_path, plan(), plan())
    path = tmp_path / "ledger.jsonl"
    first, second = path.read_text().splitlines(keepends=True)
    path.write_text(first.replace(old, old.replace("1", "9").replace("a", "b") if old != "{" else "[", 1) + second)
    with pytest.raises(ConfigError, match=r"line 1: .*restore the ledger from a copy"), opened(tmp_path):
        pass
    path.write_text(second)
    with pytest.raises(ConfigError, match=r"line|lost"):
        charged(tmp_path, plan())


def test_a_repair_counts_no_lines_that_another_secrets_mark_tells_of(tmp_path):
    """Else a hostile coordinator's large number would cover what was lost for another."""
    charged(tmp_path, plan())
    with opened(tmp_path) as ledger:
        for budget in (90.0, 91.0):
            ledger.set_budget(budget)
        later = ledger.mark(b"r" * 32, 1)
    text = (tmp_path / "ledger.jsonl").read_text().splitlines(keepends=True)[0]
    (tmp_path / "ledger.jsonl").write_text(text)
    key = json.loads((tmp_path / ".ledger.key").read_text())
    known = key | {"number": 1, "mac": json.loads(text)["mac"]}
    (tmp_path / ".ledger.key").write_text(json.dumps(known))  # an older copy of the folder
    bogus = (2**40).to_bytes(8, "little") + bytes(104)
    for mark in (bogus, later):
        with opened(tmp_path) as ledger, pytest.raises(ConfigError, match="knows a newer copy"):
            ledger.hold_to(mark)
        with opened(tmp_path) as ledger:
            ledger.repair(1.0, 1e-6)
            ledger.hold_to(mark)


def test_the_budget_stands_in_the_ledger(tmp_path):
    one = of_one(tmp_path)
    with opened(tmp_path) as ledger:
        ledger.set_budget(1.2 * one)
    charged(tmp_path, plan())
    text = (tmp_path / "ledger.jsonl").read_text()
    with pytest.raises(ConfigError, match="total would be"):
        charged(tmp_path, plan())
    assert (tmp_path / "ledger.jsonl").read_text() == text
    with opened(tmp_path) as ledger:
        ledger.set_budget(3 * one)
    charged(tmp_path, plan())
    with opened(tmp_path) as ledger:
        assert [line["kind"] for line in ledger.lines] == ["budget", "charge", "budget", "charge"]


def test_a_budget_is_spent_to_its_last_bit(tmp_path):
    with opened(tmp_path) as ledger:
        total = ledger.total(plan())
        assert ledger.check(plan(), total[0]) == total
        with pytest.raises(ConfigError, match="total would be"):
            ledger.check(plan(), math.nextafter(total[0], 0))


def _charge(folder, results):
    try:
        with opened(folder) as ledger:
            time.sleep(0.3)  # so that both have read it, where both can
            ledger.charge(plan(), ABOUT)
            results.put("charged")
    except ConfigError as error:
        results.put(str(error))


def test_of_two_charges_at_once_the_budget_takes_one(tmp_path):
    with opened(tmp_path) as ledger:
        ledger.set_budget(1.2 * ledger.total(plan())[0])
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    both = [context.Process(target=_charge, args=(tmp_path, results)) for _ in range(2)]
    for process in both:
        process.start()
    said = sorted(results.get(timeout=60) for _ in both)
    for process in both:
        process.join()
    assert (said[1], "the total would be" in said[0]) == ("charged", True)
