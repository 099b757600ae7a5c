"""`silodp audit` of an algorithm."""

import json
from pathlib import Path

import pandas as pd
import pytest

from silodp.audit.audit_columns import AS_PLANNED
from silodp.audit.audit_rows import POINT_COLUMNS
from silodp.cli import main

SMALL = ("--records", "20", "--rounds", "3", "--batch", "5")


def test_an_algorithm_is_audited_at_each_claim(capsys, tmp_path):
    path = tmp_path / "audit.csv"
    assert main(["audit", "minibatch_sgd", *SMALL, "--epsilon", "1", "8", "--json", "--output", str(path)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["claimed_epsilon"] for row in rows] == [1, 8]
    assert all(row["mechanism"] == AS_PLANNED and row["mechanism_p"] > 1e-5 for row in rows)
    table = pd.read_csv(path)
    assert list(table.columns) == POINT_COLUMNS
    assert len(table) == 2


def test_a_message_is_of_all_records_at_most(capsys):
    arguments = ["audit", "minibatch_sgd", "--records", "6", "--rounds", "2", "--epsilon", "1", "--batch"]
    assert [main([*arguments, batch]) for batch in ("6", "7")] == [0, 2]
    assert "--batch: 7: must be at most --records = 6" in capsys.readouterr().err


def test_a_publications_experiment_is_audited_at_the_sizes_that_its_table_has(tmp_path, monkeypatch):
    seen = []

    def rows(run, name, config, sizes):
        seen.append((name, sizes))
        return pd.DataFrame({"experiment": [name], "mechanism": [AS_PLANNED]})

    monkeypatch.setattr("silodp.cli.audit.audit_rows", rows)
    path, published = tmp_path / "audit.csv", Path("results/published")
    assert main(["audit", str(published), "insurance_linear", "--output", str(path)]) == 0
    assert seen == [("insurance_linear", [106] * 10)]
    assert pd.read_csv(path)["experiment"].tolist() == ["insurance_linear"]
    (tmp_path / "tables").mkdir()
    sizes = {"insurance_linear": [7] * 2, "wbcd_mlp": [5] * 3}
    (tmp_path / "config.json").write_text(json.dumps({"run": "r", "experiments": dict.fromkeys(sizes)}))
    for name, (n, *others) in sizes.items():
        (tmp_path / f"tables/{name}.csv").write_text(f"N,n\n{len(others) + 1},{n}\n")
    assert main(["audit", str(tmp_path), "--output", str(path)]) == 0
    assert dict(seen[1:]) == sizes


@pytest.mark.parametrize(("name", "silos"), [("silo_only", 1), ("minibatch_sgd", 4)])
def test_an_algorithm_without_other_silos_is_audited_with_one(name, silos, monkeypatch):
    seen = []
    monkeypatch.setattr("silodp.cli.audit.point_rows", lambda algorithm, points, *more: seen.extend(points) or [])
    assert main(["audit", name, *SMALL, "--epsilon", "1", "8"]) == 0
    assert [len(plans) for plans in seen] == [silos] * 2


@pytest.mark.slow
def test_an_option_reaches_the_algorithm(capsys):
    """q = 3 of 3 rounds: one fresh gradient, two differences."""
    arguments = ["audit", "fedprox_spider", *SMALL, "--epsilon", "2", "--json"]
    epsilons = []
    for option in ("phase_length=1", "phase_length=3"):
        assert main([*arguments, "--option", option]) == 0
        epsilons.append(json.loads(capsys.readouterr().out)[0]["delivered_epsilon"])
    assert epsilons[0] != epsilons[1]


@pytest.mark.slow
def test_a_publication_is_audited_from_its_tables_alone(tmp_path, monkeypatch):
    """The published audits again, digit for digit but for rounding: no data set is there, and nothing is trained."""
    monkeypatch.setenv("SILODP_DATA_MIRROR", str(tmp_path))
    published = Path("results/published")
    table = pd.read_csv(published / "audit.csv")
    table = table[table["experiment"] == "wbcd_leaderboard"].reset_index(drop=True)
    assert main(["audit", str(published), "wbcd_leaderboard", "--output", str(tmp_path / "audit.csv")]) == 0
    again = pd.read_csv(tmp_path / "audit.csv")
    pd.testing.assert_frame_equal(again, table, check_exact=False, rtol=1e-3)
