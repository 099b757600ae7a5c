"""What a ledger must hold: every charge counts, whatever it is called, and nothing that was written goes unnoticed."""

import json
import multiprocessing
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.silos import ledger_total
from silodp.silos.ledger import _BUDGET, _MESSAGE, _PLAN, opened, plans_of
from silodp.silos.ledger_total import total

FORMER = Path(__file__).with_name("ledger_of_earlier_version.csv")
ABOUT = {"file": "patients.csv", "run": "patients"}


def plan(noise=1.0, delta=1e-4, sampler="all", n=50, trusted_sum=None, tries=1):
    message = Release("gradient", 4, n if sampler == "all" else 5, noise, sampler=sampler)
    return PrivacyPlan("minibatch_sgd", Budget(n, 4, 1.0, delta, 1.0), (message,), None, trusted_sum, tries=tries)


def charged(folder, *charges, budget=None):
    for plans in charges:
        with opened(folder) as ledger:
            line = ledger.charge(plans, ABOUT, budget=budget)
    return line


def totalled(folder):
    with opened(folder) as ledger:
        return ledger.total()


def test_a_line_keeps_every_field_of_a_plan(tmp_path):
    message = Release("g", 2, 3, 0.7, 2, 3, "disjoint", "per_tensor", 2, True, (1.0, -0.5), True, (0, 30))
    given = PrivacyPlan("a", Budget(30, 2, 0.3, 1e-5, 0.7, 4), (message,), None, 3, None, "unproven", 2.5)
    with opened(tmp_path) as ledger:
        assert plans_of({"plans": [ledger.charge([given], ABOUT)["plans"][0]]}) == [given]
    assert set(_MESSAGE) == set(Release.__dataclass_fields__)
    assert set(_BUDGET) == set(Budget.__dataclass_fields__)
    named_elsewhere = {"budget", "releases", "shuffler", "shuffled_sum"}
    assert set(_PLAN) | named_elsewhere == set(PrivacyPlan.__dataclass_fields__)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.9]), st.sampled_from([1e-4, 1e-6])), min_size=1, max_size=2),
        min_size=1,
        max_size=3,
    )
)
def test_a_total_covers_every_choice_and_never_falls(pairs):
    charges = [[plan(*pair) for pair in line] for line in pairs]
    epsilon, delta = total(charges)
    assert delta == max(pair[1] for line in pairs for pair in line)
    assert epsilon >= total(charges[:-1])[0] * (1 - 1e-9)
    # Former totals knew a record by its silo's name: of every line the first plan, or of every line the last.
    for place in (0, -1):
        assert epsilon >= total([[line[place]] for line in charges])[0] * (1 - 1e-9)
    ledger_total.MOST_CHOICES, kept = 0, ledger_total.MOST_CHOICES
    try:
        assert total(charges)[0] >= epsilon * (1 - 1e-9)
    finally:
        ledger_total.MOST_CHOICES = kept


def test_a_person_in_silos_with_unlike_plans_behind_one_sum_is_not_promised():
    alike, unlike = [plan(trusted_sum=2)], [plan(trusted_sum=2), plan(2.0, trusted_sum=2)]
    assert total([alike], 1)[0] < total([alike], 2)[0] < float("inf")
    assert total([unlike], 2)[0] == float("inf")


def test_a_ledger_of_an_earlier_version_counts_and_comes_in_without_its_digests(tmp_path):
    shutil.copy(FORMER, tmp_path / "ledger.csv")
    before = totalled(tmp_path)
    # One of the two releases was chosen privately among 4 runs. Composed by silos' names they were 2.0486.
    assert before == (pytest.approx(2.1787, abs=1e-4), 0.000625)
    charged(tmp_path, [plan()])
    assert totalled(tmp_path)[0] > before[0]
    text = (tmp_path / "ledger.jsonl").read_text()
    with opened(tmp_path) as ledger:
        assert [line["number"] for line in ledger.lines] == [1, 2, 3]
    for digest in ("39d4f485e594e878", "289501c224955a2c"):
        assert digest in FORMER.read_text()
        assert digest not in text
    (tmp_path / "ledger.csv").unlink()
    assert totalled(tmp_path)[0] > before[0]


def test_a_lost_line_stops_until_its_bound_is_given(tmp_path, capsys):
    charged(tmp_path, [plan()], [plan()], [plan()])
    path = tmp_path / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for left in (lines[:1], []):
        path.write_text("".join(left))
        with pytest.raises(ConfigError, match=f"{3 - len(left)} lines are lost at its end"):
            charged(tmp_path, [plan()])
    path.write_text(lines[0])
    one = totalled(tmp_path)
    assert main(["ledger", "repair", str(tmp_path), "--epsilon", "2", "--delta", "1e-3"]) == 0
    assert totalled(tmp_path) == (one[0] + 2, one[1] + 1e-3)
    charged(tmp_path, [plan()])
    assert main(["ledger", "repair", str(tmp_path), "--epsilon", "2", "--delta", "1e-3"]) == 2
    assert "nothing to repair" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [1, 2, 40, 80, 400])
