"""What is kept of a run: the files that figures and page need, never another run's, never half a run."""

import json

import pandas as pd
import pytest

from silodp.cli import main
from silodp.publishing import NEEDED


def run_folder(folder, *without):
    """A finished run's files, and some that are not kept."""
    files = ["config.json", "provenance.json", "privacy.csv", "tables/a.csv", "reported/a.csv", "figures/a.png"]
    files += ["claims.csv", "bounds/a.csv", "bounds/a.png", "checkins/a.csv", "checkins/a.pdf"]
    for name in [*files, "silos/a/default/heterogeneity.csv", "silos/a/default/indices.parquet", "logs/a.log"]:
        if name not in without:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text('{"run": "r7", "git": {"commit": "abc"}}' if name == "provenance.json" else name)
    return folder


def kept(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_publishing_keeps_what_is_small_and_replaces_what_was_there(tmp_path):
    run, out = run_folder(tmp_path / "run"), tmp_path / "out"
    assert main(["publish", str(run), "--output", str(out)]) == 0
    wanted = {"config.json", "provenance.json", "privacy.csv", "tables/a.csv", "reported/a.csv", "figures/a.png"}
    wanted |= {"claims.csv", "bounds/a.csv", "bounds/a.png", "checkins/a.csv", "checkins/a.pdf"}
    assert kept(out) == wanted | {"silos/a/default/heterogeneity.csv", "README.md"}
    page = (out / "README.md").read_text()
    assert "make publish RUN=r7" in page
    assert "by version abc" in page
    (out / "tables/old.csv").write_text("")
    assert main(["publish", str(run), "--output", str(out)]) == 0
    assert "tables/old.csv" not in kept(out)
    assert (out / "tables/a.csv").stat().st_mtime_ns == (run / "tables/a.csv").stat().st_mtime_ns


@pytest.mark.parametrize("lacking", ["config.json", "provenance.json", "privacy.csv", "tables/a.csv"])
def test_half_a_run_is_refused_and_nothing_is_touched(tmp_path, capsys, lacking):
    assert len(NEEDED) == 4
    out = tmp_path / "out"
    main(["publish", str(run_folder(tmp_path / "run")), "--output", str(out)])
    before = kept(out)
    half = run_folder(tmp_path / "half", lacking)
    assert main(["publish", str(half), "--output", str(out)]) == 2
    assert "must be a finished run" in capsys.readouterr().err
    assert kept(out) == before


def finished(folder, run, values, commit, seed=2023, targets=()):
    """A run of experiments with tables that readers can read."""
    for name, value in values.items():
        for path in (f"tables/{name}.csv", f"reported/{name}.csv", f"figures/{name}_M2_R25.png"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(f"{run} {value}")
        (folder / f"silos/{name}/default").mkdir(parents=True)
        (folder / f"silos/{name}/default/heterogeneity.csv").write_text(f"{run} {value}")
    rows = {"experiment": list(values), "delivered_epsilon": list(values.values()), "delivered_lower": ""}
    for name in ("privacy.csv", "audit.csv"):
        pd.DataFrame(rows).to_csv(folder / name, index=False)
    config = {"run": run, "seed": seed, "dtype": "float32", "experiments": {key: {"by": run} for key in values}}
    (folder / "config.json").write_text(json.dumps(config | {"targets": list(targets)}))
    (folder / "provenance.json").write_text(json.dumps({"run": run, "git": {"commit": commit}}))
    return folder


def test_several_runs_are_published_as_one(tmp_path, monkeypatch):
    monkeypatch.setattr("silodp.claims.decide", lambda known, folder: pd.DataFrame({"claim": ["N1"], "verdict": ["x"]}))
    a = finished(tmp_path / "a", "a", {"wbcd": "0.10", "wbcd_b": "0.3"}, "abc", targets=["bounds"])
    b = finished(tmp_path / "b", "b", {"wbcd": "0.2", "mnist": ""}, "def", targets=["checkins"])
    (a / "figures/wbcd_M2_R25_delivered_vs_claimed.png").write_text("of another reading")
    (a / "formulas.csv").write_text("a")
    out = tmp_path / "out"
    assert main(["publish", str(a), str(b), "--output", str(out)]) == 0
    for folder, suffix in (("tables", ".csv"), ("reported", ".csv"), ("figures", "_M2_R25.png")):
        found = {path.name: path.read_text() for path in (out / folder).iterdir()}
        assert found == {f"wbcd{suffix}": "b 0.2", f"wbcd_b{suffix}": "a 0.3", f"mnist{suffix}": "b "}
    assert (out / "silos/wbcd/default/heterogeneity.csv").read_text() == "b 0.2"
    assert (out / "formulas.csv").read_text() == "a"
    for name in ("privacy.csv", "audit.csv"):
        assert (out / name).read_text().splitlines()[1:] == ["wbcd_b,0.3,", "wbcd,0.2,", "mnist,,"]
    config = json.loads((out / "config.json").read_text())
    assert config["experiments"] == {"wbcd": {"by": "b"}, "wbcd_b": {"by": "a"}, "mnist": {"by": "b"}}
    assert (config["run"], config["targets"]) == ("a-b", ["bounds", "checkins"])
    runs = json.loads((out / "provenance.json").read_text())["runs"]
    assert {name: record["git"]["commit"] for name, record in runs.items()} == {"a": "abc", "b": "def"}
    assert (out / "claims.csv").read_text() == "claim,verdict\nN1,x\n"
    page = (out / "README.md").read_text()
    assert 'make publish RUN="a b"' in page
    assert "by version def" in page


def test_runs_that_are_not_alike_are_not_put_together(tmp_path, capsys):
    a, b = (finished(tmp_path / name, name, {name: "1"}, "abc", seed) for name, seed in (("a", 1), ("b", 2)))
    assert main(["publish", str(a), str(b), "--output", str(tmp_path / "out")]) == 2
    assert "seed: 2: must be 1, as in" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_not_replaced(tmp_path, capsys):
    run, out = run_folder(tmp_path / "run"), tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.tex").write_text("years of work")
    assert main(["publish", str(run), "--output", str(out)]) == 2
    assert main(["publish", str(run), "--output", str(run)]) == 2
    assert "must be an earlier publication" in capsys.readouterr().err
    assert kept(out) == {"chapter1.tex"}


def test_compare_prints_or_writes(tmp_path, capsys):
    rows = {"experiment": "e", "algorithm": ["a", "a", "b", "b"], "reading": "", "M": 2, "R": 3, "epsilon": 1.0}
    rows |= {"trial": [0, 1, 0, 1], "stepsize": 1, "clip": 1, "phase_length": 1, "train_loss": 1, "diverged": False}
    pd.DataFrame(rows | {"test_error": [0.1, 0.2, 0.4, 0.51]}).to_csv(tmp_path / "r.csv", index=False)
    assert main(["compare", str(tmp_path / "r.csv"), "a", "b"]) == 0
    assert "-0.305" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "r.csv"), "a", "b", "--output", str(tmp_path / "c.csv")]) == 0
    assert pd.read_csv(tmp_path / "c.csv")["difference"].tolist() == [pytest.approx(-0.305)]
    assert main(["compare", str(tmp_path / "none.csv"), "a", "b"]) == 2
