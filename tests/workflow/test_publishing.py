"""What is kept of a run: the files that figures and page need, never another run's, never half a run; nothing lost."""

import contextlib
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from finished import finished, held, sign

from silodp.cli import main
from silodp.workflow.contents import CHECKSUMS, PUBLICATION
from silodp.workflow.publishing import NEEDED, _command

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("made") / "r7", "r7", {"wbcd_mlp": {}})


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "results/r7")


def publish(*folders, output):
    return main(["publish", *map(str, folders), "--output", str(output)])


def test_publishing_keeps_what_is_small_and_replaces_what_was_there(run, tmp_path):
    out = tmp_path / "out"
    assert publish(run, output=out) == 0
    wanted = {
        "config.json",
        "provenance.json",
        "privacy.csv",
        "by_round.csv",
        "audit.csv",
        "formulas.csv",
        "claims.csv",
    }
    wanted |= {f"{kind}/wbcd_mlp.csv" for kind in ("tables", "reported")} | {"README.md", PUBLICATION}
    figures = {name for name in held(run) if name.startswith("figures/") and name.endswith(".svg")}
    assert {"figures/wbcd_mlp_M2_R5.svg", "figures/formulas_convex.svg"} <= figures
    wanted |= figures
    rules = {f"source/workflow/rules/{file.name}" for file in (ROOT / "workflow/rules").glob("*.smk")}
    assert len(rules) > 5
    wanted |= {"source/Snakefile"} | rules
    assert held(out) == wanted | {"silos/wbcd_mlp/default/heterogeneity.csv"}
    page = (out / "README.md").read_text()
    assert f"make publish RUN=r7 TO={out.name}`" in page
    assert all(f"`make {word} TO={out.name}`" in page for word in ("figures", "report", "claims"))
    assert "by version abc" in page
    (out / "tables/old.csv").write_text("")
    assert publish(run, output=out) == 0
    assert "tables/old.csv" not in held(out)
    assert (out / "tables/wbcd_mlp.csv").stat().st_mtime_ns == (run / "tables/wbcd_mlp.csv").stat().st_mtime_ns


@pytest.mark.parametrize("lacking", ["config.json", "provenance.json", "privacy.csv", "tables/wbcd_mlp.csv", CHECKSUMS])
def test_half_a_run_is_refused_and_nothing_is_touched(run, tmp_path, capsys, lacking):
    assert len(NEEDED) == 5
    out = tmp_path / "out"
    publish(run, output=out)
    before = held(out)
    (run / lacking).unlink()
    assert publish(run, output=out) == 2
    assert "must be a finished run" in capsys.readouterr().err
    assert held(out) == before


def test_a_run_that_changed_after_its_rebuild_is_refused(run, tmp_path, capsys):
    (run / "tables/wbcd_mlp.csv").write_text("a table of another seed")
    assert publish(run, output=tmp_path / "out") == 2
    assert "tables/wbcd_mlp.csv: checksum: differs" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_of_a_version_with_fewer_figures_is_published(run, tmp_path):
    """They are drawn from its tables; one that was changed after the rebuild is refused all the same."""
    kind = run / "figures/wbcd_mlp_M2_R5_delivered_vs_claimed.svg"
    changed = kind.read_text() + " "
    kind.unlink()
    assert publish(run, output=tmp_path / "out") == 0
    kind.write_text(changed)
    assert publish(run, output=tmp_path / "out") == 2


def test_several_runs_are_published_as_one(tmp_path, monkeypatch):
    verdicts = pd.DataFrame({"claim": ["N1"], "verdict": ["x"]})
    monkeypatch.setattr("silodp.workflow.publishing.decide", lambda known, folder: verdicts)
    a = finished(tmp_path / "a", "a", {"wbcd_mlp": {}, "wbcd_calibrated": {}}, "abc")
    b = finished(tmp_path / "b", "b", {"wbcd_mlp": {}, "diabetes_linear": {"clips": [1]}}, "def")
    out = tmp_path / "out"
    assert publish(a, b, output=out) == 0
    files = {"wbcd_mlp": "b", "wbcd_calibrated": "a", "diabetes_linear": "b"}
    for folder in ("tables", "reported"):
        found = {path.name: path.read_text() for path in (out / folder).iterdir()}
        assert found == {f"{name}.csv": f"{run} {folder}/{name}.csv" for name, run in files.items()}
    assert (out / "figures/wbcd_mlp_M2_R5.svg").read_text().startswith("b ")
    assert (out / "figures/wbcd_calibrated_M2_R5.svg").read_text().startswith("a ")
    assert (out / "silos/wbcd_mlp/default/heterogeneity.csv").read_text().startswith("b ")
    for name in ("privacy.csv", "by_round.csv", "audit.csv"):
        assert (out / name).read_text().splitlines()[1:] == ["wbcd_calibrated,a,", "wbcd_mlp,b,", "diabetes_linear,b,"]
    config = json.loads((out / "config.json").read_text())
    assert set(config["experiments"]) == set(files)
    assert config["run"] == "a-b"
    runs = json.loads((out / "provenance.json").read_text())["runs"]
    assert {name: record["git"]["commit"] for name, record in runs.items()} == {"a": "abc", "b": "def"}
    assert (out / "claims.csv").read_text() == "claim,verdict\nN1,x\n"
    page = (out / "README.md").read_text()
    assert 'make publish RUN="a b"' in page
    assert "by version def" in page


