"""Claimed against delivered ε: one row for each private point that was chosen, and the worst silo's value in it."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
import small
from events import delivered_epsilon
from jobs import task

from silodp.algorithms import ALGORITHMS
from silodp.experiments.columns import BY_ROUND_COLUMNS, PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.experiments.privacy_table import (
    by_round_rows,
    epsilon_by_round,
    privacy_rows,
    sent_by_round,
    with_other_epsilons,
)
from silodp.experiments.table import delivered_lookup
from silodp.experiments.task import Task
from silodp.files import write_csv
from silodp.privacy.accounting.accountant import DeliveredEpsilon, end_of_round_epsilon
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import Whom
from silodp.privacy.person import person_epsilon, persons_epsilon
from silodp.privacy.plan import ADJACENCY, Budget
from silodp.privacy.private_selection import selection_epsilon
from silodp.privacy.true_epsilon import ends

SIZES = [169, 285]


def point(algorithm="minibatch_sgd", epsilon=2.0, q=1, **other):
    named = {"experiment": "small", "algorithm": algorithm, "reading": "", "M": 2, "R": 3, "epsilon": epsilon}
    return named | {"trial": 0, "stepsize": 0.1, "clip": 1.0, "phase_length": q, "selection": "pooled"} | other


def rows(*points, **changes):
    return privacy_rows("small", small.experiment(**changes), pd.DataFrame(points), SIZES)


def stand_in(one) -> float:
    """A number that tells plans apart."""
    return sum(release.count * release.gradients / release.noise_multiplier**2 for release in one.releases)


@pytest.fixture
def accountant(monkeypatch):
    """A stand-in that is quick and keeps what it was asked."""
    asked = []

    def fake(plans):
        asked.extend(plans)
        value = stand_in(*plans)
        return DeliveredEpsilon(value / 2, value * 0.75, value, "stand-in")

    monkeypatch.setattr("silodp.experiments.privacy_table.ends", fake)
    return asked


def test_delivered_epsilon_is_the_accountants_upper_end():
    (row,) = rows(point()).to_dict("records")
    wanted = task().plans(2.0, 1, SIZES)[0]
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
    [
        (2, {}, True),
        (1, {}, False),
        (2, {"clipping": "per_tensor"}, False),
        (2, {"resample": True}, False),
    ],
)
def test_lower_end_is_given_only_where_proven(accountant, M, change, known):
    """Not where a silo may not be drawn, where a record counts several times, or where the clipping is another one."""
    (row,) = rows(point(M=M), readings=change, settings=[{"M": M, "R": 3}]).to_dict("records")
    assert (row["delivered_lower"] == row["delivered_epsilon"] / 2) if known else math.isnan(row["delivered_lower"])
    assert not change.get("resample") or (row["delivered_epsilon"] == math.inf and not row["holds"])


@pytest.mark.parametrize("algorithm", ["one_pass_accelerated_sgd", "localised_accelerated"])
def test_lower_end_is_not_given_where_the_order_of_records_is_secret(accountant, algorithm):
    (row,) = rows(point(algorithm)).to_dict("records")
    assert math.isnan(row["delivered_lower"])


@pytest.mark.parametrize("noise", ["paper", "calibrated"])
def test_lower_end_of_local_sgd_sees_only_ends_of_rounds(noise):
    readings = {"noise": noise}
    (row,) = rows(point("local_sgd", epsilon=18.0), readings=readings).to_dict("records")
    one = task("local_sgd", readings=readings).plans(18.0, 1, SIZES)[0]
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
    values = {one.budget.n: stand_in(one) for one in task(readings={"records": "own"}).plans(2.0, 1, SIZES)}
    assert len(accountant) == 2
    assert found["delivered_epsilon"].tolist() == [max(values.values())]
    assert found["delivered_lower"].tolist() == [max(values.values()) / 2]
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
    ("lower", "upper", "word"),
    [
        (0.1, 1.9, "kept"),
        (0.1, 2.0, "kept"),
        (0.1, 2.1, "not certified"),
        (0.1, math.inf, "not certified"),
        (0.1, math.nan, "not certified"),
        (2.1, 2.3, "violated"),
    ],
)
def test_a_claim_is_judged_by_both_ends(lower, upper, word, monkeypatch):
    found = DeliveredEpsilon(lower, 2.2, upper, "stand-in")
    monkeypatch.setattr("silodp.experiments.privacy_table.ends", lambda plans: found)
    (row,) = rows(point()).to_dict("records")
    assert (row["holds"], row["claim"]) == (word == "kept", word)


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
        with pytest.raises(ValueError, match="phase_length 1: missing"):
            delivered(pd.Series(row | {"phase_length": 1}))


BUDGET = Budget(60, 6, 2.0, 1e-3, 4.0)


def made(name):
    """An algorithm and its plan."""
    more = {"noise": 0.4} if name.startswith("shuffled") else {}
    algorithm = ALGORITHMS[name].with_options({"rounds": 6, "phase_length": 2, "restarts": 2, **more})
    return algorithm, algorithm.plan(BUDGET)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_at_the_end_everything_has_been_sent(name):
    algorithm, plan = made(name)
    sent = sent_by_round(algorithm, plan)
    assert len(sent) == 6
    assert sent[-1] == {release.kind: release.count for release in plan.releases}
    assert all(before[kind] <= after[kind] for before, after in itertools.pairwise(sent) for kind in before)


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd", "fed_spider", "prox_svrg", "sdp_fedprox_spider"])
def test_epsilon_grows_to_the_runs(name):
    algorithm, plan = made(name)
    found = epsilon_by_round(algorithm, plan, (1, 3, 6))
    values = [value for _, value in found]
    assert [number for number, _ in found] == [1, 3, 6]
    assert 0 < values[0] < values[1] < values[2] == ends([plan]).upper


def test_disjoint_batches_cost_nothing_after_the_first():
    algorithm, plan = made("prox_sgd")
    assert {value for _, value in epsilon_by_round(algorithm, plan)} == {ends([plan]).upper}


def test_messages_on_all_records_have_a_closed_form():
    algorithm, plan = made("minibatch_sgd")
    plan = dataclasses.replace(plan, releases=(dataclasses.replace(plan.releases[0], sampler="all"),))
    for number, value in epsilon_by_round(algorithm, plan):
        assert value == pytest.approx(gaussian_epsilon(1e-3, number**0.5 / plan.noise_multiplier), rel=1e-9)


def rows_other_epsilons(held=(1, 1), **changes):
    one = task(**changes)
    before = privacy_rows("small", one.config, pd.DataFrame([point()]), SIZES)
    (row,) = with_other_epsilons(before, "small", one.config, SIZES, held).to_dict("records")
    return row, one.plans(2.0, 1, SIZES)[0]


def test_person_with_one_record_has_the_delivered_epsilon():
    row, _ = rows_other_epsilons()
    assert row["epsilon_person"] == row["delivered_epsilon"]
    # Of three rounds, half are one.
    assert 0 < row["epsilon_first_round"] == row["epsilon_half_rounds"] < row["delivered_epsilon"]


def test_shared_records_and_grid_size_raise_epsilon():
    row, plan = rows_other_epsilons(held=(2, 3))
    assert (row["person_silos"], row["person_records"]) == (2, 3)
    assert row["epsilon_person"] == person_epsilon(plan, Whom(2, 3)) > row["delivered_epsilon"]
    assert row["selection_points"] == 4  # two step sizes, two clips
    assert row["epsilon_selection"] == selection_epsilon([plan], 4) > row["delivered_epsilon"]


def test_person_epsilon_is_finite_for_resampled_records():
    row, plan = rows_other_epsilons(held=(1, 7), readings={"resample": True})
    assert row["delivered_epsilon"] == np.inf
    assert row["epsilon_person"] == person_epsilon(plan, Whom(1, 7)) < np.inf
    assert np.isnan(row["epsilon_selection"])


def test_by_round_ends_at_the_delivered_epsilon():
    algorithms = {"minibatch_sgd": {}, "fed_spider": {}, "local_sgd": {"private": "non_private"}}
    config = small.experiment(algorithms=algorithms, epsilons=[1.0, 2.0, 8.0])
    found = by_round_rows("small", config, SIZES)
    assert list(found.columns) == BY_ROUND_COLUMNS
    assert list(found["algorithm"].unique()) == ["minibatch_sgd", "fed_spider"]
    for name, of in found.groupby("algorithm"):
        plan = Task("small", config, name, config.settings[0]).plans(2.0, 1, SIZES)[0]
        assert list(of["round"]) == [1, 2, 3]
        assert of["epsilon"].is_monotonic_increasing
        assert of["epsilon"].iloc[-1] == ends([plan]).upper
        assert set(of["claimed_epsilon"]) == {2.0}


def test_epsilon_by_round_is_at_the_rows_delta_whatever_the_silos():
    """The smaller silo's δ, at which the larger's ε is less than at its own."""
    config = small.experiment(algorithms={"minibatch_sgd": {}}, readings={"records": "own"}, epsilons=[2.0])
    (row,) = privacy_rows("small", config, pd.DataFrame([point()]), SIZES).to_dict("records")
    found = by_round_rows("small", config, SIZES)
    assert found["epsilon"].iloc[-1] == row["delivered_epsilon"]
    assert found["delta"].iloc[-1] == row["delta"]


def test_by_round_has_no_rows_without_a_proof():
    config = small.experiment(algorithms={"minibatch_sgd": {}}, readings={"clip_rule": "max_norm"})
    assert by_round_rows("small", config, SIZES).empty


def test_person_in_silos_with_unequal_plans_sums_the_worst():
    plans = list(dict.fromkeys(task(readings={"records": "own"}).plans(2.0, 1, SIZES)))
    assert len(plans) == 2
    assert persons_epsilon(plans, Whom(1, 2)) == max(person_epsilon(plan, Whom(1, 2)) for plan in plans)
    found = persons_epsilon(plans, Whom(2, 2))
    # At δ/2 each, which costs more than at δ; and no less than what the two compose to if both were the worse one.
    assert found > 2 * persons_epsilon(plans, Whom(1, 2))
    assert found >= max(person_epsilon(plan, Whom(2, 2)) for plan in plans)
    assert persons_epsilon(plans, Whom(1, 169)) == np.inf, "a person who is a whole silo"
