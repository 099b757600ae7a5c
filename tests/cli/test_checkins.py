"""The subcommands about random check-ins: what they write, and the one line that bad input gets."""

from pathlib import Path

import pandas as pd
import pytest
import runfiles
import yaml

from silodp.cli import checkins as checkins_commands
from silodp.cli import main


def run_of(folder: Path, experiment: str, **overrides) -> Path:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(runfiles.overriding(experiment, **overrides) | {"seed": 1}))
    return path


@pytest.fixture
def run_file(tmp_path) -> Path:
    return run_of(tmp_path, "digits_logistic", trials=2)


def test_figure_2_is_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(checkins_commands, "EPSILON0", (0.2, 0.4, 1.0))
    monkeypatch.setattr(checkins_commands, "CLIENTS", (1000, 10_000, 100_000))
    assert main(["checkins-figure-2", "--output", str(tmp_path / "figure_2.csv")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"figure_2.csv"}
    rows = pd.read_csv(tmp_path / "figure_2.csv").set_index(["bound", "reports", "epsilon0"])["epsilon"]
    # Claim K1: the new bound at n is near the earlier one at 10 n, where it is below ε0 at all.
    for n, epsilon0 in ((1000, 0.4), (10_000, 0.4), (10_000, 1.0)):
        ratio = rows["check-ins paper 5.1", n, epsilon0] / rows["earlier bound", 10 * n, epsilon0]
        assert 0.5 < ratio < 2
    for n in (1000, 10_000, 100_000):
        order = [rows[bound, n, 0.4] for bound in ("clones, numerical", "check-ins paper 5.1", "earlier bound")]
        assert order == sorted(order)


def test_the_comparison_writes_a_table(run_file, tmp_path):
    output = tmp_path / "out" / "pairs.csv"
    words = ["checkins", str(run_file), "digits_logistic", "--trials", "1", "--epsilons", "1", "--output", str(output)]
    assert main(words) == 0
    assert {path.name for path in output.parent.iterdir()} == {"pairs.csv"}
    assert pd.read_csv(output)["protocol"].tolist()[-2:] == ["a_sldw", "non_private"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--trials", "0"], "--trials: 0: must lie in 1 … 2"),
        (["--trials", "3"], "--trials: 3: must lie in 1 … 2"),
        (["--epsilons", "1", "0"], "--epsilons: 0: must lie above 0"),
        (["--epsilons", "nan"], "--epsilons: nan: must lie above 0"),
        (["--delta", "1"], "--delta: 1: must lie strictly between 0 and 1"),
    ],
)
def test_bad_input_is_one_line(run_file, tmp_path, capsys, words, told):
    assert main(["checkins", str(run_file), "digits_logistic", "--output", str(tmp_path / "o.csv"), *words]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_only_logistic_experiments_are_compared(tmp_path, capsys):
    path = run_of(tmp_path, "diabetes_linear")
    assert main(["checkins", str(path), "diabetes_linear", "--output", str(tmp_path / "o.csv")]) == 2
    assert "must be logistic" in capsys.readouterr().err
