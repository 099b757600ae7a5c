"""Run files and experiments: overrides, values, and the files that are checked in."""

import json
import math
from typing import get_args

import jsonschema
import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter, ValidationError
from runfiles import FILES, RUNS, message, overriding, project, write
from small import ROOT, experiment

from silodp.algorithms import ALGORITHMS
from silodp.cli.reference import reference_text, schema_text
from silodp.config.errors import ConfigError
from silodp.config.experiment import AlgorithmOptions, Experiment, Grid, Preprocessing, Race
from silodp.config.loading import file_and_part, keys_of, known_experiments, located, points_in_file, read_run
from silodp.config.models import ModelConfig
from silodp.config.readings import Readings
from silodp.experiments.task import Task
from silodp.experiments.validation import load
from silodp.experiments.variants import trained_as
from silodp.silos.federation_file import RecordSchema, SiloEntry, SiloFile
from silodp.verdicts.claims.claim_file import Formula, Statistic

EXPERIMENTS = sorted((ROOT / "config" / "experiments").glob("*.yaml"))


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


def test_overrides_merge_sections_and_replace_lists(root):
    changes = {"epsilons": [5.0], "silos": {"train_share": 0.5}, "trials_per_job": 1}
    changes |= {"algorithms": {"fed_spider": None, "local_sgd": {"private": "private"}}}
    found = load(write(root, overriding(**changes)), root).experiments["cancer"]
    assert found.epsilons == [5.0]
    assert (found.silos.scheme, found.silos.train_share) == ("by_class", 0.5)
    assert found.trials_per_job == 1
    assert set(found.algorithms) == set(ALGORITHMS) - {"fed_spider"}
    assert found.algorithms["local_sgd"].private == "private"
    assert found.clips == [0.5, 5.0]


def test_a_name_is_suggested_from_the_sections_of_the_file_alone(root):
    """Whatever else the process has read: a federation's file has a key that is closer."""
    assert "epsilon" in SiloEntry.model_fields
    assert message(root, overriding(epsilom=[1])).endswith("did you mean epsilons?")


def test_an_override_of_null_takes_the_key_away(root):
    assert "epsilons: missing: this key must be given" in message(root, overriding(epsilons=None))
    found = load(write(root, overriding(phase_lengths=None)), root).experiments["cancer"]
    assert found.phase_lengths == [1]


def test_what_a_run_took_away_does_not_come_back_from_its_record(root):
    taken = overriding(algorithms={"local_sgd": None}, clips=None, batch_records=None) | {"seed": 3}
    taken["experiments"]["cancer"] |= {"clips": [1.0], "preprocess": {"pca": None}}
    resolved = load(write(root, taken), root)
    path = root / "config.json"
    path.write_text(json.dumps(resolved.dump()))
    assert "local_sgd" not in resolved.experiments["cancer"].algorithms
    assert load(path, root).dump() == resolved.dump()


def test_a_part_is_a_run_of_its_own_under_the_keys_of_its_file(root):
    parts = {"small": {"seed": 8, "experiments": {"pairs": None}}, "wrong": {"experiments": {"pears": None}}}
    file = write(root, overriding(trials=3) | {"seed": 7, "threads": 9, "parts": parts})
    assert list(load(file, root).experiments) == ["cancer"]
    part = load(file.with_stem("run-small"), root)
    assert (part.run.run, part.run.seed, part.run.threads, list(part.experiments)) == ("r-small", 8, 9, ["pairs"])
    for name, allowed in {
        "wrong": "run.yaml: .*no such experiment",
        "smal": "run-smal.yaml: .*a part of .*run.yaml: small, wrong; did you mean small",
    }.items():
        with pytest.raises(ConfigError, match=allowed):
            load(file.with_stem(f"run-{name}"), root)


def test_names_that_would_be_commands_or_paths_are_refused(root):
    base = (root / "config/experiments/cancer.yaml").read_text()
    for name in ("x `touch X`", "a b", "$(id)", "-q", "é"):
        (root / "config/experiments" / f"{name}.yaml").write_text(base)
        known = "no such experiment: must be one of cancer, pairs, patients"
        assert known in message(root, {"run": "r", "experiments": {name: {}}})
        assert "run: " in message(root, {"run": name, "experiments": {"cancer": {}}})
    (root / "config/experiments/.hidden.yaml").write_text(base)
    for name in ("../experiments/cancer", "cancer/../cancer", ".hidden", ""):
        assert "no such experiment" in message(root, {"run": "r", "experiments": {name: {}}})


