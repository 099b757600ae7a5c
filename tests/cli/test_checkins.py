"""The jobs of random check-ins write tables."""

import pandas as pd
import runfiles
import yaml

from silodp.cli import main
from silodp.jobs import checkins, checkins_figure_2
from silodp.jobs.__main__ import main as run_job


def test_figure_2_is_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(checkins_figure_2, "EPSILON0", (0.2, 0.4, 1.0))
    monkeypatch.setattr(checkins_figure_2, "CLIENTS", (1000, 10_000, 100_000))
    assert run_job(["checkins_figure_2", f"output={tmp_path / 'figure_2.csv'}"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"figure_2.csv"}
    rows = pd.read_csv(tmp_path / "figure_2.csv").set_index(["bound", "reports", "epsilon0"])["epsilon"]
    # Claim K1: the new bound at n is near the earlier one at 10 n, where it is below ε0 at all.
    for n, epsilon0 in ((1000, 0.4), (10_000, 0.4), (10_000, 1.0)):
        ratio = rows["check-ins paper 5.1", n, epsilon0] / rows["earlier bound", 10 * n, epsilon0]
        assert 0.5 < ratio < 2
    for n in (1000, 10_000, 100_000):
        order = [rows[bound, n, 0.4] for bound in ("clones, numerical", "check-ins paper 5.1", "earlier bound")]
        assert order == sorted(order)
        # Random allocation: two ends that are proven, below the theorem about the same check-ins.
        ends = [rows[bound, n, 0.4] for bound in ("lower bound", "random allocation", "random check-ins")]
        assert ends == sorted(set(ends))


def test_the_comparison_writes_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(checkins, "EPSILONS", (1.0,))
    run_file = tmp_path / "run.yaml"
    run_file.write_text(yaml.safe_dump(runfiles.overriding("digits_logistic", trials=1) | {"seed": 1}))
    output = tmp_path / "out" / "pairs.csv"
    assert run_job(["checkins", f"run_file={run_file}", "experiment=digits_logistic", f"output={output}"]) == 0
    assert {path.name for path in output.parent.iterdir()} == {"pairs.csv"}
    assert pd.read_csv(output)["protocol"].tolist()[-2:] == ["a_sldw", "non_private"]


def test_figure_2_is_drawn_without_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(checkins_figure_2, "EPSILON0", (0.2, 0.4))
    monkeypatch.setattr(checkins_figure_2, "CLIENTS", (1000,))
    monkeypatch.chdir(tmp_path)
    saved = {}
    monkeypatch.setattr("silodp.cli.replicate.save", lambda drawn, path: saved.update({f"{path}.svg": drawn.axes}))
    assert main(["replicate", "checkins-2"]) == 0
    figure, table = capsys.readouterr().out.splitlines()
    assert set(pd.read_csv(table)["epsilon0"]) == {0.2, 0.4}
    assert saved.keys() == {figure}
    assert saved[figure]
