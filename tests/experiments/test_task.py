"""What is known of a task before a trial is cut."""

import collections
import typing

import pandas as pd
import pytest
import small
from jobs import prepared_of, same, task, train

from silodp.algorithms import ALGORITHMS
from silodp.audit.audit_rows import points_of
from silodp.config.readings import BY_POINT, Readings
from silodp.experiments import protocol_plans
from silodp.experiments.privacy_table import privacy_rows
from silodp.experiments.selection import complete, select
from silodp.experiments.task import _ONE_WEIGHT, Task, dimension
from silodp.experiments.training import run_trials, stacks
from silodp.experiments.true_epsilon_guard import unproven, unproven_task
from silodp.experiments.validation import load
from silodp.experiments.variants import trained_as
from silodp.models import MODELS

CONFIG = small.ROOT / "config"


@pytest.mark.parametrize("name", _ONE_WEIGHT)
def test_these_models_have_one_weight_for_each_feature(name):
    assert MODELS[name](7, None if name == "linear" else 2).size == 7


@pytest.mark.parametrize(
    ("experiment", "d"), [("lasso_pvec_insurance", 7), ("mnist_pvec", 50), ("lasso_pl_insurance", 7)]
)
def test_dimension_is_known_before_data_are_fetched(experiment, d):
    config = load(CONFIG / "proximal-paper.yaml").experiments[experiment]
    assert dimension(config) == d


def test_a_model_of_several_layers_is_refused():
    config = load(CONFIG / "default.yaml").experiments["digits_mlp"]
    with pytest.raises(ValueError, match="must be ideal unless the model is one of linear, logistic, sigmoid, so that"):
        dimension(config)


def test_guard_training_table_and_audit_share_one_plan(monkeypatch):
    """Each is made once, whoever asks, and nothing comes of it but what was made."""
    made, kind = collections.Counter(), ALGORITHMS["fedprox_spider"]
    plain = kind.plan
    protocol_plans.complete_plan.cache_clear()
    monkeypatch.setattr(kind, "plan", lambda self, budget: made.update([(self, budget)]) or plain(self, budget))
    readings = {"noise": "calibrated", "clipping": "per_tensor"}
    changes = {"readings": readings, "allow_unproven": False, "epsilons": [8.0], "phase_lengths": [2]}
    job = task("fedprox_spider", algorithms={"fedprox_spider": {}}, **changes)
    prepared = prepared_of(job, small.run())
    sizes = prepared(0).sizes
    assert unproven("small", job.config, sizes) is None
    assert unproven_task(job, sizes) is None
    trained = run_trials(job, small.run(), prepared, [0, 1])
    privacy_rows("small", job.config, select(trained, job.config), sizes)
    audited = [plan for _, each, _ in stacks(job, points_of(job), sizes) for plan in each]
    assert set(made.values()) == {1}
    assert len(made) == len(job.grid()[["epsilon", "phase_length"]].drop_duplicates())
    assert audited[0][0] is job.plans(audited[0][0].budget.epsilon, 2, sizes)[1]


GRID = {"low": -3, "high": 0, "points": 3}
SIZES = [120, 90]


def variants(**changes):
    """(default, variant) of every algorithm that a variant is trained of, the variant's change."""
    for algorithm in ALGORITHMS:
        job = task(algorithm, stepsizes=GRID, alternatives=[changes])
        (label,) = job.config.changes()
        if trained_as(job.config, algorithm, label) == label:
            yield pytest.param(algorithm, changes, label, id=f"{algorithm} {label}")


SPIDERS = [case.values[0] for case in variants(spider_q1_noise="minibatch")]
SHARED = [
    *variants(stepsize_grid="linear"),
    *variants(grid="widened"),
    *variants(spider_q1_noise="minibatch"),
    *(case for case in variants(stepsize_grid="linear", spider_q1_noise="minibatch") if case.values[0] in SPIDERS),
]


def test_every_variant_by_points_has_a_case():
    assert {key for case in SHARED for key in case.values[1]} == BY_POINT
    assert set(Readings.model_fields) > BY_POINT


@pytest.mark.parametrize(("algorithm", "changes", "label"), SHARED)
def test_shared_run_equals_the_run_that_training_would_give(algorithm, changes, label):
    """To the last bit: the perceptron's points are trained one by one."""
    keys = {"stepsizes": GRID, "alternatives": [changes], "epsilons": [2.0], "trials": 1}
    default, job = (task(algorithm, reading, **keys) for reading in ("", label))
    of_default, own = train(default, [0]), train(job, [0])
    assert "trained" not in of_default
    assert 0 < (~own["trained"]).sum() < len(own)
    lacking = own[~own["trained"]]
    assert lacking[["train_loss", "test_error"]].isna().all(axis=None)
    found = complete(pd.concat([of_default, own], ignore_index=True), job.config)
    whole = train(job, [0], points=job.grid())
    same(found[found["reading"] == label], whole, check_exact=True)
    same(found[found["reading"] == ""], of_default, check_exact=True)


def test_noise_of_its_own_at_phases_of_one_round_is_trained_and_nothing_else():
    keys = {"alternatives": [{"spider_q1_noise": "minibatch"}], "phase_lengths": [1, 2, 3]}
    job = task("fedprox_spider", "spider_q1_noise=minibatch", **keys)
    own = job.points_to_train(SIZES)
    assert set(own["phase_length"]) == {1}
    assert own["epsilon"].notna().all(), "without noise the two are alike"
    shared = job.grid().drop(own.index)
    assert set(shared[shared["epsilon"].notna()]["phase_length"]) == {2, 3}


@pytest.mark.parametrize("key", sorted(set(Readings.model_fields) - BY_POINT))
def test_other_variants_train_their_whole_grid(key):
    field = Readings.model_fields[key]
    value = next((value for value in typing.get_args(field.annotation) if value != field.default), not field.default)
    for alternative in ({key: value}, {key: value, "stepsize_grid": "linear"}):
        (label,) = task("minibatch_sgd", alternatives=[alternative]).config.changes()
        job = task("minibatch_sgd", label, alternatives=[alternative])
        pd.testing.assert_frame_equal(job.points_to_train(SIZES), job.grid())


def test_race_covers_every_grid():
    keys = {"alternatives": [{"stepsize_grid": "linear"}], "tuning": "race"}
    job = task("minibatch_sgd", "stepsize_grid=linear", **keys)
    pd.testing.assert_frame_equal(job.points_to_train(SIZES), job.grid())


def test_missing_default_run_is_an_error():
    keys = {"stepsizes": GRID, "alternatives": [{"stepsize_grid": "linear"}]}
    default, job = (task("minibatch_sgd", reading, **keys) for reading in ("", "stepsize_grid=linear"))
    trials = pd.concat([train(default, [0]).iloc[1:], train(job, [0])], ignore_index=True)
    with pytest.raises(ValueError, match=r"^1 points of other readings: must have a run of the default"):
        complete(trials, job.config)


@pytest.mark.parametrize(("output", "own"), [("last", False), ("own", True)])
def test_constants_of_a_task(output, own):
    """What an algorithm returns is the printed output only where the reading says so."""
    config = small.experiment(algorithms={"minibatch_sgd": {}, "fedprox_spider": {}}, readings={"output": output})
    made = {name: Task("small", config, name, config.settings[0]).make(1) for name in config.algorithms}
    assert made["minibatch_sgd"].average is own
    assert made["fedprox_spider"].random_iterate is own
