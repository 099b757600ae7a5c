"""Jobs called by hand: what a run lacks is one line, and nothing is written."""

import pytest
import yaml
from small import ROOT

from silodp.cli import main

TABLE = ROOT / "results" / "published" / "tables" / "wbcd_mlp.csv"
RUN = {"run": "tiny", "experiments": {"wbcd_mlp": {"trials": 2, "settings": [{"M": 1, "R": 4}, {"M": 2, "R": 3}]}}}


def call(*arguments) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run file and its silos."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "tiny.yaml").write_text(yaml.safe_dump(RUN))
    assert call("partition", folder / "tiny.yaml", "wbcd_mlp", "--output", folder / "silos", "-q") == 0
    return folder


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
def test_names_that_a_run_lacks_are_one_line(folder, tmp_path, capsys, words, fault):
    silos = [] if "--silos" in words else ["--silos", folder / "silos"]
    assert call("train", folder / "tiny.yaml", *words, *silos, "--output", tmp_path / "out.parquet", "-q") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert fault in line
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_and_a_damaged_table_are_one_line(folder, tmp_path, capsys):
    files = ["--table", TABLE, "--folder", tmp_path]
    assert call("figure", folder / "tiny.yaml", "wbcd_mlp", "nope", *files) == 2
    assert "command line: name: 'nope': must be one of wbcd_mlp_M1_R4, " in capsys.readouterr().err
    (tmp_path / "cut.csv").write_text("experiment,epsilom\n")
    files = ["--table", tmp_path / "cut.csv", "--folder", tmp_path / "figures"]
    assert call("figure", folder / "tiny.yaml", "wbcd_mlp", "wbcd_mlp_M1_R4", *files) == 2
    assert f"{tmp_path}/cut.csv: file: damaged (lacks the columns algorithm, " in capsys.readouterr().err
