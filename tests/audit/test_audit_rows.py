"""The tables of audits: which algorithms and points have a row, and at what size they are played."""

import pytest
import small

from silodp.audit import audit_rows as module
from silodp.audit.audit_columns import AUDIT_COLUMNS
from silodp.audit.audit_rows import audit_rows, model_size, points_of
from silodp.audit.mechanism_check import Fault, Mechanism
from silodp.experiments.task import Task


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"preprocess": {"pca": 7}},
        {"preprocess": {"constant_column": True}},
        {"model": {"name": "perceptron", "hidden": 5}},
    ],
)
def test_the_size_that_noise_is_audited_at_is_the_models(changes):
    config = small.experiment(**changes)
    features = changes.get("preprocess", {}).get("pca", 30) + config.preprocess.constant_column
    hidden = config.model.model_dump()["hidden"]
    assert model_size(config) == features * hidden + hidden + hidden * 2 + 2


@pytest.mark.parametrize(("records", "sizes"), [("own", [30, 20, 25]), ("equal", [20, 20, 20])])
def test_all_silos_are_played_at_the_runs_size_but_one_where_each_trains_alone(records, sizes, monkeypatch):
    played = []

    def check(algorithm, plans, streams, size):
        played.append((algorithm.name, [plan.budget.n for plan in plans[0]], size))
        return [Mechanism(Fault("any", "any", 1.0), 1.0, 1)] * len(plans)

    monkeypatch.setattr(module, "check_mechanism", check)
    config = small.experiment(algorithms={"minibatch_sgd": {}, "silo_only": {}}, readings={"records": records})
    rows = audit_rows(small.run(dtype="float64"), "small", config, [30, 20, 25])
    assert {(name, *sizes) for name, sizes, _ in played} == {("minibatch_sgd", *sizes), ("silo_only", 20)}
    assert {size.coordinates for *_, size in played} == {model_size(config)}
    assert {str(size.dtype) for *_, size in played} == {"torch.float64"}
    assert set(rows["delta"]) == {config.delta_of(20)}


def test_the_smallest_middle_and_largest_epsilon_are_audited_at_the_longest_phase():
    config = small.experiment(epsilons=[3.0, 1.0, 8.0, 2.0, 5.0], phase_lengths=[2, 3, 1])
    points = points_of(Task("small", config, "fedprox_spider", config.settings[0]))
    assert sorted(points["epsilon"]) == [1.0, 3.0, 8.0]
    assert set(points["phase_length"]) == {3}


@pytest.mark.parametrize(("sizes", "changes"), [([20, 20], {}), ([20], {"epsilons": [1.0]})])
def test_algorithms_that_assume_a_smooth_loss_have_no_row(sizes, changes):
    """Noise that follows the step is private if every record's loss is as smooth as it says: nothing to be audited."""
    alone = small.experiment(algorithms={"fedprox_spider": {"options": {"smoothness": 2.0}}}, **changes)
    rows = audit_rows(small.run(), "small", alone, sizes)
    assert rows.empty
    assert list(rows.columns) == AUDIT_COLUMNS
