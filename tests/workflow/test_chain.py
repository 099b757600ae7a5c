"""The jobs of a small run, one after the other in this process: what they hand on is what their functions give."""

import json

import pandas as pd
import pytest
from chain import call, done, fill, play_no_audit
from jobs import same

from silodp.audit.audit_columns import AS_PLANNED
from silodp.cli import main
from silodp.experiments.planned_rows import CHOSEN
from silodp.experiments.race import play
from silodp.experiments.task import task_of
from silodp.experiments.training import run_trials
from silodp.experiments.validation import load
from silodp.experiments.variants import figure_names
from silodp.files import read_parquet
from silodp.partition.partition import read_partition
from silodp.partition.trial_data import stored_trials
from silodp.streams import Streams
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.deciding import decide

# Each with the algorithms that are left out, and the jobs that its trials are cut into.
EXPERIMENTS = {
    "diabetes_linear": (["accelerated_minibatch_sgd", "one_pass_accelerated_sgd"], ["0-1", "2"]),
    "wbcd_mlp": ([], ["all"]),
}
KEYS = {"trials": 3, "epsilons": [2.0], "settings": [{"M": 2, "R": 2}], "clips": [1.0], "phase_lengths": [1]}
KEYS |= {"stepsizes": {"low": -2, "high": 0, "points": 2}, "reports": [{}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    experiments = {name: KEYS | {"algorithms": dict.fromkeys(out)} for name, (out, _) in EXPERIMENTS.items()}
    (folder / "run.yaml").write_text(json.dumps({"run": "chain", "experiments": experiments}))
    with pytest.MonkeyPatch.context() as patch:
        play_no_audit(patch)
        for name, (_, cuts) in EXPERIMENTS.items():
            fill(folder / "run.yaml", folder, name, cuts)
        reported = [f"{folder}/reported/{name}.csv" for name in EXPERIMENTS]
        done("merge", folder=folder, experiments=list(EXPERIMENTS))
        done("comparisons", reported=reported, output=folder / "comparisons.csv", privacy=folder / "privacy.csv")
        done("comparisons", reported=reported, output=folder / "alone.csv")
        done("redraw", tables=folder / "comparisons.csv", folder=folder / "figures", formats="svg")
        done("leaderboard", reported=reported, folder=folder, formats="svg")
        done("claims", folder=folder, output=folder / "claims.csv")
        yield folder


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_files_hold_what_the_trainer_gives_however_trials_are_cut(folder, name):
    resolved, silos = load(folder / "run.yaml"), folder / f"silos/{name}/default"
    config, points = resolved.experiments[name], read_parquet(folder / f"selection/{name}.parquet", CHOSEN)
    for algorithm in config.algorithms:
        task = task_of(name, config, algorithm, "M2_R2", "default")
        prepared = stored_trials(silos, config, task.readings, resolved.run)
        of = points[points["algorithm"] == algorithm]
        files = [f"trials/{name}/{algorithm}/M2_R2_{trials}.parquet" for trials in EXPERIMENTS[name][1]]
        for paths, more in ((files, ()), ([f"fresh/{name}/{algorithm}/M2_R2/default_fresh.parquet"], (of, "fresh"))):
            made = pd.concat([read_parquet(folder / path) for path in paths], ignore_index=True)
            again = run_trials(task, resolved.run, prepared, range(3), *more)
            same(made, again, check_dtype=False)


def test_merged_tables_have_the_rows_of_every_experiment_and_the_deltas_of_its_silos(folder):
    for kind in ("by_round", "audit"):
        parts = [pd.read_csv(folder / kind / f"{name}.csv") for name in EXPERIMENTS]
        pd.testing.assert_frame_equal(pd.read_csv(folder / f"{kind}.csv"), pd.concat(parts, ignore_index=True))
    rows = pd.read_csv(folder / "privacy.csv")
    for name, config in load(folder / "run.yaml").experiments.items():
        assert set(rows.loc[rows["experiment"] == name, "algorithm"]) == set(config.algorithms)
        sizes = [len(records) for records in read_partition(folder / f"silos/{name}/default", 0).train]
        assert rows.loc[rows["experiment"] == name, "delta"].to_numpy() == pytest.approx(1 / min(sizes) ** 2)


def test_comparisons_need_no_table_of_privacy_and_span_the_experiments(folder):
    alone, rows = pd.read_csv(folder / "alone.csv"), pd.read_csv(folder / "comparisons.csv")
    pd.testing.assert_frame_equal(alone, rows)
    assert set(rows.loc[rows["second"] == "local_sgd", "experiment"]) == set(EXPERIMENTS)
    assert set(pd.read_csv(folder / "leaderboard.csv")["experiment"]) == set(EXPERIMENTS)


def test_figures_lie_under_their_names_with_the_error_of_their_task(folder):
    known = {name: figure_names(name, config) for name, config in load(folder / "run.yaml").experiments.items()}
    texts = {path.stem: path.read_text() for path in (folder / "figures").glob("*.svg")}
    assert {name for name in texts if not name.startswith("paired_")} == {
        one for names in known.values() for one in names
    }
    assert (folder / "leaderboard.svg").exists()
    assert "relative test RMSE" in texts["diabetes_linear_M2_R2"]
    assert "relative test RMSE" not in texts["wbcd_mlp_M2_R2"]


def test_claims_are_decided_by_the_runs_folder(folder):
    decide(load_claims(), RunFolder(folder)).to_csv(folder / "again.csv", index=False)
    pd.testing.assert_frame_equal(pd.read_csv(folder / "claims.csv"), pd.read_csv(folder / "again.csv"))


@pytest.mark.parametrize("trials", ["3", "0-3", "2-1", "first", "0-last", "-1"])
def test_trials_that_an_experiment_has_not_are_told(folder, capsys, trials):
    task = {"experiment": "diabetes_linear", "algorithm": "minibatch_sgd", "setting": "M2_R2", "trials": trials}
    silos = folder / "silos/diabetes_linear/default"
    assert call("train", run_file=folder / "run.yaml", silos=silos, output=folder / "no.parquet", **task) == 2
    assert f"trials: {trials!r}: must be all" in capsys.readouterr().err
    assert not (folder / "no.parquet").exists()


def test_the_jobs_of_a_race_hand_on_what_its_rungs_play(tmp_path):
    """Rungs of which the last search finds nothing new."""
    name, race = "diabetes_linear", {"stride": 2, "searches": 4, "kept": [2, 1]}
    keys = KEYS | {"tuning": "race", "race": race, "stepsizes": {"low": -2, "high": 0, "points": 5}}
    keys["algorithms"] = dict.fromkeys(EXPERIMENTS[name][0])
    path, silos, files = tmp_path / "run.yaml", tmp_path / "silos", []
    path.write_text(json.dumps({"run": "race", "experiments": {name: keys}}))
    done("partition", run_file=path, experiment=name, output=silos)
    of = {"run_file": path, "experiment": name, "algorithm": "minibatch_sgd", "setting": "M2_R2", "silos": silos}
    for rung in range(7):
        files.append(tmp_path / f"{rung}.parquet")
        done("race", **of, rung=rung, earlier=files[:-1] or "", output=files[-1], threads=1)
    resolved = load(path)
    config = resolved.experiments[name]
    task = task_of(name, config, "minibatch_sgd", "M2_R2", "default")
    prepared = stored_trials(silos, config, task.readings, resolved.run)

    made = [pd.read_parquet(file) for file in files]

    def train(points):
        trials = sorted(points["trial"].unique())
        return run_trials(task, resolved.run, prepared, trials, points) if trials else made[4].drop(columns="rung")

    again = play(config.race, task.grid(), train)
    assert (len(made[4]), min(map(len, (*made[:2], *made[5:]))) > 0) == (0, True)
    same(pd.concat(made, ignore_index=True)[again.columns], again, check_dtype=False)


def test_an_audit_of_a_run_file_is_of_its_silos_as_they_are_cut(folder, tmp_path, monkeypatch):
    seen, silos = [], folder / "silos/wbcd_mlp/default"

    def rows(run, name, config, sizes):
        seen.append((run.seed, name, len(config.algorithms), sizes))
        return pd.DataFrame({"mechanism": [AS_PLANNED, verdicts.pop()]})

    monkeypatch.setattr("silodp.cli.audit.audit_rows", rows)
    words, verdicts = ["audit", f"{folder}/run.yaml", "wbcd_mlp", "--silos", str(silos)], ["noise repeated", AS_PLANNED]
    assert [main([*words, "--output", f"{tmp_path}/{code}.csv"]) for code in (0, 1)] == [0, 1]
    resolved = load(folder / "run.yaml")
    sizes = [len(records) for records in read_partition(silos, 0).train]
    assert seen == [(resolved.run.seed, "wbcd_mlp", len(resolved.experiments["wbcd_mlp"].algorithms), sizes)] * 2
    assert pd.read_csv(tmp_path / "1.csv")["mechanism"].tolist() == [AS_PLANNED, "noise repeated"]


def test_checks_and_formulas_are_written_as_they_are_made(folder, tmp_path, monkeypatch):
    def checked(name, scale, streams):
        return pd.DataFrame({"check": [name], "scale": [scale], "drawn": [streams.generator("any").integers(10**9)]})

    monkeypatch.setattr("silodp.jobs.check.run_check", lambda name, of: checked(name, of.scale, of.streams))
    monkeypatch.setattr("silodp.jobs.formulas.formula_rows", lambda: pd.DataFrame({"formula": ["any"]}))
    done("check", run_file=folder / "run.yaml", name="participation", output=tmp_path / "check.csv")
    run = load(folder / "run.yaml").run
    wanted = checked("participation", run.bounds.scale, Streams(run.seed).child("bounds", "participation"))
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "check.csv"), wanted)
    done("formulas", output=tmp_path / "formulas.csv")
    assert pd.read_csv(tmp_path / "formulas.csv")["formula"].tolist() == ["any"]
