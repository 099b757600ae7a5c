"""Claimed against delivered ε: one row for each private point that was chosen, and the worst silo's value in it."""

import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small

from silodp.algorithms import ALGORITHMS
from silodp.config.loading import Resolved
from silodp.experiments.delivered import (
    by_round_rows,
    epsilon_by_round,
    privacy_rows,
    sent_by_round,
    with_other_epsilons,
)
from silodp.experiments.table import delivered_lookup
from silodp.experiments.task import Task
from silodp.federation.data_of import held_by_one
from silodp.federation.partition import partition
from silodp.files import BY_ROUND_COLUMNS, PRIVACY_COLUMNS, PRIVACY_EXTRA, write_csv
from silodp.privacy.accounting.accountant import DeliveredEpsilon, delivered_epsilon, end_of_round_epsilon
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.adversary import delivered
from silodp.privacy.person import person_epsilon, persons_epsilon
from silodp.privacy.plan import ADJACENCY, Budget
from silodp.privacy.selection import selection_epsilon
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


BUDGET = Budget(60, 6, 2.0, 1e-3, 4.0)


def made(name):
    more = {"noise": 0.4} if name.startswith("shuffled") else {}
    return ALGORITHMS[name].with_options({"rounds": 6, "phase_length": 2, "restarts": 2, **more})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_at_the_end_everything_has_been_sent(name):
    algorithm = made(name)
    plan = algorithm.plan(BUDGET)
    sent = sent_by_round(algorithm, plan)
    assert len(sent) == 6
    assert sent[-1] == {release.kind: release.count for release in plan.releases}
    assert all(before[kind] <= after[kind] for before, after in itertools.pairwise(sent) for kind in before)


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd", "fed_spider", "prox_svrg", "sdp_fedprox_spider"])
def test_epsilon_grows_to_the_runs(name):
    algorithm = made(name)
    plan = algorithm.plan(BUDGET)
    found = epsilon_by_round(algorithm, plan, (1, 3, 6))
    values = [value for _, value in found]
    assert [number for number, _ in found] == [1, 3, 6]
    assert 0 < values[0] < values[1] < values[2] == delivered(plan).upper


def test_disjoint_batches_cost_nothing_after_the_first():
    algorithm = made("prox_sgd")
    plan = algorithm.plan(BUDGET)
    assert {value for _, value in epsilon_by_round(algorithm, plan)} == {delivered(plan).upper}


def test_messages_on_all_records_have_a_closed_form():
    algorithm = made("minibatch_sgd")
    plan = algorithm.plan(BUDGET)
    plan = dataclasses.replace(plan, releases=(dataclasses.replace(plan.releases[0], sampler="all"),))
    for number, value in epsilon_by_round(algorithm, plan):
        assert value == pytest.approx(gaussian_epsilon(1e-3, number**0.5 / plan.noise_multiplier), rel=1e-9)


SIZES_OTHER_EPSILONS = [285, 169]


def rows_other_epsilons(algorithm="minibatch_sgd", held=(1, 1), **changes):
    config = small.experiment(**changes)
    point = {"experiment": "small", "algorithm": algorithm, "reading": "", "M": 2, "R": 3, "trial": 0, "epsilon": 2.0}
    chosen = pd.DataFrame([point | {"stepsize": 0.1, "clip": 0.5, "phase_length": 1, "selection": "pooled"}])
    before = privacy_rows("small", config, chosen, SIZES_OTHER_EPSILONS)
    (row,) = with_other_epsilons(before, "small", config, SIZES_OTHER_EPSILONS, held).to_dict("records")
    return row, Task("small", config, algorithm, config.settings[0]).plans(2.0, 1, SIZES_OTHER_EPSILONS)[0]


