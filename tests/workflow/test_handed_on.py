"""What jobs hand to the functions that they call, and what they write of what these give."""

import json

import pandas as pd
import patients
import pytest
from chain import call, done
from finished import run_file
from gridrows import rows
from planted import trials
from threadpoolctl import threadpool_info, threadpool_limits

from silodp.algorithms import ALGORITHMS
from silodp.config.errors import ConfigError
from silodp.config.loading import known_experiments
from silodp.experiments.columns import REPORTED_COLUMNS, TABLE_COLUMNS
from silodp.experiments.made_for import write_trained
from silodp.experiments.planned_rows import CHOSEN
from silodp.experiments.selection import select
from silodp.experiments.table import ENDS, KEY
from silodp.experiments.validation import load
from silodp.experiments.variants import figure_names
from silodp.files import write_csv, write_parquet

POINT = dict(zip(CHOSEN, ("patients", "minibatch_sgd", "", 2, 4, 1.0, 0.1, 1.0, 1), strict=True))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Jobs on a file of two hospitals, of which a partition is there; `threads` are those of its matrix products."""
    folder = tmp_path_factory.mktemp("own")
    patients.write_records(folder / "patients.csv")
    of = {"run_file": patients.run_file(folder, title="Zwei Häuser"), "experiment": "patients"}
    with threadpool_limits(2, user_api="blas"):
        done("partition", **of, output=folder / "silos")
        threads = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    write_parquet(pd.DataFrame([POINT]), folder / "chosen.parquet")
    return of | {"silos": folder / "silos", "chosen": folder / "chosen.parquet"}, folder, threads


def test_a_partition_counts_no_labels_of_ones_own_file_and_multiplies_on_one_core(own):
    assert list(pd.read_csv(own[1] / "silos" / "labels.csv")) == ["trial", "silo", "part", "count"]
    assert own[2] == {1}


def test_privacy_is_of_the_silos_of_the_first_trial(own, monkeypatch):
    words, folder, _ = own
    monkeypatch.setattr("silodp.jobs.privacy.privacy_rows", lambda *given: given[-1])
    monkeypatch.setattr("silodp.jobs.privacy.with_other_epsilons", lambda sizes, *_: pd.DataFrame({"n": sizes}))
    for name in ("by_round_rows", "audit_rows"):
        monkeypatch.setattr(f"silodp.jobs.privacy.{name}", lambda *given: pd.DataFrame({"n": given[-1]}))
    files = {name: folder / f"{name}.csv" for name in ("output", "by_round", "audit")}
    done("privacy", **words, **files)
    assert {file.read_text() for file in files.values()} == {"n\n48\n32\n"}


@pytest.mark.parametrize(
    ("task", "label"),
    [("regression", "typical error, as a share of guessing"), ("classification", "share of wrong answers")],
)
def test_a_study_is_of_the_runs_records_and_drawn_beside_what_it_says(own, monkeypatch, task, label):
    words, folder, _ = own

    def judge(experiment, config, run, data, table, points, prepared):
        sizes = [len(x) for x, _ in prepared(0).train]
        given = [experiment, run.run, config.title, len(data.x), *table["reading"], *points["algorithm"], *sizes]
        models = [{"name": "guess", "error": 0.5}, {"name": "minibatch_sgd", "epsilon": 1.0, "error": 0.25}]
        return {"task": task, "given": given, "models": models}

    monkeypatch.setattr("silodp.jobs.study.judge", judge)
    monkeypatch.setattr("silodp.jobs.study.use_threads", lambda threads: None)
    write_csv(pd.DataFrame([dict.fromkeys(TABLE_COLUMNS, True) | {"reading": ""}]), folder / "table.csv")
    done("study", **words, table=folder / "table.csv", formats="svg", output=folder / "study.json")
    text, drawn = (folder / "study.json").read_text(), (folder / "study.svg").read_text()
    assert json.loads(text)["given"] == ["patients", "patients", "Zwei Häuser", 100, "", "minibatch_sgd", 48, 32]
    assert text.startswith(f'{{\n "task": "{task}",\n "given": [\n  "patients",')
    assert "Zwei Häuser" in text
    assert all(words in drawn for words in ("Zwei Häuser", label, "guessing"))


def test_figures_say_where_the_papers_noise_meets_gradients_that_are_not_clipped_as_claimed(tmp_path, monkeypatch):
    alternatives = [{"clipping": "batch_mean"}, {"clip_rule": "max_norm"}, {"noise": "calibrated"}]
    path = run_file(tmp_path / "r.yaml", "r", {"wbcd_mlp": {"alternatives": alternatives}})
    known, titles = figure_names("wbcd_mlp", load(path).experiments["wbcd_mlp"]), {}
    kinds = {shows["kind"]: lambda rows, title, **_: title for shows in known.values()}
    monkeypatch.setattr("silodp.jobs.figure.FIGURES", kinds)
    monkeypatch.setattr("silodp.jobs.figure.save", lambda title, path, formats: titles.update({path.name: title}))
    words = {name: tmp_path / f"{name}.csv" for name in ("table", "reported")}
    write_csv(pd.DataFrame(columns=TABLE_COLUMNS), words["table"])
    write_csv(pd.DataFrame(columns=REPORTED_COLUMNS), words["reported"])
    done("figure", run_file=path, experiment="wbcd_mlp", names=list(known), **words, folder=tmp_path, formats="svg")
    said = {known[name]["reading"]: "not private as claimed" in title for name, title in titles.items()}
    assert said == {"": False, "clipping=batch_mean": True, "clip_rule=max_norm": True, "noise=calibrated": False}


def test_a_race_holds_the_claims_to_the_silos_of_the_first_trial(tmp_path, monkeypatch, capsys):
    def refuse(run_file, run, task, silos, trial):
        raise ConfigError(f"silos of trial {trial}")

    monkeypatch.setattr("silodp.jobs.race.check_silos", refuse)
    path = run_file(tmp_path / "r.yaml", "r", {"wbcd_mlp": {"trials": 3, "tuning": "race", "reports": [{}]}})
    words = {"experiment": "wbcd_mlp", "algorithm": "minibatch_sgd", "setting": "M2_R5", "rung": 4, "earlier": ""}
    assert call("race", run_file=path, silos=tmp_path, output=tmp_path / "o.parquet", **words) == 2
    assert capsys.readouterr().err.endswith("silos of trial 0\n")


def test_the_trials_that_a_table_reports_are_the_fresh_ones(tmp_path):
    others = dict.fromkeys(known_experiments()["wbcd_mlp"]["algorithms"])
    keys = {"trials": 2, "algorithms": others | {"minibatch_sgd": {"private": "private"}}}
    path = run_file(tmp_path / "r.yaml", "r", {"wbcd_mlp": keys})
    resolved = load(path)
    made = "wbcd_mlp", resolved.experiments["wbcd_mlp"], resolved.run
    of = {"experiment": "wbcd_mlp", "R": 5, "epsilon": 3.0}
    grid = rows("minibatch_sgd", [[0.3, 0.2], [0.4, 0.1]], **of)
    fresh = rows("minibatch_sgd", [[0.5], [0.6]], stepsizes=[0.2], errors=[[7.0], [8.0]], **of)
    files = {"grid": grid, "fresh": fresh, "chosen": select(grid, made[1])}
    for name, frame in files.items():
        write_trained(frame, tmp_path / f"{name}.parquet", *made)
    point = dict(zip([*KEY, *ENDS], ("minibatch_sgd", "", 2, 5, 3.0, 1, 0.9, 0.5), strict=True))
    write_csv(pd.DataFrame([point]), tmp_path / "privacy.csv")
    words = {name: tmp_path / f"{name}.parquet" for name in (*files, "losses")}
    words |= {name: tmp_path / f"{name}.csv" for name in ("privacy", "output", "reported")}
    done("table", run_file=path, experiment="wbcd_mlp", **words)
    assert pd.read_csv(words["reported"])["test_error"].tolist() == [7.0, 8.0]


def test_ones_own_algorithms_are_compared_in_the_order_of_their_names(tmp_path, monkeypatch):
    names = ["zeta", "alpha"]
    monkeypatch.setattr(ALGORITHMS, "own", dict.fromkeys(names, ALGORITHMS["minibatch_sgd"]))
    errors = {(name, 1.0): [0.1, 0.2] for name in (*names, "minibatch_sgd")}
    write_csv(pd.DataFrame(trials("e", errors)), tmp_path / "e.csv")
    done("comparisons", reported=tmp_path / "e.csv", output=tmp_path / "c.csv")
    assert pd.read_csv(tmp_path / "c.csv")["first"].tolist() == ["alpha", "zeta"]