def test_a_name_of_published_results_is_refused(root):
    for name in ("published", "PubLished-2"):
        assert "run: 'pub" in message(root, overriding() | {"run": name}).lower()


def test_a_key_of_earlier_versions_is_passed_over(root):
    assert read_run(write(root, overriding() | {"audit_runs": 9})) == read_run(write(root, overriding()))


def test_step_sizes():
    grid = Grid(low=-9, high=0, points=5)
    np.testing.assert_allclose(grid.values(), np.exp([-9, -6.75, -4.5, -2.25, 0]))
    np.testing.assert_allclose(grid.values("linear"), np.exp(-9) + (1 - np.exp(-9)) * np.arange(5) / 4)
    assert Grid(low=-9, high=0, points=5, spacing="linear").values() == grid.values("linear")
    assert Grid(low=-2, high=-2, points=1).values() == [pytest.approx(math.exp(-2))]
    assert sorted(grid.values()) == grid.values()


def test_a_widened_grid_goes_on_in_the_exponent_to_3_beyond_both_ends_or_just_past_them():
    for grid, exponents in (
        (Grid(low=-9, high=0, points=5), np.arange(-13.5, 4.6, 2.25)),
        (Grid(low=0, high=1.5, points=2), [-3, -1.5, 0, 1.5, 3, 4.5]),
        (Grid(low=-1, high=-1, points=1), range(-4, 3)),
        (Grid(low=0, high=1, points=3, spacing="linear"), [-3, -2, -1, 0, math.log((1 + math.e) / 2), 1, 2, 3, 4]),
    ):
        np.testing.assert_allclose(np.log(grid.wider_values()), exponents, rtol=1e-14)
    alike = Grid(low=0, high=0, points=2).wider_values()
    assert (min(alike), max(alike)) == (math.exp(-3), math.exp(3))
    assert len(alike) < 10_000


def test_a_share_of_a_silo_is_a_batch_of_at_least_one_record():
    config = experiment(batch_share=0.2)
    assert [config.batch_of(n) for n in (1, 7, 8, 100)] == [1, 1, 2, 20]


def test_a_race_may_keep_as_many_points_as_before():
    assert Race(kept=[3, 3]).kept == [3, 3]


def test_readings_are_labelled_by_what_differs():
    config = experiment(
        readings={"output": "mean_of_last_8"},
        alternatives=[{"batch": "per_eps"}, {"resample": True, "standardise": "all"}, {"output": "mean_of_last_8"}],
    )
    found = config.variants()
    assert list(found) == ["", "batch=per_eps", "resample=true;standardise=all"]
    assert found["batch=per_eps"].output == "mean_of_last_8"
    assert found["resample=true;standardise=all"].resample


def test_a_reading_that_does_not_speak_to_an_algorithm_is_its_default():
    config = experiment(
        alternatives=[{"spider_q1_noise": "minibatch"}, {"fed_spider_releases": "2R-1"}, {"batch": "per_eps"}]
    )
    for label, trained in {
        "spider_q1_noise=minibatch": {"fedprox_spider", "sdp_fedprox_spider"},
        "fed_spider_releases=2R-1": {"fed_spider"},
        "batch=per_eps": set(ALGORITHMS),
    }.items():
        assert {name for name in ALGORITHMS if trained_as(config, name, label) == label} == trained
        assert {trained_as(config, name, label) for name in set(ALGORITHMS) - trained} <= {""}
    assert all(trained_as(config, name, "") == "" for name in ALGORITHMS)


def test_a_reading_may_be_run_by_some_algorithms_only():
    config = experiment(alternatives=[{"batch": "per_eps", "algorithms": ["local_sgd"]}, {"algorithms": ["local_sgd"]}])
    assert list(config.variants()) == ["", "batch=per_eps"]
    assert trained_as(config, "local_sgd", "batch=per_eps") == "batch=per_eps"
    assert trained_as(config, "minibatch_sgd", "batch=per_eps") is None
    assert trained_as(config, "minibatch_sgd", "") == ""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_reading_is_trained_again_where_it_changes_a_plan_or_an_algorithm(name):
    """The list of what a variant applies to, held against what algorithms and plans do with it."""
    choices = {
        "spider_q1_noise": "minibatch",
        "fed_spider_releases": "2R-1",
        "log_term": "1/delta",
        "batch": "per_eps",
        "records": "own",
        "sampler": "subset",
    }
    for key, value in choices.items():
        config = experiment(alternatives=[{key: value}])
        (label,) = set(config.variants()) - {""}
        default, other = (Task("e", config, name, config.settings[0], one) for one in ("", label))
        for q in (1, 2):
            changes = default.plans(2.0, q, [169, 285]) != other.plans(2.0, q, [169, 285])
            assert not changes or trained_as(config, name, label) == label, (key, q)


