"""The last columns of privacy.csv."""

import numpy as np
import pandas as pd
import pytest
import small

from silodp.experiments.delivered import by_round_rows, privacy_rows, with_other_epsilons
from silodp.experiments.task import Task
from silodp.federation.data_of import held_by_one
from silodp.federation.partition import partition
from silodp.files import BY_ROUND_COLUMNS
from silodp.privacy.adversary import delivered
from silodp.privacy.person import person_epsilon, persons_epsilon
from silodp.privacy.selection import selection_epsilon

SIZES = [285, 169]


def rows(algorithm="minibatch_sgd", held=(1, 1), **changes):
    config = small.experiment(**changes)
    point = {"experiment": "small", "algorithm": algorithm, "reading": "", "M": 2, "R": 3, "trial": 0, "epsilon": 2.0}
    chosen = pd.DataFrame([point | {"stepsize": 0.1, "clip": 0.5, "phase_length": 1, "selection": "pooled"}])
    before = privacy_rows("small", config, chosen, SIZES)
    (row,) = with_other_epsilons(before, "small", config, SIZES, held).to_dict("records")
    return row, Task("small", config, algorithm, config.settings[0]).plans(2.0, 1, SIZES)[0]


def test_person_with_one_record_has_the_delivered_epsilon():
    row, _ = rows()
    assert row["epsilon_person"] == pytest.approx(row["delivered_epsilon"], rel=1e-6)
    # Of three rounds, half are one.
    assert 0 < row["epsilon_first_round"] == row["epsilon_half_rounds"] < row["delivered_epsilon"]


def test_shared_records_and_grid_size_raise_epsilon():
    row, plan = rows(held=(2, 3))
    assert (row["person_silos"], row["person_records"]) == (2, 3)
    assert row["epsilon_person"] == person_epsilon(plan, 2, 3) > row["delivered_epsilon"]
    assert row["selection_points"] == 4  # two step sizes, two clips
    assert row["epsilon_selection"] == selection_epsilon([plan], 4) > row["delivered_epsilon"]


def test_person_epsilon_is_finite_for_resampled_records():
    row, plan = rows(held=(1, 7), readings={"resample": True})
    assert row["delivered_epsilon"] == np.inf
    assert row["epsilon_person"] == person_epsilon(plan, 1, 7) < np.inf
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
        assert of["epsilon"].iloc[-1] == delivered(plan).upper
        assert set(of["claimed_epsilon"]) == {2.0}


def test_by_round_has_no_rows_without_a_proof():
    config = small.experiment(algorithms={"minibatch_sgd": {}}, readings={"clip_rule": "max_norm"})
    assert by_round_rows("small", config, SIZES).empty


def test_person_in_silos_with_unequal_plans_sums_the_worst():
    task = Task("small", small.experiment(readings={"records": "own"}), "minibatch_sgd", small.experiment().settings[0])
    plans = list(dict.fromkeys(task.plans(2.0, 1, SIZES)))
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
