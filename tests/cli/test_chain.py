"""The commands of the workflow in a chain: from a run file to its tables and figures."""

import json
import math

import pandas as pd
import pytest
import small
import torch
import yaml

from silodp.cli import main
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA, TABLE_COLUMNS, TABLE_EXTRA

pytestmark = pytest.mark.slow

TINY = {
    "run": "tiny",
    "trials_per_job": 2,
    "audit_runs": 4,
    "experiments": {
        "wbcd_mlp": {
            "trials": 2,
            "settings": [{"M": 1, "R": 4}, {"M": 2, "R": 3}],
            "epsilons": [2.0, 8.0],
            "stepsizes": {"low": -2, "high": 0, "points": 2},
            "clips": [1.0],
            "phase_lengths": [1, 2],
            "alternatives": [{"spider_q1_noise": "minibatch"}],
            "reports": [
                {"selection": "pooled", "evaluation": "fresh"},
                {"selection": "per_trial", "evaluation": "same"},
            ],
        }
    },
}


def call(*arguments) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(autouse=True, scope="module")
def _threads():
    """Training sets the threads of the whole process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Runs every command of the workflow up to the tables; gives the folder."""
    folder = tmp_path_factory.mktemp("chain")
    run_file = folder / "tiny.yaml"
    run_file.write_text(yaml.safe_dump(TINY))
    name, silos = "wbcd_mlp", folder / "silos"
    assert call("partition", run_file, name, "--output", silos, "-q") == 0
    runs = [
        (algorithm, setting, reading)
        for algorithm in ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider")
        for setting in ("M1_R4", "M2_R3")
        for reading in ("default", "spider_q1_noise-minibatch")
        if reading == "default" or algorithm == "fedprox_spider"
    ]

    def train(purpose, *more):
        for algorithm, setting, reading in runs:
            output = folder / purpose / f"{algorithm}_{setting}_{reading}.parquet"
            where = ["--silos", silos, "--reading", reading, "--output", output, "-q"]
            assert call("train", run_file, name, algorithm, setting, *where, *more) == 0
        return sorted((folder / purpose).glob("*.parquet"))

    grid = train("grid")
    chosen, privacy = folder / "chosen.parquet", folder / "privacy" / f"{name}.csv"
    assert call("select", run_file, name, "--trials", *grid, "--output", chosen, "-q") == 0
    fresh = train("fresh", "--chosen", chosen)
    others = ["--by-round", folder / "by_round" / f"{name}.csv", "--audit", folder / "audit" / f"{name}.csv"]
    made = ["--chosen", chosen, "--silos", silos, "--output", privacy, *others]
    assert call("privacy", run_file, name, *made, "-q") == 0
    files = ["--grid", *grid, "--fresh", *fresh, "--chosen", chosen, "--privacy", privacy]
    assert call("table", run_file, name, *files, "--output", folder / "table.csv", "-q") == 0
    assert call("merge", folder, name, "-q") == 0
    return folder


def test_a_chain_of_commands_ends_in_the_table(chain):
    table = pd.read_csv(chain / "table.csv")
    assert list(table.columns) == [*TABLE_COLUMNS, *TABLE_EXTRA]
    table["reading"] = table["reading"].fillna("")
    assert not table.duplicated(["algorithm", "M", "R", "epsilon", "reading"]).any()
    extra = "selection=per_trial;evaluation=same"
    noise = "spider_q1_noise=minibatch"
    assert set(table["reading"]) == {"", extra, noise, f"{noise};{extra}"}
    # Two settings × two ε × (4 algorithms and spider), and the two baselines without noise, for each reading.
    assert len(table) == 4 * 2 * (2 * 5 + 2)
    assert (table["trials"] == 2).all()
    private = table[table["private"]]
    assert private["delivered_epsilon"].notna().all()
    assert table[~table["private"]]["delivered_epsilon"].isna().all()
    assert (table["n"] == 169).all()
    assert table["delta"].tolist() == [169**-2.0] * len(table)
    assert table["test_error_mean"].between(0, 1).all()


def test_delivered_epsilon_of_the_table_is_that_of_the_privacy_table(chain):
    table, merged = pd.read_csv(chain / "table.csv"), pd.read_csv(chain / "privacy.csv")
    assert list(merged.columns) == [*PRIVACY_COLUMNS, *PRIVACY_EXTRA]
    merged["reading"] = merged["reading"].fillna("")
    assert not merged.duplicated(["algorithm", "reading", "M", "R", "epsilon"]).any()
    assert len(merged) == 2 * 2 * 4 * 2
    default = table[table["reading"].isna() & table["private"] & (table["algorithm"] != "spider")]
    both = default.merge(merged[merged["reading"] == ""], on=["algorithm", "M", "R", "epsilon"])
    assert len(both) == 2 * 2 * 4
    assert both["delivered_epsilon_x"].tolist() == both["delivered_epsilon_y"].tolist()
    assert (merged["holds"] == (merged["delivered_epsilon"] <= merged["claimed_epsilon"])).all()
    assert (merged["claimed_epsilon"] == merged["epsilon"]).all()