def test_experiments_are_known_in_the_order_of_their_files():
    assert list(known_experiments()) == [name for path in EXPERIMENTS for name in points_in_file(path)]


@pytest.mark.parametrize("name", sorted(known_experiments()))
def test_every_experiment_loads(name, tmp_path):
    run_file = tmp_path / "run.yaml"
    run_file.write_text(yaml.safe_dump(overriding(name)))
    found = load(run_file).experiments[name]
    assert found.title
    assert found.paper or name == "obesity_softmax"  # the released programs' own, in no paper


def test_an_axis_has_an_experiment_for_each_point_that_may_be_extended(root):
    folder = root / "config" / "experiments"
    keys = yaml.safe_load((folder / "pairs.yaml").read_text()) | {"label": "class", "model": {"name": "softmax"}}
    axis = keys | {"vary": {"silos.alpha": [0.1, 1, 2.5]}, "title": "Dir({:g})"}
    axis |= {"silos": {"scheme": "dirichlet", "count": 5}, "settings": [{"M": 5, "R": 3}]}
    (folder / "shares.yaml").write_text(yaml.safe_dump(axis))
    (folder / "longer.yaml").write_text(yaml.safe_dump({"extends": "shares_a250", "title": "longer"}))
    names = ["shares_a10", "shares_a100", "shares_a250", "longer"]
    found = load(write(root, {"run": "small", "seed": 7, "experiments": dict.fromkeys(names)}), root).experiments
    assert [found[name].silos.alpha for name in names] == [0.1, 1, 2.5, 2.5]
    assert [found[name].title for name in names] == ["Dir(0.1)", "Dir(1)", "Dir(2.5)", "longer"]
    assert {found[name].vary for name in names} == {"silos.alpha"}
    assert "must be one of cancer, longer, pairs, patients, shares_a10, shares_a100, shares_a250" in message(
        root, overriding("shares")
    )
    for wrong in ({"silos.beta": [1]}, {"silos.alpha": 1}, {"silos.alpha": [1], "silos.mixed": [1]}):
        (folder / "shares.yaml").write_text(yaml.safe_dump(axis | {"vary": wrong}))
        assert "shares.yaml: vary: " in message(root, overriding("shares_a10"))


def test_the_schema_of_editors_has_not_drifted():
    assert (ROOT / "config/schema.json").read_text(encoding="utf-8") == schema_text(), "run `make docs`"


@pytest.mark.parametrize(
    ("of", "models"), [("run", (Experiment, Readings)), ("federation", (SiloEntry, SiloFile, RecordSchema))]
)
def test_the_reference_names_every_key_with_its_meaning(of, models):
    lines = [line for line in reference_text(of).splitlines() if line.startswith("| `")]
    keys = {line.split("`")[1] for line in lines}
    assert set().union(*(model.model_fields for model in models)) <= keys
    for line in lines:
        assert line.count("|") - line.count("\\|") == 5, line


SDP = ("sdp_prox_sgd", "sdp_prox_svrg", "sdp_prox_pl_svrg", "sdp_fedprox_spider")


def test_every_sdp_algorithm_can_be_run_over_shuffled_sums(root):
    chosen = dict.fromkeys(set(ALGORITHMS) - set(SDP)) | {name: {"private": "private"} for name in SDP}
    shuffled = overriding(
        "patients", algorithms=chosen, readings={"summation": "shuffled"}, settings=[{"M": 5, "R": 4}]
    )
    found = load(write(root, shuffled), root).experiments["patients"]
    for name in SDP:
        plan = Task("patients", found, name, found.settings[0], "").plans(2.0, 2, [70] * 5)[0]
        assert {kind for kind, _ in plan.shuffled_sum.kinds} == {release.kind for release in plan.releases}
        assert {release.sampler for release in plan.releases} <= {"subset", "disjoint"}