def test_a_torn_last_line_counts_if_it_can_be_read(tmp_path, cut):
    charged(tmp_path, [plan()], [plan()])
    path, whole = tmp_path / "ledger.jsonl", totalled(tmp_path)
    path.write_text(path.read_text()[:-cut])
    if cut < 80:
        assert totalled(tmp_path) == whole
        assert charged(tmp_path, [plan()])["number"] == 3
        assert cut == 1 or (tmp_path / "ledger.torn").exists()
    else:
        with pytest.raises(ConfigError, match="last line is torn"):
            charged(tmp_path, [plan()])
        with opened(tmp_path) as ledger:
            ledger.repair(5.0, 1e-3)
        assert totalled(tmp_path)[0] > 5
        assert "batch_" in (tmp_path / "ledger.torn").read_text()
    assert [json.loads(line)["number"] for line in path.read_text().splitlines()] in ([1, 2, 3], [1, 2])


@pytest.mark.parametrize("old", ['"noise": 1.0', '"number": 1', '"kind": "charge"', '"run": "patients"', "{"])
def test_a_change_elsewhere_stops_everything(tmp_path, old):
    charged(tmp_path, [plan()], [plan()])
    path = tmp_path / "ledger.jsonl"
    first, second = path.read_text().splitlines(keepends=True)
    path.write_text(first.replace(old, old.replace("1", "9").replace("a", "b") if old != "{" else "[", 1) + second)
    with pytest.raises(ConfigError, match=r"line 1: .*restore the ledger from a copy"), opened(tmp_path):
        pass
    path.write_text(second)
    with pytest.raises(ConfigError, match=r"line|lost|torn"):
        charged(tmp_path, [plan()])


def test_a_lost_secret_is_replaced_by_a_line(tmp_path):
    charged(tmp_path, [plan()], [plan()])
    key, before = tmp_path / ".ledger.key", totalled(tmp_path)
    assert stat.S_IMODE(key.stat().st_mode) == stat.S_IMODE((tmp_path / "ledger.jsonl").stat().st_mode) == 0o600
    key.unlink()
    with pytest.raises(ConfigError, match=r"secret .ledger.key is lost"):
        charged(tmp_path, [plan()])
    assert totalled(tmp_path) == before, "totals need no secret"
    assert main(["ledger", "rekey", str(tmp_path)]) == 0
    assert charged(tmp_path, [plan()])["number"] == 4
    path = tmp_path / "ledger.jsonl"
    path.write_text(path.read_text().replace('"noise": 1.0', '"noise": 9.0', 1))
    with pytest.raises(ConfigError, match="one before it is not what was written"):
        charged(tmp_path, [plan()])


def test_the_budget_stands_in_the_ledger(tmp_path):
    one = total([[plan()]])[0]
    charged(tmp_path, [plan()], budget=1.2 * one)
    text = (tmp_path / "ledger.jsonl").read_text()
    for budget, said in ((None, "total would be"), (3 * one, "must be the ledger's")):
        with pytest.raises(ConfigError, match=said):
            charged(tmp_path, [plan()], budget=budget)
    assert (tmp_path / "ledger.jsonl").read_text() == text
    assert main(["ledger", "budget", str(tmp_path), "--epsilon", f"{3 * one:g}"]) == 0
    charged(tmp_path, [plan()])
    with opened(tmp_path) as ledger:
        assert [line["kind"] for line in ledger.lines] == ["budget", "charge", "budget", "charge"]


def _charge(folder, results):
    try:
        with opened(folder, wait=True) as ledger:
            ledger.charge([plan()], ABOUT)
            results.put("charged")
    except ConfigError as error:
        results.put(str(error))


def test_of_two_charges_at_once_the_budget_takes_one(tmp_path):
    with opened(tmp_path) as ledger:
        ledger.set_budget(1.2 * total([[plan()]])[0])
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    both = [context.Process(target=_charge, args=(tmp_path, results)) for _ in range(2)]
    for process in both:
        process.start()
    said = sorted(results.get(timeout=60) for _ in both)
    for process in both:
        process.join()
    assert (said[1], "the total would be" in said[0]) == ("charged", True)
    busy = pytest.raises(ConfigError, match="another release of these data is running")
    with opened(tmp_path), busy, opened(tmp_path):
        pass
