"""A study of one's own data says what plain fits and loops say, for any task, sizes and classes."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import patients
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from silodp.experiments.validation import load
from silodp.own_data.study import (
    CALIBRATION_BINS,
    Trials,
    _fitted,
    _json_value,
    baselines,
    chosen_rows,
    probabilities,
    score_model,
    study,
)
from silodp.partition.experiment_data import dataset_of
from silodp.partition.trial_data import partition_and_measure, prepare

ALGORITHMS = ("minibatch_sgd", "silo_only", "mr_mtl")
few = settings(max_examples=15, deadline=None)


@st.composite
def trials(draw):
    """Trials of one to three silos of one size in all; test records may lack the first class."""
    classes, rng = draw(st.sampled_from([2, 3, None])), np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes, lacks = draw(st.lists(st.integers(12, 30), min_size=1, max_size=3)), draw(st.booleans())

    def part(n, least):
        x = rng.normal(size=(n, 2))
        y = 3 * x[:, 0] + 5 + rng.normal(size=n)
        if classes:
            y = np.append(np.arange(least, classes), rng.integers(least, classes, n - classes + least))
        return torch.from_numpy(x), torch.from_numpy(y)

    made = [
        SimpleNamespace(
            classes=classes, train=[part(n, 0) for n in sizes], test=[part(n // 2, int(lacks)) for n in sizes]
        )
        for _ in range(draw(st.integers(1, 2)))
    ]
    return Trials(made)


def plain_fit(parts, classes):
    """A function features → what is said, of a fit in which parts count alike."""
    y = np.concatenate([one for _, one in parts])
    weights = np.concatenate([np.full(len(one), len(y) / len(parts) / len(one)) for _, one in parts])
    model = LogisticRegression(max_iter=10_000) if classes else Ridge()
    fit, step = make_pipeline(StandardScaler(), model), type(model).__name__.lower()
    fit.fit(np.concatenate([x for x, _ in parts]), y, **{f"{step}__sample_weight": weights})
    return fit.predict_proba if classes else fit.predict


def loss(y, value):
    """Whether a record's class is taken for another, or a target's squared error."""
    return (value - y) ** 2 if np.ndim(value) == 0 else float(np.argmax(value) != y)


def losses(test, said):
    """Of the silos of a trial, (silos,)."""
    return [np.mean([loss(*pair) for pair in zip(y, v, strict=True)]) for (_, y), v in zip(test, said, strict=True)]


def spreads(train, test):
    mean = np.mean([value for _, y in train for value in y])
    return [np.mean((mean - y) ** 2) for _, y in test]


def test_a_silo_of_one_class_alone_says_that_class():
    for only in (0, 2):
        said = _fitted([(np.arange(6.0).reshape(3, 2), np.full(3, only))], 3)(np.zeros((4, 2)))
        np.testing.assert_array_equal(said, np.tile(np.eye(3)[only], (4, 1)))


@few
@given(trials())
def test_baselines_are_those_of_plain_fits(of):
    said, alone = baselines(of), []
    for train, test, guess, pooled in zip(of.train, of.test, said["guess"], said["pooled"], strict=True):
        y = np.concatenate([one for _, one in train])
        plain = [np.mean(y == c) for c in range(of.classes)] if of.classes else y.mean()
        fit = plain_fit(train, of.classes)
        for (x, _), g, p in zip(test, guess, pooled, strict=True):
            np.testing.assert_allclose(g, np.broadcast_to(plain, (len(x), *np.shape(plain))))
            np.testing.assert_allclose(p, fit(x), rtol=1e-6)
    for silo in range(len(of.train[0])):
        fits = [plain_fit([train[silo]], of.classes) for train in of.train]
        own = [[fit(x) for x, _ in test] for fit, test in zip(fits, of.test, strict=True)]
        alone.append(np.mean(of.errors(own)[0]))
    assert np.mean(of.errors(said["best silo"])[0]) == pytest.approx(min(alone), rel=1e-6)


@few
@given(trials(), st.integers(0, 10**6))
def test_scores_are_those_of_plain_loops(of, seed):
    rng, classes = np.random.default_rng(seed), of.classes
    said = [
        [rng.dirichlet(np.ones(classes), len(y)) if classes else rng.normal(5, 3, len(y)) for _, y in test]
        for test in of.test
    ]
    found = score_model(of, said)
    own = np.array([losses(test, one) for test, one in zip(of.test, said, strict=True)])
    base = np.array([spreads(*sides) for sides in zip(of.train, of.test, strict=True)])
    wanted = [a.mean() if classes else math.sqrt(a.mean() / b.mean()) for a, b in zip(own, base, strict=True)]
    assert found["errors"] == pytest.approx(wanted)
    assert found["error"] == pytest.approx(np.mean(wanted))
    assert found["silos"] == pytest.approx(own.mean(0) if classes else np.sqrt(own.mean(0) / base.mean()))
    if not classes:
        return
    truth = [np.concatenate([y for _, y in test]) for test in of.test]
    outs = [np.concatenate(one) for one in said]
    y, v = np.concatenate(truth), np.concatenate(outs)
    taken = v.argmax(1)
    assert found["balanced"] == pytest.approx(np.mean([np.mean(taken[y == c] == c) for c in set(y)]))
    assert found["confusion"] == [[np.sum((y == a) & (taken == b)) for b in range(classes)] for a in range(classes)]
    many = np.bincount(taken)
    assert (found["most"], found["most_class"]) == ([many.max(), len(y)], many.argmax())
    both = [pair for pair in zip(truth, outs, strict=True) if classes == 2 and len(set(pair[0])) == 2]
    areas = [roc_auc_score(a, b[:, 1]) for a, b in both]
    assert ("auc" in found) == ("calibration" in found) == bool(areas)
    of.test = [[(x, 0 * y) for x, y in test] for test in of.test]
    assert "auc" not in score_model(of, said), "of one class no pair is ordered"
    if areas:
        assert found["auc"] == pytest.approx(np.mean(areas))
        bins = [(v[:, 1] >= b / CALIBRATION_BINS) & (v[:, 1] < (b + 1) / CALIBRATION_BINS) for b in range(5)]
        rows = [(v[own, 1].mean(), y[own].mean(), own.sum()) for own in bins if own.any()]
        np.testing.assert_allclose(found["calibration"], rows)


def test_a_record_without_a_finite_answer_is_wrong():
    (x, y), nan = (torch.zeros(4, 1), torch.tensor([0.0, 0, 1, 1])), math.nan
    of = Trials([SimpleNamespace(classes=2, train=[(x, y)], test=[(x, y)])])
    said = [[np.array([[0.9, 0.1], [nan, nan], [0.2, 0.8], [nan, 0.5]])]]
    assert score_model(of, said)["error"] == 0.5
    number = Trials([SimpleNamespace(classes=None, train=[(x, y)], test=[(x, y)])])
    assert score_model(number, [[np.array([0.0, nan, 1.0, 1.0])]])["error"] == math.inf


@pytest.mark.parametrize(("right", "found"), [(19, 0.0), (20, 1.0)])
def test_the_twenty_largest_silos_are_tried_as_the_only_one(right, found):
    """All others have their labels the wrong way."""
    x = torch.linspace(-1, 1, 40)[:, None]
    parts = [(x[: 40 - i], (x[: 40 - i, 0] > -0.5).double()) for i in range(21)]
    train = [(x, y if i == right else 1 - y) for i, (x, y) in enumerate(parts)]
    of = Trials([SimpleNamespace(classes=2, train=train, test=[(x, (x[:, 0] > -0.5).double())])])
    assert np.mean(of.errors(baselines(of)["best silo"])[0]) == pytest.approx(found, abs=0.1)


@pytest.mark.parametrize("classes", [10, 11])
def test_up_to_ten_classes_are_shown_as_taken_for_each_other(classes):
    x, y = torch.zeros(classes, 1), torch.arange(classes).double()
    of = Trials([SimpleNamespace(classes=classes, train=[(x, y)], test=[(x, y)])])
    assert ("confusion" in score_model(of, [[np.eye(classes)]])) == (classes == 10)


# Algorithm, ε, training loss and reading.
VALUES = ["a", "b"], [1.0, 2.0, math.nan], [0.25, 0.5, 0.75, math.nan], ["", "", "noise=calibrated"]


@few
@given(st.lists(st.tuples(*map(st.sampled_from, VALUES)), min_size=1, max_size=9))
def test_a_chosen_row_is_the_first_of_least_loss_at_its_epsilon(made):
    table = pd.DataFrame(made, columns=["algorithm", "epsilon", "train_loss_mean", "reading"])
    least = {}
    for place, (algorithm, epsilon, found, reading) in enumerate(made):
        key, value = (algorithm, str(epsilon)), math.inf if math.isnan(found) else found
        if not reading and value < least.get(key, (math.inf,))[0]:
            least[key] = value, place
        elif not reading:
            least.setdefault(key, (value, place))
    assert chosen_rows(table).index.tolist() == sorted(place for _, place in least.values())


def test_probabilities_are_those_of_the_links():
    outputs = torch.tensor([[0.0, 1.0, -2.0], [3.0, 3.0, 3.0]]).double()
    plain = np.exp(outputs.numpy()) / np.exp(outputs.numpy()).sum(1, keepdims=True)
    np.testing.assert_allclose(probabilities(outputs, 3), plain)
    one = outputs[0]
    np.testing.assert_allclose(probabilities(one, 2)[:, 1], 1 / (1 + np.exp(-one.numpy())))
    np.testing.assert_allclose(probabilities(one, 2).sum(1), 1)
    assert probabilities(one, None) is one


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """(the study, records of its trials) of two hospitals."""
    folder = tmp_path_factory.mktemp("study")
    patients.write_records(folder / "patients.csv", {"North": 90, "South": 60})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        path = patients.run_file(folder, trials=2, algorithms={name: {} for name in ALGORITHMS})
        resolved = load(path)
        config = resolved.experiments["patients"]
        data = dataset_of(config).load()
        parts = partition_and_measure("patients", config, config.readings, resolved.run, data)[0]
        prepared = [prepare(data, config, config.readings, part, resolved.run) for part in parts]
        run = {"experiment": "patients", "reading": "", "M": 2, "R": 4}
        point = {"stepsize": 0.5, "clip": 1.0, "phase_length": 1}
        rows = pd.DataFrame([run | point | {"algorithm": name, "epsilon": 4.0} for name in ALGORITHMS])
        table = rows.assign(train_loss_mean=0.5, edge="", diverged=0)
        return study("patients", config, resolved.run, data, table, rows, prepared.__getitem__), prepared


@pytest.mark.parametrize("name", ["guess", "pooled", "best silo", *ALGORITHMS])
def test_errors_of_silos_and_classes_say_the_same_as_the_error(found, name):
    (one,) = [one for one in found[0]["models"] if one["name"] == name]
    tested = [[len(y) for _, y in prepared.test] for prepared in found[1]]
    assert len(one["silos"]) == 2
    assert np.mean(one["silos"]) == pytest.approx(one["error"])
    table = np.array(one["confusion"])
    assert table.sum() == one["most"][1] == np.sum(tested) == found[0]["tested"]
    wrong = np.sum(table) - np.trace(table)
    assert wrong == pytest.approx(sum(np.multiply(one["silos"], np.sum(tested, axis=0))))


def test_a_study_says_what_its_records_are(found):
    said, prepared = found
    sizes = [len(y) for _, y in prepared[0].train]
    assert (said["task"], said["classes"], said["silos"]) == ("classification", ["no", "yes"], ["North", "South"])
    assert (said["records"], said["trials"], said["points"]) == (sizes, 2, 1)
    # δ = 1/n² allows that a record is published as it is with probability 1/n: weak is what is more than .02.
    assert said["weak"] == [n for n in sizes if n < 50] != sizes
    assert said["delta"] == pytest.approx(min(sizes) ** -2.0)
    names = ["guess", "pooled", "best silo", *ALGORITHMS]
    assert [one["name"] for one in said["models"]] == names
    pairs = itertools.pairwise([one.get("epsilon") for one in said["models"][3:]])
    assert all(a == b == 4.0 for a, b in pairs)


def test_silos_without_names_are_numbered_and_a_delta_of_a_fiftieth_of_a_record_is_not_weak():
    parts = [(torch.zeros(n, 1), torch.arange(n) % 2) for n in (49, 50, 51)]
    config = SimpleNamespace(trials=1, settings=[0], delta_of=lambda n: n**-2.0)
    table = pd.DataFrame(columns=["algorithm", "epsilon", "train_loss_mean", "reading"])
    trial, data = SimpleNamespace(classes=2, train=parts, test=parts), SimpleNamespace(class_names=(), silo_names=())
    said = study("toy", config, None, data, table, table, lambda _: trial)
    assert (said["silos"], said["records"], said["weak"]) == (["1", "2", "3"], [49, 50, 51], [49])


def test_a_study_is_written_in_numbers_that_json_has():
    said = {"a": [np.float64(np.inf), {"b": np.int64(3)}], "c": np.float64(0.5), "d": "x"}
    written = _json_value(said)
    assert written == {"a": [None, {"b": 3}], "c": 0.5, "d": "x"}
    assert [type(written["a"][1]["b"]), type(written["c"])] == [int, float]
