"""Experiments on a file of one's own: run files, silos, sizes, preprocessing, digests."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import patients
import pytest

from silodp.config.errors import ConfigError
from silodp.datasets.own.rules import preprocessing_guarantee
from silodp.experiments.task import POINT, rounded_down, task_of
from silodp.experiments.training import run_trial
from silodp.experiments.validation import load, silo_sizes
from silodp.jobs.__main__ import main as run_job
from silodp.partition.experiment_data import dataset_of, measure_person_spread
from silodp.partition.partition import dirichlet
from silodp.partition.trial_data import partition_and_measure, prepare
from silodp.workflow.digests import SECRET
from silodp.workflow.job_digest import RunPlan

SIZES = {"North": 100, "South": 40, "East": 21}
DATASET = {key: patients.experiment()["dataset"][key] for key in ("file", "target", "silo", "columns")}


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def one(sizes=SIZES, dataset=None, **changes):
        i = np.arange(sum(sizes.values()))
        columns = {"person": i // 2, "readmitted": np.where(i % 4 == 0, "yes", "no")}
        patients.write_records(tmp_path / "patients.csv", sizes, **columns)
        keys = {"settings": [{"M": 3, "R": 5}], "trials": 2, "batch_share": 0.1}
        said = {key: value for key, value in (DATASET | (dataset or {})).items() if value is not None}
        names = {name: "name" if name in said.values() else "ignored" for name in ("hospital", "person")}
        keys["dataset"] = said | {"columns": DATASET["columns"] | names}
        return load(patients.run_file(tmp_path, **keys | changes))

    return one


def first_trial(resolved):
    """(experiment, data, first trial's silos, its records) of a run."""
    config = resolved.experiments["patients"]
    data = dataset_of(config).load()
    part = partition_and_measure("patients", config, config.readings, resolved.run, data)[0][0]
    return config, data, part, prepare(data, config, config.readings, part, resolved.run)


def test_a_run_file_holds_the_experiment_and_a_path_from_itself(loaded, tmp_path):
    resolved = loaded()
    config = resolved.experiments["patients"]
    assert config.data_name == str(tmp_path / "patients.csv")
    assert dataset_of(config).silo_records == (21, 100, 40)
    assert silo_sizes(config) == (3, 16)


def test_a_silo_with_two_records_to_train_on_and_a_test_record_is_large_enough(loaded):
    config = loaded({"North": 100, "South": 40, "Tiny": 3}, batch_share=0.5).experiments["patients"]
    assert silo_sizes(config) == (3, 2)
    alone = loaded({"North": 100, "South": 40, "Tiny": 2}, batch_share=0.5, delta=1e-6).experiments["patients"]
    assert silo_sizes(alone) == (3, 1)


def test_a_boolean_may_have_bounds(loaded):
    bounds = {"age": [0, 99], "smoker": [0, 1]}
    config = loaded(preprocess={"standardise": "bounds", "bounds": bounds}).experiments["patients"]
    assert config.preprocess.bounds == bounds


def test_an_algorithm_with_nothing_behind_its_colon_takes_its_defaults(loaded):
    config = loaded(algorithms={"minibatch_sgd": None}).experiments["patients"]
    assert config.algorithms["minibatch_sgd"].private == "both"


def test_each_silo_has_its_own_n_k_delta_and_noise(loaded):
    task = task_of("patients", loaded().experiments["patients"], "minibatch_sgd", "M3_R5", "default")
    plans = task.plans(1.0, 1, [16, 80, 32])
    assert [plan.budget.n for plan in plans] == [16, 80, 32]
    assert [plan.releases[0].records_drawn for plan in plans] == [2, 8, 3]
    assert [plan.budget.delta for plan in plans] == [n**-2.0 for n in (16, 80, 32)]
    assert len({plan.noise_multiplier for plan in plans}) == 3


def test_sizes_are_rounded_down_by_a_quarter_at_most():
    found = [rounded_down(n) for n in range(1, 5000)]
    assert all(n / 1.26 - 1 <= one <= n for n, one in enumerate(found, 1))
    assert found == sorted(found)
    assert len(set(found)) < 45


def test_a_tables_delta_is_the_largest_of_the_plans_also_where_sizes_are_rounded(loaded):
    resolved = loaded(readings={"records": "rounded", "noise": "calibrated"})
    config, _, _, trial = first_trial(resolved)
    task = task_of("patients", config, "minibatch_sgd", "M3_R5", "default")
    points = pd.DataFrame([(1.0, 1.0, 1.0, 1)], columns=POINT)
    (delta,) = run_trial(task, resolved.run, trial, 0, points, "fresh")["delta"]
    largest = max(plan.budget.delta for plan in task.plans(1.0, 1, trial.sizes))
    assert delta == largest == rounded_down(16) ** -2.0 > 16**-2


def test_silos_keep_their_records_in_every_trial(loaded):
    resolved = loaded()
    config = resolved.experiments["patients"]
    data = dataset_of(config).load()
    parts, measured, kept = partition_and_measure("patients", config, config.readings, resolved.run, data)
    assert kept == [None, None], "records stay in their file"
    assert [[len(one) for one in part.train] for part in parts] == [[16, 80, 32]] * 2
    assert not np.array_equal(parts[0].train[1], parts[1].train[1])
    for part in parts:
        for silo, (train, test) in enumerate(part.silos):
            assert set(data.silo[np.concatenate([train, test])]) == {silo}
            assert not set(train) & set(test)
    assert np.isfinite(measured[0].value)
    trial = prepare(data, config, config.readings, parts[0], resolved.run)
    assert trial.sizes == [16, 80, 32]
    ages = data.x[parts[0].train[1], 0].astype(np.float64)
    np.testing.assert_allclose(trial.train[1][0][:, 0].numpy(), 2 * ages / 120 - 1, rtol=1e-6, atol=1e-7)


def test_nobody_trains_and_is_tested_with_silos_of_a_column_or_cut(loaded):
    columns = {"silo": None, "person": "person"}
    cuts = [
        {"dataset": {"person": "person"}},
        {"dataset": columns, "silos": {"scheme": "iid", "count": 4}, "settings": [{"M": 4, "R": 5}]},
    ]
    for keys in cuts:
        resolved = loaded(**keys)
        config = resolved.experiments["patients"]
        data = dataset_of(config).load()
        for part in partition_and_measure("patients", config, config.readings, resolved.run, data)[0]:
            assert not {*data.person[part.train_records()]} & {*data.person[np.concatenate(part.test)]}


@pytest.mark.parametrize(
    ("silos", "settings", "wanted"),
    [
        ({"scheme": "by_class"}, [{"M": 2, "R": 5}], (2, 4)),
        ({"scheme": "iid", "count": 3}, [{"M": 3, "R": 5}], (3, 4)),
        ({"scheme": "iid", "count": 6}, [{"M": 6, "R": 5}], (4, 4)),
    ],
)
def test_a_person_may_lie_in_as_many_silos_as_are_cut_or_as_they_have_records(loaded, silos, settings, wanted):
    resolved = loaded(dataset={"silo": None, "person": "person", "person_limit": 4}, silos=silos, settings=settings)
    config = resolved.experiments["patients"]
    person = np.arange(len(dataset_of(config).load().y)) // 4
    frame = pd.read_csv("patients.csv").assign(person=person)
    frame.to_csv("patients.csv", index=False)
    assert dataset_of(config).person_spread == wanted


def test_a_silo_whose_persons_all_train_is_refused_by_name(loaded):
    resolved = loaded({"North": 100, "South": 40, "Alone": 22}, dataset={"person": "person"})
    config = resolved.experiments["patients"]
    data = dataset_of(config).load()
    # All records of this silo are of one person.
    data = replace(data, person=np.where(data.silo == data.silo_names.index("Alone"), 0, data.person))
    for names, silo in ((data.silo_names, "Alone"), ((), "number 1")):
        named = replace(data, silo_names=names)
        with pytest.raises(
            ValueError, match=f"patients: split 1: silo {silo}: all its persons train, and none tests: must"
        ):
            partition_and_measure("patients", config, config.readings, resolved.run, named)


def test_dirichlet_silos_depend_on_the_records_alone_and_differ_more_with_a_small_alpha():
    y = np.arange(400) % 4
    few, many = (dirichlet(y, 4, 5, alpha) for alpha in (0.1, 100.0))
    np.testing.assert_array_equal(few, dirichlet(y, 4, 5, 0.1))
    spread = [np.std([np.bincount(part[y == c], minlength=5) for c in range(4)]) for part in (few, many)]
    assert spread[0] > 3 * spread[1]
    assert np.bincount(few, minlength=5).min() >= 2
    # Of a target each tenth of the records is a class.
    target = np.random.default_rng(1).permutation(400)
    np.testing.assert_array_equal(dirichlet(target, None, 4, 0.5), dirichlet(target // 40, 10, 4, 0.5))
    # Two records are enough.
    assert np.bincount(dirichlet(np.arange(4) % 2, 2, 2, 50.0)).tolist() == [2, 2]
    with pytest.raises(ConfigError, match="must be fewer silos, or a larger alpha"):
        dirichlet(np.arange(6) % 2, 2, 6, 0.01)


SCHEMES = [
    ({"scheme": "iid", "count": 4}, (4, 32)),
    ({"scheme": "dirichlet", "count": 3, "alpha": 5.0}, (3, None)),
    ({"scheme": "by_class"}, (2, 32)),
]


@pytest.mark.parametrize(("silos", "wanted"), SCHEMES, ids=lambda value: str(value)[:25])
def test_without_a_silo_column_a_scheme_cuts_silos(loaded, silos, wanted):
    dataset = {"silo": None}
    settings = [{"M": wanted[0], "R": 5}]
    config = loaded(dataset=dataset, silos=silos, settings=settings).experiments["patients"]
    N, smallest = silo_sizes(config)
    assert wanted[0] == N
    assert smallest == wanted[1] or wanted[1] is None


WRONG = [
    ({"sizes": {"North": 100, "Tiny": 1}}, "silos.least: None: the smallest silo has 1 records: must leave out silos"),
    ({"sizes": {"North": 100, "Tiny": 2}}, "the smallest silo has 2 records: must leave out silos that have not 2"),
    ({"silos": {"least": 200}}, "no silo has silos.least = 200 records"),
    ({"silos": {"scheme": "iid", "count": 2}}, "silos.scheme: 'iid': must be column, or silo be left out of dataset"),
    ({"dataset": {"silo": None}}, "silos.scheme: 'column': needs data that name"),
    ({"dataset": {"silo": None}, "silos": {"scheme": "dirichlet", "count": 3}}, "needs silos.count and silos.alpha"),
    (
        {"sizes": {"North": 3}, "dataset": {"silo": None}, "silos": {"scheme": "dirichlet", "alpha": 1}},
        "needs silos.count and silos.alpha",
    ),
    ({"dataset": {"file": "nowhere.csv"}}, "nowhere.csv: no such file"),
    ({"preprocess": {"standardise": "bounds"}}, "preprocess.bounds: []: column 'age': lowest and highest"),
    (
        {"preprocess": {"standardise": "bounds", "bounds": {"age": [9, 9]}}},
        "the lowest value must be below the highest",
    ),
    (
        {"preprocess": {"standardise": "bounds", "bounds": {"age": [0, 99], "hospital": [0, 1]}}},
        "preprocess.bounds: 'hospital': must be a column of numbers: age",
    ),
    ({"preprocess": {"bounds": {"age": [0, 1]}}}, "must be left out unless standardise is bounds"),
    ({"batch_records": 3}, "batch_records and batch_share both give K"),
    ({"batch_share": None}, "one of batch_epsilon, batch_records and batch_share must be given"),
]


@pytest.mark.parametrize(("changes", "wanted"), WRONG, ids=lambda value: str(value)[:60])
def test_what_does_not_fit_is_one_line(loaded, changes, wanted):
    with pytest.raises(ConfigError) as error:
        loaded(**changes)
    assert wanted in str(error.value)
    assert "patients" in str(error.value)
    assert "\n" not in str(error.value)


def test_standardising_by_silo_makes_each_silos_training_records_mean_0_and_variance_1(loaded):
    trial = first_trial(loaded(preprocess={"standardise": "silo"}))[-1]
    for x, _ in trial.train:
        assert abs(float(x[:, 0].mean())) < 1e-5
        assert abs(float(x[:, 0].std(correction=0)) - 1) < 1e-5


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [({"standardise": "none"}, None), ({"standardise": "bounds", "bounds": {"age": [0, 120]}}, 0.0)],
)
def test_missing_numbers_become_the_training_mean_and_under_bounds_the_middle(loaded, tmp_path, steps, wanted):
    resolved = loaded(preprocess=steps, dataset={"missing": "mean"})
    frame = pd.read_csv(tmp_path / "patients.csv")
    frame.loc[3, "age"] = np.nan
    frame.to_csv(tmp_path / "patients.csv", index=False)
    _, data, part, trial = first_trial(resolved)
    x = np.concatenate([one[:, 0].numpy() for one, _ in (*trial.train, *trial.test)])
    order = np.concatenate([*part.train, *part.test])
    mean = np.nanmean(data.x[np.concatenate(part.train), 0]) if wanted is None else wanted
    assert x[order == 3] == pytest.approx(mean, rel=1e-5)


def test_a_changed_cell_makes_the_silos_and_the_training_stale(loaded, tmp_path):
    def digests():
        plan = RunPlan(load(tmp_path / "patients.yaml"))
        options = {"experiment": "patients", "algorithm": "minibatch_sgd"}
        return plan.digest_of("partition", **options), plan.digest_of("train", **options)

    loaded()
    before = digests()
    assert digests() == before
    text = (tmp_path / "patients.csv").read_text()
    (tmp_path / "patients.csv").write_text(text.replace("North,20.0", "North,21.0", 1))
    after = digests()
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_nobody_else_can_compute_the_digest_of_own_data_and_anybody_that_of_registered_ones(loaded, tmp_path):
    plan = RunPlan(loaded())
    own = plan.experiments["patients"].dataset
    mine, registered = plan.data_digest(own), plan.data_digest("insurance")
    assert plan.data_digest(own) == mine
    assert (tmp_path / SECRET).stat().st_mode & 0o777 == 0o600
    (tmp_path / SECRET).unlink()
    assert plan.data_digest(own) != mine
    assert plan.data_digest("insurance") == registered


def test_held_counts_silos_and_records_of_a_person(loaded):
    """Where the file names no person, a person is a record."""
    sizes = {"North": 101, "South": 40, "East": 21}
    config, _, part, _ = first_trial(loaded(sizes, dataset={"person": "person"}))
    assert dataset_of(config).person_spread == measure_person_spread(config, part) == (2, 2)
    cut = {"silos": {"scheme": "iid", "count": 4}, "settings": [{"M": 4, "R": 5}]}
    other = loaded(dataset={"person": "person", "silo": None}, **cut)
    assert dataset_of(other.experiments["patients"]).person_spread == (2, 2)
    assert measure_person_spread(loaded(sizes).experiments["patients"], part) == (1, 1)


def test_a_persons_records_above_the_limit_are_drawn_and_always_the_same(loaded):
    config = loaded(dataset={"person": "person", "person_limit": 1}).experiments["patients"]
    data, again = dataset_of(config).load(), dataset_of(config).load()
    assert np.bincount(data.person).max() == 1
    assert len(data.y) == len(np.unique(data.person)) == 81
    np.testing.assert_array_equal(data.x, again.x)
    assert dataset_of(config).person_spread == (1, 1)
    assert data.silo_names == ("East", "North", "South")


def test_the_record_of_a_run_has_neither_a_digest_of_the_file_nor_a_path_to_it(loaded, tmp_path):
    loaded()
    output = tmp_path / "results" / "provenance.json"
    output.parent.mkdir()
    assert run_job(["provenance", "run_file=patients.yaml", "listings=", f"output={output}"]) == 0
    digest = hashlib.sha256((tmp_path / "patients.csv").read_bytes()).hexdigest()
    assert digest not in output.read_text()
    assert str(tmp_path / "patients.csv") not in output.read_text()


@pytest.mark.parametrize(
    ("steps", "missing", "wanted"),
    [
        ({"standardise": "bounds", "bounds_from": "file"}, "refuse", "not private: bounds were read off"),
        ({"standardise": "bounds"}, "mean", "is private"),
        ({"standardise": "none"}, "mean", "Not so what fills in missing values"),
        ({"standardise": "train"}, "refuse", "not private: means and variances"),
        ({}, "refuse", "not private: means and variances"),
        ({"standardise": "none", "pca": 3}, "refuse", "not private: principal components"),
    ],
)
def test_the_statement_about_preprocessing_follows_its_options(steps, missing, wanted):
    told = preprocessing_guarantee(steps, missing)
    assert wanted in told
    assert "does not declare are read off the records: not private" in told
    assert "Labels decide which silo" in preprocessing_guarantee(steps, missing, "dirichlet")
    assert "Labels" not in told
    assert "change the sizes" in preprocessing_guarantee(steps, "drop")
