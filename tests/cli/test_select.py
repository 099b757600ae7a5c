"""Rows and silos are held to the run file: half a grid, rows twice and what another job made are one line."""

import shutil

import pandas as pd
import pytest
import torch
from finished import run_file

from silodp.experiments.made_for import cards, read_trained, write_trained
from silodp.experiments.planned_rows import read_planned
from silodp.experiments.validation import load
from silodp.files import read_parquet
from silodp.jobs.__main__ import main as run_job


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows, ""),
        (lambda rows: rows[rows["algorithm"] != "local_sgd"], "('local_sgd', 2, 5, ''): missing"),
        (lambda rows: pd.concat([rows, rows[:1]]), "has rows twice"),
        (lambda rows: rows[1:], "lacks rows of a trial"),
        (lambda rows: pd.concat([rows, rows[:1].assign(R=6)]), "is no task of it"),
        (lambda rows: rows.assign(epsilon=3.5), "has another epsilon"),
    ],
)
def test_rows_are_those_of_the_plan(tmp_path, change, said):
    keys = {"trials": 2, "algorithms": {"minibatch_sgd": {}, "local_sgd": {}}}
    resolved = load(run_file(tmp_path / "r.yaml", "r", {"wbcd_mlp": keys}))
    config = resolved.experiments["wbcd_mlp"]
    config = config.model_copy(update={"algorithms": {n: config.algorithms[n] for n in keys["algorithms"]}})
    grid = {"algorithm": list(keys["algorithms"])}, {"trial": [0, 1]}, {"stepsize": [0.1, 0.2]}
    rows = pd.DataFrame({"experiment": ["wbcd_mlp"]})
    for one in grid:
        rows = rows.merge(pd.DataFrame(one), how="cross")
    rows = rows.assign(reading="", M=2, R=5, epsilon=3.0, clip=1.0, phase_length=1)
    rows = rows.assign(train_loss=1.0, test_error=0.5, diverged=False)
    made = "wbcd_mlp", config, resolved.run
    write_trained(change(rows), tmp_path / "t.parquet", *made)
    if not said:
        assert len(read_planned([tmp_path / "t.parquet"], *made)) == 8
        return
    with pytest.raises(ValueError, match="rows of wbcd_mlp: ") as caught:
        read_planned([tmp_path / "t.parquet"], *made)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_job_takes_only_what_was_made_for_its_run_file_and_experiment(tmp_path, capsys, monkeypatch):
    """Silos or records of another experiment, trials of another seed, points chosen among others."""
    names = {"wbcd_mlp": None, "wbcd_calibrated": None}
    mine, other = (run_file(tmp_path / f"{seed}.yaml", "r", names, seed=seed) for seed in (1, 2))

    def job(command, run, experiment="wbcd_mlp", *words):
        return run_job([command, f"run_file={run}", f"experiment={experiment}", *words])

    def train(run, silos, *more):
        task = ["algorithm=minibatch_sgd", "setting=M2_R5", f"silos={silos}", "output=t.parquet"]
        return job("train", run, "wbcd_mlp", *task, *more)

    monkeypatch.chdir(tmp_path)
    silos = {name: tmp_path / name for name in names}
    for name, folder in silos.items():
        assert job("partition", mine, name, f"output={folder}") == 0
    assert train(mine, silos["wbcd_mlp"]) == 0
    for run, folder in ((mine, silos["wbcd_calibrated"]), (other, silos["wbcd_mlp"])):
        assert train(run, folder) == 2
    for file in ("records.npz", "indices.parquet"):
        mixed = tmp_path / f"mixed_{file}"
        shutil.copytree(silos["wbcd_mlp"], mixed)
        shutil.copy(silos["wbcd_calibrated"] / file, mixed)
        assert train(mine, mixed) == 2
    for run, experiment in ((other, "wbcd_mlp"), (mine, "wbcd_calibrated")):
        assert job("select", run, experiment, "trials=t.parquet", "output=s.parquet") == 2
    pd.read_parquet("t.parquet").to_csv("t.csv")
    pd.read_csv("t.csv").to_parquet("nobodys.parquet")
    assert train(mine, silos["wbcd_mlp"], "chosen=nobodys.parquet") == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("silodp.jobs ")]
    assert len(told) == 7
    assert all("made for another experiment, run file or seed" in line for line in told)


def test_rows_of_one_device_are_not_taken_for_those_of_another(tmp_path, monkeypatch):
    resolved = load(run_file(tmp_path / "run.yaml", "r", {"wbcd_mlp": None}))
    config, path = resolved.experiments["wbcd_mlp"], tmp_path / "t.parquet"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a card")
    write_trained(pd.DataFrame({"train_loss": [1.0]}), path, "wbcd_mlp", config, resolved.run)
    assert len(read_trained(path, (), "wbcd_mlp", config, resolved.run)) == 1
    assert cards(tmp_path) == []
    on_gpu = config.model_copy(update={"device": "cuda"})
    with pytest.raises(ValueError, match="made for another experiment"):
        read_trained(path, (), "wbcd_mlp", on_gpu, resolved.run)
    for number in range(2):
        write_trained(read_parquet(path), tmp_path / f"{number}.parquet", "wbcd_mlp", on_gpu, resolved.run, "cuda")
    assert [card["name"] for card in cards(tmp_path)] == ["a card"]
    assert set(cards(tmp_path)[0]) == {"name", "torch", "cuda"}
