"""Claimed against delivered ε: one row for each private point that was chosen, and the worst silo's value in it."""

import math
from pathlib import Path

import pandas as pd
import pytest
import small

from silodp.config.loading import Resolved
from silodp.experiments.delivered import privacy_rows
from silodp.experiments.table import delivered_lookup
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA, write_csv
from silodp.privacy.accounting.accountant import DeliveredEpsilon, delivered_epsilon, end_of_round_epsilon
from silodp.privacy.plan import ADJACENCY
from silodp.workflow.plan import Plan

SIZES = [169, 285]


def plan(**changes) -> Plan:
    return Plan(Resolved(Path("run.yaml"), small.run(), {"small": small.experiment(**changes)}))


def point(algorithm="minibatch_sgd", epsilon=2.0, q=1, selection="pooled", reading="", trial=0, stepsize=0.1, clip=1.0):
    return {
        "experiment": "small",
        "algorithm": algorithm,
        "reading": reading,
        "M": 2,
        "R": 3,
        "trial": trial,
        "epsilon": epsilon,
        "stepsize": stepsize,
        "clip": clip,
        "phase_length": q,
        "selection": selection,
    }


def rows(*points, sizes=SIZES, **changes):
    return privacy_rows("small", plan(**changes).experiments["small"], pd.DataFrame(points), sizes)


def stand_in(one) -> float:
    """A number that tells plans apart."""
    return sum(release.count * release.gradients / release.noise_multiplier**2 for release in one.releases)


@pytest.fixture
def accountant(monkeypatch):
    """A stand-in that is quick and keeps what it was asked."""
    asked = []

    def fake(one, delta):
        asked.append((one, delta))
        value = stand_in(one)
        return DeliveredEpsilon(value / 2, value * 0.75, value, "stand-in")

    monkeypatch.setattr("silodp.privacy.adversary.delivered_epsilon", fake)
    return asked


def test_delivered_epsilon_is_the_accountants_upper_end():
    (row,) = rows(point()).to_dict("records")
    task = plan().task("small", "minibatch_sgd", "M2_R3", "default")
    wanted = task.plans(2.0, 1, SIZES)[0]
    result = delivered_epsilon(wanted, 169**-2.0)
    assert row["delivered_epsilon"] == result.upper
    assert row["accountant"] == result.method
    assert row["noise_multiplier"] == wanted.noise_multiplier
    assert row["sampling"] == "48 of 169 with replacement"
    assert row["delta"] == 169**-2.0
    assert row["adjacency"] == ADJACENCY
    assert row["claimed_epsilon"] == row["epsilon"] == 2.0
    assert row["holds"] == (result.upper <= 2.0)


@pytest.mark.parametrize(
    ("M", "change", "known"),
    [(2, {}, True), (1, {}, False), (2, {"clipping": "per_tensor"}, False), (2, {"resample": True}, False)],
)
def test_lower_end_is_given_only_where_proven(accountant, M, change, known):
    """Not where a silo may not be drawn, where a record counts several times, or where the clipping is another one."""
    settings = [{"M": M, "R": 3}]
    (row,) = rows(point() | {"M": M}, readings=change, settings=settings).to_dict("records")
    assert (row["delivered_lower"] == row["delivered_epsilon"] / 2) if known else math.isnan(row["delivered_lower"])
    assert not change.get("resample") or (row["delivered_epsilon"] == math.inf and not row["holds"])


@pytest.mark.parametrize("noise", ["paper", "calibrated"])
def test_lower_end_of_local_sgd_sees_only_ends_of_rounds(noise):
    readings = {"noise": noise}
    (row,) = rows(point("local_sgd", epsilon=18.0), readings=readings).to_dict("records")
    one = plan(readings=readings).task("small", "local_sgd", "M2_R3", "default").plans(18.0, 1, SIZES)[0]
    (release,) = one.releases
    assert (row["delivered_epsilon"] <= 18) == (noise == "calibrated")
    assert release.count == 3 * release.steps
    wanted = end_of_round_epsilon(release.steps, 3, 169, one.noise_multiplier, 169**-2.0).lower
    assert row["delivered_lower"] == wanted
    assert wanted < delivered_epsilon(one, 169**-2.0).lower