def test_a_run_is_published_beside_those_whose_folders_are_gone(tmp_path, monkeypatch, capsys):
    """Each experiment stays as it was published, with the record of its own run; the new run's are put beside it."""
    seen = []

    def decide(known, folder):
        seen.append(sorted(path.stem for path in (folder.path / "tables").glob("*.csv")))
        return pd.DataFrame({"claim": ["N1"], "verdict": ["x"]})

    monkeypatch.setattr("silodp.workflow.publishing.decide", decide)
    out, beside = tmp_path / "out", ("--beside",)
    a = finished(tmp_path / "a", "a", {"wbcd_mlp": {}, "wbcd_calibrated": {}}, "abc")
    assert publish(a, *beside, output=out) == 2
    assert "--beside" in capsys.readouterr().err
    assert publish(a, output=out) == 0
    _made_again(out)
    shutil.rmtree(a)
    b = finished(tmp_path / "b", "b", {"diabetes_linear": {"clips": [1]}}, "def")
    for _ in range(2):  # once more replaces the run's own, and names it once
        assert publish(b, *beside, output=out) == 0
        config = json.loads((out / "config.json").read_text())
        assert set(config["experiments"]) == {"wbcd_mlp", "wbcd_calibrated", "diabetes_linear"}
        assert config["run"] == "a-b"
        runs = json.loads((out / "provenance.json").read_text())["runs"]
        assert {name: record["git"]["commit"] for name, record in runs.items()} == {"a": "abc", "b": "def"}
        assert (out / "tables/wbcd_mlp.csv").read_text() == "a tables/wbcd_mlp.csv"
        assert (out / "figures/wbcd_calibrated_M2_R5.svg").read_text().startswith("a ")
        assert next(out.glob("figures/diabetes_linear_M*.svg")).read_text().startswith("b ")
        assert seen[-1] == ["diabetes_linear", "wbcd_calibrated", "wbcd_mlp"]
        assert 'make publish RUN="a b"' in (out / "README.md").read_text()
        assert json.loads((out / PUBLICATION).read_text())["runs"] == ["a", "b"]
        _made_again(out)
    (out / "tables/wbcd_mlp.csv").write_text("changed by hand")
    assert publish(b, *beside, output=out) == 2
    assert "tables/wbcd_mlp.csv: checksum: differs" in capsys.readouterr().err


def test_a_run_of_which_nothing_is_left_has_no_record(tmp_path, monkeypatch):
    """Whatever the runs are called: records of a publication stand in the order of their names."""
    monkeypatch.setattr("silodp.workflow.publishing.decide", lambda known, folder: pd.DataFrame({"claim": ["N1"]}))
    out = tmp_path / "out"
    both, half, rest = ({"wbcd_mlp": {}, "diabetes_linear": {}}, {"diabetes_linear": {}}, {"wbcd_mlp": {}})

    def made_by(folder, *options):
        assert publish(folder, *options, output=out) == 0
        _made_again(out)
        record = json.loads((out / "provenance.json").read_text())
        assert set(record["runs"]) == set(record["made_by"].values())
        page = (out / "README.md").read_text()
        assert all((f"the run `{name}`" in page) == (name in record["runs"]) for name in "abc")
        return record["made_by"]

    assert publish(finished(tmp_path / "b", "b", both), output=out) == 0
    _made_again(out)
    assert made_by(finished(tmp_path / "a", "a", half), "--beside") == {"wbcd_mlp": "b", "diabetes_linear": "a"}
    assert made_by(finished(tmp_path / "c", "c", rest), "--beside") == {"wbcd_mlp": "c", "diabetes_linear": "a"}


def _made_again(publication):
    """What `make publish` makes after the copy."""
    for name in ("comparisons.csv", "report.html", "ro-crate-metadata.json"):
        (publication / name).write_text(name)