def test_person_with_one_record_has_the_delivered_epsilon():
    row, _ = rows_other_epsilons()
    assert row["epsilon_person"] == pytest.approx(row["delivered_epsilon"], rel=1e-6)
    # Of three rounds, half are one.
    assert 0 < row["epsilon_first_round"] == row["epsilon_half_rounds"] < row["delivered_epsilon"]


def test_shared_records_and_grid_size_raise_epsilon():
    row, plan = rows_other_epsilons(held=(2, 3))
    assert (row["person_silos"], row["person_records"]) == (2, 3)
    assert row["epsilon_person"] == person_epsilon(plan, 2, 3) > row["delivered_epsilon"]
    assert row["selection_points"] == 4  # two step sizes, two clips
    assert row["epsilon_selection"] == selection_epsilon([plan], 4) > row["delivered_epsilon"]


def test_person_epsilon_is_finite_for_resampled_records():
    row, plan = rows_other_epsilons(held=(1, 7), readings={"resample": True})
    assert row["delivered_epsilon"] == np.inf
    assert row["epsilon_person"] == person_epsilon(plan, 1, 7) < np.inf
    assert np.isnan(row["epsilon_selection"])


def test_by_round_ends_at_the_delivered_epsilon():
    algorithms = {"minibatch_sgd": {}, "fed_spider": {}, "local_sgd": {"private": "non_private"}}
    config = small.experiment(algorithms=algorithms, epsilons=[1.0, 2.0, 8.0])
    found = by_round_rows("small", config, SIZES_OTHER_EPSILONS)
    assert list(found.columns) == BY_ROUND_COLUMNS
    assert list(found["algorithm"].unique()) == ["minibatch_sgd", "fed_spider"]
    for name, of in found.groupby("algorithm"):
        plan = Task("small", config, name, config.settings[0]).plans(2.0, 1, SIZES_OTHER_EPSILONS)[0]
        assert list(of["round"]) == [1, 2, 3]
        assert of["epsilon"].is_monotonic_increasing
        assert of["epsilon"].iloc[-1] == delivered(plan).upper
        assert set(of["claimed_epsilon"]) == {2.0}


def test_by_round_has_no_rows_without_a_proof():
    config = small.experiment(algorithms={"minibatch_sgd": {}}, readings={"clip_rule": "max_norm"})
    assert by_round_rows("small", config, SIZES_OTHER_EPSILONS).empty


def test_person_in_silos_with_unequal_plans_sums_the_worst():
    task = Task("small", small.experiment(readings={"records": "own"}), "minibatch_sgd", small.experiment().settings[0])
    plans = list(dict.fromkeys(task.plans(2.0, 1, SIZES_OTHER_EPSILONS)))
    assert len(plans) == 2
    assert persons_epsilon(plans, 1, 2) == max(person_epsilon(plan, 1, 2) for plan in plans)
    found = persons_epsilon(plans, 2, 2)
    # At δ/2 each, which costs more than at δ; and no less than what the two compose to if both were the worse one.
    assert found > 2 * persons_epsilon(plans, 1, 2)
    assert found >= max(person_epsilon(plan, 2, 2) for plan in plans)
    assert persons_epsilon(plans, 1, 169) == np.inf, "a person who is a whole silo"


def test_person_column_decides_how_records_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = {"file": "a.csv", "target": "y", "silo": "s", "person": "p"}
    frame = pd.DataFrame({"s": ["a"] * 20 + ["b"] * 20, "x": range(40), "p": [*range(10)] * 4, "y": [0, 1] * 20})
    frame.to_csv("a.csv", index=False)
    config = small.experiment(dataset=own, silos={"scheme": "column"})
    part = partition(
        frame["y"].to_numpy(),
        scheme="column",
        silos=2,
        generator=np.random.default_rng(0),
        assigned=np.repeat([0, 1], 20),
    )
    assert held_by_one(config, part) == (2, 2)
    own.pop("person")
    assert held_by_one(small.experiment(dataset=own | {"ignore": ["p"]}, silos={"scheme": "column"}), part) == (1, 1)