def test_every_protocol_variant_and_a_schedule_of_each_algorithm_is_run_by_a_committed_run_file(monkeypatch):
    monkeypatch.setenv("SILODP_CUDA", "1")  # experiments that ask for a GPU are not left out
    published = ROOT / "results" / "published" / "config.json"
    experiments = [one for path in [*RUNS, published] for one in load(path).experiments.values()]
    readings = [found for one in experiments for found in one.variants().values()]
    for name, field in Readings.model_fields.items():
        allowed = set(get_args(field.annotation)) or {False, True}
        run = {getattr(found, name) for found in readings}
        assert run == allowed, name
    scheduled = {name for one in experiments for name, options in one.algorithms.items() if options.schedule}
    assert scheduled == {name for name, kind in ALGORITHMS.items() if kind.schedules}


def test_the_committed_files_name_the_schema_which_allows_them_and_no_unknown_key():
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    for path in EXPERIMENTS + FILES:
        place = "../schema.json" if path in EXPERIMENTS else "schema.json"
        assert path.read_text().splitlines()[0] == f"# yaml-language-server: $schema={place}"
        content = yaml.safe_load(path.read_text())
        assert validator.is_valid(content), path
        assert not validator.is_valid(content | {"epsilom": [1]}), path


def test_a_file_comes_before_a_part_of_its_name_and_the_longest_file_before_others(tmp_path):
    path = tmp_path / "a-b-c.yaml"
    assert file_and_part(path) == (path, "")
    for name, found in (("a", ("a", "b-c")), ("a-b", ("a-b", "c")), ("a-b-c", ("a-b-c", ""))):
        (tmp_path / f"{name}.yaml").touch()
        assert file_and_part(path) == (tmp_path / f"{found[0]}.yaml", found[1])


def test_a_key_that_a_whole_section_lacks_is_missing_in_the_file_of_the_section(root):
    said = message(root, overriding(stepsizes={"low": -1, "points": 2}))
    assert "run.yaml: experiments.cancer.stepsizes.high: missing" in said


def test_a_data_file_is_beside_the_run_file_and_a_finished_run_has_it_from_the_working_folder(tmp_path):
    def found(run_file):
        return located({"dataset": {"file": "a.csv"}}, tmp_path / run_file)["dataset"]["file"]

    assert (found("run.yaml"), found("config.json")) == (str(tmp_path / "a.csv"), "a.csv")
    (tmp_path / "a.csv").touch()
    assert found("run.yaml") == found("config.json") == str(tmp_path / "a.csv")


def test_long_keys_and_values_are_cut_in_a_message(root):
    for length, shown in ((281, "x" * 281), (282, "x" * 278 + "...")):
        assert f"run.yaml: experiments.cancer.{shown}: 1: unknown key" in message(root, overriding(**{"x" * length: 1}))
    for length, shown in ((78, f"'{'x' * 78}'"), (79, f"'{'x' * 76}...")):
        assert f".label: {shown}: must be" in message(root, overriding(label="x" * length))


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("model", {"name": "nope"}, "must have a name that is one of 'linear', 'logistic', "),
        ("model", {}, "must have a name that silodp config reference lists"),
        ("model", 3, "must be a mapping of keys to values"),
        ("silos", 3, "must be a mapping of keys to values"),
        ("settings", [], "must have at least 1 item"),
    ],
)
def test_a_message_says_what_is_allowed_in_the_words_of_a_run_file(root, key, value, allowed):
    said = message(root, overriding(**{key: value}))
    assert f"run.yaml: experiments.cancer.{key}: {value}: {allowed}" in said
    assert said.endswith(allowed) or allowed.endswith(", ")


@pytest.mark.parametrize("union", [ModelConfig, Statistic])
def test_an_error_is_at_the_key_whatever_alternative_was_meant(union):
    for model in get_args(get_args(union)[0]):
        for name in get_args(model.model_fields["name"].annotation):
            with pytest.raises(ValidationError) as caught:
                TypeAdapter(union).validate_python({"name": name, "more": 1})
            assert ("more",) in map(keys_of, caught.value.errors())


@pytest.mark.parametrize(
    ("model", "key", "value"),
    [
        (AlgorithmOptions, "noise", []),
        (AlgorithmOptions, "options", {"Float": []}),
        (Experiment, "dataset", {"file": ""}),
        (Experiment, "delta", []),
        (Experiment, "vary", []),
        (Formula, "at", {"d": {}}),
        (Preprocessing, "standardise", []),
    ],
)
def test_where_none_of_several_types_fits_all_are_said_of_one_key(model, key, value):
    with pytest.raises(ValidationError) as caught:
        model.model_validate({key: value})
    wrong = {keys_of(error) for error in caught.value.errors() if error["type"] != "missing"}
    assert wrong == {(key, *(value or ()))}
