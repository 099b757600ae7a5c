"""Whatever is wrong with a run file, a column or a place to write is one line that names it."""

import io
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.config.yaml_file import read_yaml
from silodp.datasets.own.guessing import Wishes, guess_schema
from silodp.datasets.own.schema import Column, Schema, TableError
from silodp.experiments.validation import load
from silodp.files import write_atomically
from silodp.own_data.released_model import ReleasedModel, load_model
from silodp.verdicts.claims.claim_files import load_claims

ROOT = Path(__file__).parents[2]
ABOUT = {"model": {"name": "linear"}, "bounds": {"age": [0, 120]}, "constant_column": False}
SCHEMA = Schema("y", {"age": Column("number"), "y": Column("number")})


@pytest.mark.parametrize("number", ["0123", "1:30", "-007", "1:30.5", "1_000", "0b11", "1_0.5"])
def test_numbers_that_yaml_readers_take_for_others_are_refused(tmp_path, number):
    (tmp_path / "r.yaml").write_text(f"seed: {number}\n")
    with pytest.raises(ConfigError, match="is no plain number"):
        read_yaml(tmp_path / "r.yaml")
    (tmp_path / "r.yaml").write_text("{a: 0, b: 0.5, c: 10, d: -3, e: 1e-3, f: .inf, g: 0.0, h: '0123'}")
    assert read_yaml(tmp_path / "r.yaml") == {
        **{"a": 0, "b": 0.5, "c": 10, "d": -3},
        **{"e": 1e-3, "f": np.inf, "g": 0.0, "h": "0123"},
    }