def test_every_private_point_has_one_row(accountant):
    points = [point(trial=t, stepsize=s, clip=c) for t in range(3) for s in (0.1, 0.2) for c in (1.0, 5.0)]
    points += [point(epsilon=8.0), point(epsilon=math.nan), point("local_sgd"), point("local_sgd", math.nan)]
    found = rows(*points)
    assert list(found.columns) == [*PRIVACY_COLUMNS, *PRIVACY_EXTRA, "phase_length", "reported"]
    keys = found[["algorithm", "epsilon"]].apply(tuple, axis=1).tolist()
    assert sorted(keys) == [("local_sgd", 2.0), ("minibatch_sgd", 2.0), ("minibatch_sgd", 8.0)]
    assert found["reported"].all()
    assert len(accountant) == 3


def test_worst_silo_is_reported_when_plans_differ(accountant):
    found = rows(point(), readings={"records": "own"})
    task = plan(readings={"records": "own"}).task("small", "minibatch_sgd", "M2_R3", "default")
    values = {one.budget.n: stand_in(one) for one in task.plans(2.0, 1, SIZES)}
    assert len(accountant) == 2
    assert found["delivered_epsilon"].tolist() == [max(values.values())]
    worst = max(values, key=values.get)
    assert found["delta"].tolist() == [worst**-2.0]
    assert found["sampling"][0].endswith(f"of {worst} with replacement")


def test_largest_epsilon_is_reported_when_trials_chose_different_phases(accountant):
    found = rows(point("fedprox_spider", q=1), point("fedprox_spider", q=2, trial=1))
    assert sorted(found["phase_length"]) == [1, 2]
    worst = found["delivered_epsilon"].idxmax()
    assert found["reported"].sum() == 1
    assert found.loc[worst, "reported"]


@pytest.mark.parametrize(
    ("upper", "word"),
    [(1.9, "kept"), (2.0, "kept"), (2.1, "not certified"), (math.inf, "not certified"), (math.nan, "not certified")],
)
def test_a_claim_is_kept_when_the_upper_end_is_at_most_the_claim(upper, word, monkeypatch):
    monkeypatch.setattr("silodp.privacy.adversary.delivered_epsilon", lambda *_: DeliveredEpsilon(0.1, 1.0, upper, "m"))
    found = rows(point())
    assert (found["holds"].tolist(), found["claim"].tolist()) == ([word == "kept"], [word])


def test_a_claim_is_violated_when_the_lower_end_is_above_it(monkeypatch):
    monkeypatch.setattr("silodp.privacy.adversary.delivered_epsilon", lambda *_: DeliveredEpsilon(2.1, 2.2, 2.3, "m"))
    assert rows(point())["claim"].tolist() == ["violated"]


def test_a_trial_row_finds_its_delivered_epsilon(accountant, tmp_path):
    """Also from the CSV file, where an empty reading is an empty cell; SPIDER's row by what trained it."""
    found = rows(point("fedprox_spider", q=2), point("fed_spider", epsilon=8.0))
    write_csv(found, tmp_path / "privacy.csv")
    for table in (found, pd.read_csv(tmp_path / "privacy.csv", keep_default_na=False)):
        delivered = delivered_lookup(table)
        of = found[found["algorithm"] == "fedprox_spider"]
        wanted = (of["delivered_epsilon"].item(), of["delivered_lower"].item())
        row = {"source": "fedprox_spider", "algorithm": "spider", "reading": "", "M": 2, "R": 3, "epsilon": 2.0}
        assert delivered(pd.Series(row | {"phase_length": 2})) == wanted
        with pytest.raises(KeyError):
            delivered(pd.Series(row | {"phase_length": 1}))