def test_jobs_of_one_trial_give_the_rows_of_the_whole(chain, tmp_path):
    for trial in (0, 1):
        where = ["--silos", chain / "silos", "--trials", f"{trial}-{trial}", "--output", tmp_path / f"{trial}.parquet"]
        assert call("train", chain / "tiny.yaml", "wbcd_mlp", "fed_spider", "M1_R4", *where, "-q", "--threads", 2) == 0
    parts = pd.concat([pd.read_parquet(tmp_path / f"{trial}.parquet") for trial in (0, 1)], ignore_index=True)
    whole = pd.read_parquet(chain / "grid" / "fed_spider_M1_R4_default.parquet")
    pd.testing.assert_frame_equal(parts.drop(columns="seconds"), whole.drop(columns="seconds"), check_exact=True)


def test_fresh_runs_train_the_chosen_points_only(chain):
    chosen = pd.read_parquet(chain / "chosen.parquet")
    for path in (chain / "fresh").glob("*.parquet"):
        fresh = pd.read_parquet(path)
        first = fresh.iloc[0]
        same_job = (chosen[["algorithm", "reading", "M", "R"]] == first[["algorithm", "reading", "M", "R"]]).all(axis=1)
        keys = ["trial", "epsilon", "stepsize", "clip", "phase_length"]
        points = chosen.loc[same_job, keys].drop_duplicates()
        assert len(fresh) == len(points) == len(fresh.merge(points, on=keys))


def test_figures_are_drawn_from_the_table(chain, tmp_path):
    picture = tmp_path / "wbcd_mlp_M1_R4.png"
    files = ["--table", chain / "table.csv", "--folder", tmp_path]
    names = ["wbcd_mlp_M1_R4", "wbcd_mlp_M1_R4_delivered_vs_claimed"]
    assert call("figure", chain / "tiny.yaml", "wbcd_mlp", *names, *files, "--formats", "pdf", "png", "-q") == 0
    assert len(list(tmp_path.iterdir())) == 4
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["nope", "local_sgd", "M1_R4"], "experiments.nope: not in this run: must be one of wbcd_mlp"),
        (["wbcd_mlp", "adam", "M1_R4"], "command line: algorithm: 'adam': must be one of minibatch_sgd, "),
        (["wbcd_mlp", "local_sgd", "M9_R9"], "command line: setting: 'M9_R9': must be one of M1_R4, M2_R3"),
        (["wbcd_mlp", "local_sgd", "M1_R4", "--reading", "x"], "reading: 'x': must be one of default"),
        (["wbcd_mlp", "local_sgd", "M1_R4", "--trials", "2"], "--trials: '2': must be all"),
        (["wbcd_mlp", "local_sgd", "M1_R4", "--trials", "1-0"], "--trials: '1-0': must be all"),
        (["wbcd_mlp", "local_sgd", "M1_R4", "--trials", ""], "--trials: '': must be all"),
        (["wbcd_mlp", "local_sgd", "M1_R4", "--silos", "none"], "none/indices.parquet: no such file"),
        (["wbcd_mlp", "local_sgd", "M1_R4", "--chosen", "none.parquet"], "none.parquet"),
    ],
)
def test_names_that_a_run_lacks_are_one_line(chain, tmp_path, capsys, words, fault):
    output = tmp_path / "out.parquet"
    silos = [] if "--silos" in words else ["--silos", chain / "silos"]
    assert call("train", chain / "tiny.yaml", *words, *silos, "--output", output, "-q") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert fault in line
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_and_a_damaged_table_are_one_line(chain, tmp_path, capsys):
    files = ["--table", chain / "table.csv", "--folder", tmp_path]
    assert call("figure", chain / "tiny.yaml", "wbcd_mlp", "nope", *files) == 2
    assert "command line: name: 'nope': must be one of wbcd_mlp_M1_R4, " in capsys.readouterr().err
    (tmp_path / "cut.csv").write_text("experiment,epsilom\n")
    files = ["--table", tmp_path / "cut.csv", "--folder", tmp_path / "figures"]
    assert call("figure", chain / "tiny.yaml", "wbcd_mlp", "wbcd_mlp_M1_R4", *files) == 2
    assert f"{tmp_path}/cut.csv: file: damaged (lacks the columns algorithm, " in capsys.readouterr().err


def test_embedded_data_need_no_fetch(capsys, tmp_path):
    assert call("fetch", "wbcd", "digits", "--listing", tmp_path / "files.csv") == 0
    assert "ships with scikit-learn, nothing to fetch" in capsys.readouterr().err
    assert (tmp_path / "files.csv").read_text().count("\n") == 1


def test_provenance_records_the_run(tmp_path):
    assert call("provenance", small.ROOT / "config" / "smoke.yaml", "--output", tmp_path / "provenance.json", "-q") == 0
    record = json.loads((tmp_path / "provenance.json").read_text())
    resolved = json.loads((tmp_path / "config.json").read_text())
    assert record["run"] == resolved["run"] == "smoke"
    assert "wbcd_mlp" in resolved["experiments"]
    assert math.isfinite(resolved["seed"])