def test_what_is_no_run_file_is_named_for_what_it_is(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    for name in ("folder", "pipe", "loop"):
        with pytest.raises(ConfigError, match="is a folder, a pipe or a broken link"):
            read_yaml(tmp_path / f"{name}.yaml")
    (tmp_path / "large.yaml").write_text("a" * 1_000_001)
    with pytest.raises(ConfigError, match="1000001 bytes: must be at most 1000000"):
        read_yaml(tmp_path / "large.yaml")


@pytest.mark.parametrize("algorithms", ["x", "[minibatch_sgd]", "3", "true"])
def test_algorithms_are_a_mapping(tmp_path, algorithms):
    (tmp_path / "r.yaml").write_text(f"run: r\nexperiments: {{diabetes_linear: {{algorithms: {algorithms}}}}}\n")
    with pytest.raises(ConfigError, match=r"experiments.diabetes_linear.algorithms: .*: must be a mapping"):
        load(tmp_path / "r.yaml")


def test_a_slip_in_a_key_comes_first_and_no_class_is_named(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("run: r\nexperiments: {diabetes_linear: {trials: no, epsilon: [1]}}\n")
    with pytest.raises(ConfigError, match=r"epsilon: .*unknown key.*did you mean epsilons"):
        load(path)
    path.write_text("run: r\nexperiments: {diabetes_linear: {algorithms: {minibatch_sgd: 3}}}\n")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert "AlgorithmOptions" not in str(caught.value)


@pytest.mark.parametrize("cores", ["0", "-1", "many", "1.5"])
def test_cores_are_a_number_or_all(cores, capsys):
    for command in ("cost", "rebuild"):
        assert main([command, "config/smoke.yaml", "--cores", cores]) == 2
        assert "neither a number of at least 1 nor all" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [("2.\0", "row 17: control characters"), ("2.\1", "row 17, column 'x': .*a word in a column of numbers")],
)
def test_a_damaged_number_drops_no_column(tmp_path, cell, wanted):
    words = [str(value) for value in np.arange(300) / 7]
    words[16] = cell
    pd.DataFrame({"x": words, "y": np.arange(300) % 2}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(TableError, match=wanted):
        guess_schema(tmp_path / "d.csv", Wishes(target="y"))


@pytest.mark.parametrize("words", [["audit", "minibatch_sgd", "--output"], ["publish", "finished", "--output"]])
def test_a_place_where_nothing_can_be_written_is_no_unreadable_file(tmp_path, capsys, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "finished").mkdir()
    place = "/proc/x" if words[0] == "publish" else "/proc/x/l.csv"
    assert main([*words, place]) == 2
    told = capsys.readouterr().err
    assert "can be made" in told
    assert "readable" not in told
    assert ".lock" not in told


def test_claims_tell_how_far_they_are(monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("silodp.cli.claims.load_claims", lambda: load_claims()[:1])
    monkeypatch.setattr("sys.stderr", Terminal())
    assert main(["claims", str(ROOT / "results/published-protocols")]) == 0
    assert "0/1 [" in sys.stderr.getvalue()


def test_help_marks_what_a_mechanism_does_not_need(capsys):
    for command, wanted in (("epsilon", "required without --messages or --amplification"), ("noise", "required")):
        assert main([command, "--help"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert re.search(rf"R, rounds of communication\. \[.*?{wanted}\]", shown)
        assert ("without --messages" in shown) == (command == "epsilon")


def test_a_folder_that_may_not_be_written_is_told_by_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def refuse(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "touch", refuse)  # who runs tests as root may write anywhere
    with pytest.raises(PermissionError) as caught, write_atomically(tmp_path / "t.csv"):
        pass
    assert caught.value.filename == str(tmp_path / "t.csv")


def test_a_full_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, write_atomically(tmp_path / "t.csv"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "t.csv")


def test_predictions_replace_no_input_and_infinity_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ReleasedModel(np.ones(1), ABOUT, SCHEMA).save(tmp_path / "m.npz")
    pd.DataFrame({"age": [30.0, 50.0], "y": [1, 2]}).to_csv("d.csv", index=False)
    before = {name: (tmp_path / name).read_bytes() for name in ("m.npz", "d.csv")}
    for output in before:
        assert main(["predict", "m.npz", "d.csv", "--output", output]) == 2
        assert "must be another file" in capsys.readouterr().err
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    pd.DataFrame({"age": [30.0, np.inf], "y": [1, 2]}).to_csv("d.csv", index=False)
    assert main(["predict", "m.npz", "d.csv", "--output", "o.csv"]) == 2
    assert "row 2, column 'age'" in capsys.readouterr().err


def test_an_output_is_never_an_input(tmp_path, monkeypatch, capsys):
    """Neither by another option's name nor through a link."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"age": range(20, 60), "ill": ["no", "yes"] * 20}).to_csv("d.csv", index=False)
    ReleasedModel(np.ones(1), ABOUT, SCHEMA).save(tmp_path / "m.npz")
    Path("link.csv").symlink_to("d.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for words in (
        ["init", "d.csv", "--target", "ill", "--output", "d.csv"],
        ["predict", "m.npz", "d.csv", "--output", "link.csv"],
    ):
        assert main(words) == 2, words
        assert len(capsys.readouterr().err.splitlines()) == 1, words
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before, words


def test_a_pipe_is_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    pipe, output = str(tmp_path / "pipe"), str(tmp_path / "o.csv")
    for words in (
        ["predict", pipe, pipe, "--output", output],
        ["init", pipe, "--target", "y"],
    ):
        assert main(words) == 2
        assert "is a pipe or a device: must be a file" in capsys.readouterr().err


def test_a_model_with_a_flipped_bit_is_one_line(tmp_path):
    ReleasedModel(np.ones(1), ABOUT, SCHEMA).save(tmp_path / "m.npz")
    whole, refused = (tmp_path / "m.npz").read_bytes(), []
    for place in range(0, len(whole), 37):
        flipped = bytearray(whole)
        flipped[place] ^= 4
        (tmp_path / "m.npz").write_bytes(flipped)
        try:
            load_model(tmp_path / "m.npz")
        except ValueError as error:
            refused.append("not a model of silodp" in str(error))
    assert refused
    assert all(refused)


RUN = str(ROOT / "results/published-protocols")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["claims", RUN, "--pair", "spider", "fed_spyder"], "--pair: 'fed_spyder': must be one of "),
        (["claims", "folder"], "folder: tables: missing: must be a folder of results"),
        (
            ["rebuild", "run.yaml", "other.yaml"],
            "'other.yaml': must be one run file, and words for Snakemake stand behind",
        ),
        (["rebuild", "run.yaml", "--profile", "nope"], "--profile: 'nope': must be a folder with config.yaml"),
        (["predict", "model.npz", "run.yaml", "--output", "run.yaml/x.csv"], "--output: 'run.yaml/x.csv': "),
        (["publish", "folder", "--output", "out"], "folder"),
        (["publish", "folder", "--output", "deep/er/out"], "folder"),
        (["claims", "empty"], "empty: tables: missing: must be a folder of results"),
        (["claims", RUN, "--output", "folder"], "'--output': File 'folder' is a directory."),
        (["audit", "local_sgd", "--output", "folder"], "'--output': File 'folder' is a directory."),
        (["predict", "model.npz", "run.yaml", "--output", "folder"], "'--output': File 'folder' is a directory."),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_words_that_cannot_be_used_are_refused_before_any_work(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty" / "tables").mkdir(parents=True)
    (tmp_path / "run.yaml").write_text("run: r\nexperiments: {wbcd_mlp: {trials: 1}}\n")
    before = sorted(tmp_path.rglob("*"))
    assert main(words) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    # No lock, no folder.
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("experiments: {wbcd_mlp: {trials: many}}", "experiments.wbcd_mlp.trials: 'many': must be a valid integer"),
        ("experiments: {wbcd_mpl: {}}", "experiments.wbcd_mpl: no such experiment"),
        ("seed: x\n    experiments: {wbcd_mlp: {}}", "seed: 'x': must be a valid integer"),
    ],
)
def test_a_fault_in_a_part_names_the_file_that_it_stands_in(tmp_path, part, told):
    (tmp_path / "run.yaml").write_text(f"run: run\nexperiments: {{wbcd_mlp: {{}}}}\nparts:\n  one:\n    {part}\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "run-one.yaml")
    assert str(caught.value).startswith(f"{tmp_path / 'run.yaml'}: ")
    assert told in str(caught.value)
    assert "should" not in str(caught.value)