def test_runs_that_are_not_alike_are_not_put_together(tmp_path, capsys):
    a, b = (finished(tmp_path / name, name, {"wbcd_mlp": {}}, seed=seed) for name, seed in (("a", 1), ("b", 2)))
    assert publish(a, b, output=tmp_path / "out") == 2
    assert "seed: 2: must be 1, as in" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_not_replaced(run, tmp_path, capsys):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.tex").write_text("years of work")
    (out / "config.json").write_text("{}")
    assert publish(run, output=out) == 2
    assert publish(run, output=run) == 2
    assert "must be an earlier publication" in capsys.readouterr().err
    assert held(out) == {"chapter1.tex", "config.json"}


def test_a_run_is_never_replaced_nor_what_lies_around_or_in_one(run, tmp_path, capsys):
    other = shutil.copytree(run, run.parent / "tiny")
    before = held(run.parent)
    link = tmp_path / "link"
    link.symlink_to(other)
    for output in (other, link, run.parent, tmp_path, run / "kept", run / "../r7"):
        assert publish(run, output=output) == 2
        assert "--output" in capsys.readouterr().err
        assert held(run.parent) == before
    # Not even with the marker in it, as after a publication over a run by hand.
    (other / PUBLICATION).write_text("{}")
    assert publish(run, output=other) == 2
    assert "holds trials and so is a run" in capsys.readouterr().err


def test_results_of_removed_experiments_settings_and_readings_are_not_published(run, tmp_path):
    for name in ("tables/gone.csv", "reported/gone.csv", "figures/gone_M2_R5.svg", "checkins/gone.csv"):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text("of an experiment that was dropped")
    (run / "figures/wbcd_mlp_M2_R50.svg").write_text("of a setting that was dropped")
    (run / "figures/wbcd_mlp_M2_R5_batch-per_eps.svg").write_text("of a reading that was dropped")
    (run / "silos/gone/default").mkdir(parents=True)
    (run / "silos/gone/default/heterogeneity.csv").write_text("")
    assert publish(run, output=tmp_path / "out") == 0
    assert not [name for name in held(tmp_path / "out") if "gone" in name or "R50" in name or "per_eps" in name]


def test_a_publish_that_is_stopped_at_any_moment_leaves_the_old_or_the_new_whole(run, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert publish(run, output=out) == 0
    old = held(out)
    (run / "tables/wbcd_mlp.csv").write_text("another")
    sign(run)

    class Stopped(BaseException):
        pass

    for name, true in (("shutil.copy2", shutil.copy2), ("pathlib.Path.rename", Path.rename)):
        for moment in range(3):
            left = [moment]

            def stopping(*arguments, left=left, true=true):
                if left[0] == 0:
                    raise Stopped
                left[0] -= 1
                return true(*arguments)

            with monkeypatch.context() as patched:
                patched.setattr(name, stopping)
                with contextlib.suppress(Stopped):
                    publish(run, output=out)
            # Killed between the two renames, the former publication lies beside; the next publish brings it back.
            assert held(out) == old if out.exists() else held(tmp_path / ".out.old") == old
    assert publish(run, output=out) == 0
    assert (out / "tables/wbcd_mlp.csv").read_text() == "another"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_compare_prints_or_writes(tmp_path, capsys):
    rows = {"experiment": "e", "algorithm": ["a", "a", "b", "b"], "reading": "", "M": 2, "R": 3, "epsilon": 1.0}
    rows |= {"trial": [0, 1, 0, 1], "stepsize": 1, "clip": 1, "phase_length": 1, "train_loss": 1, "diverged": False}
    pd.DataFrame(rows | {"test_error": [0.1, 0.2, 0.4, 0.51]}).to_csv(tmp_path / "r.csv", index=False)
    assert main(["compare", str(tmp_path / "r.csv"), "a", "b"]) == 0
    assert "-0.305" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "r.csv"), "a", "b", "--output", str(tmp_path / "c.csv")]) == 0
    assert pd.read_csv(tmp_path / "c.csv")["difference"].tolist() == [pytest.approx(-0.305)]
    assert main(["compare", str(tmp_path / "none.csv"), "a", "b"]) == 2


@pytest.mark.parametrize(
    ("run", "command"),
    [
        ("paper", "`make reproduce RUN=paper`"),
        (
            "figure-nonconvex-6",
            "`make figure FIG=nonconvex-6` and `silodp rebuild results/figure-nonconvex-6/run.yaml`",
        ),
        ("figure-convex-2-5-trials", "`make figure FIG=convex-2 TRIALS=5` and"),
    ],
)
def test_the_command_of_a_figures_run_is_that_of_the_figure(run, command):
    assert _command(run).startswith(command)
    assert re.fullmatch(r"(`[^`]+`)( and `[^`]+`)?", _command(run))
