"""What is kept of a run: the files that figures and page need, never another run's, never half a run; nothing lost."""

import contextlib
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from finished import finished, held, sign

from silodp.cli import main
from silodp.experiments.validation import load
from silodp.workflow import publishing
from silodp.workflow.contents import MANIFEST, entities
from silodp.workflow.engine import results_locked
from silodp.workflow.job_digest import RunPlan

MERGED = ("privacy.csv", "by_round.csv", "audit.csv")
KEPT = {"config.json", "provenance.json", *MERGED, "formulas.csv", "README.md", MANIFEST}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of four runs: a has two experiments, b one of them and a new one, c and d the new one alone."""
    folder, new = tmp_path_factory.mktemp("made"), {"diabetes_linear": {"clips": [1]}}
    finished(
        folder / "a", "a", {"wbcd_mlp": {"settings": [{"M": 2, "R": 5}, {"M": 2, "R": 50}]}, "wbcd_calibrated": {}}
    )
    finished(folder / "b", "b", {"wbcd_mlp": {}} | new, "def")
    finished(folder / "c", "c", new)
    finished(folder / "d", "d", new, seed=7)
    return folder


@pytest.fixture
def runs(made, tmp_path):
    return shutil.copytree(made, tmp_path / "results")


def publish(*folders, output, options=()):
    return main(["-q", "publish", *options, *map(str, folders), "--output", str(output)])


def origins(publication, pattern):
    """Name of a file → name of the run that it is from, which is the file's first word."""
    return {path.stem: path.read_text().split()[0] for path in publication.glob(pattern)}


def check_made_by(publication, made_by):
    """Whatever is there of an experiment is of the run that `made_by` names, and nothing is there of another."""
    assert origins(publication, "tables/*.csv") == origins(publication, "reported/*.csv") == made_by
    rows = [f"{experiment},{run}," for experiment, run in made_by.items()]
    for name in MERGED:
        assert (publication / name).read_text().splitlines()[1:] == rows
    assert set(json.loads((publication / "config.json").read_text())["experiments"]) == set(made_by)
    record = json.loads((publication / "provenance.json").read_text())
    assert (record["made_by"], set(record["runs"])) == (made_by, set(made_by.values()))
    assert main(["verify", str(publication)]) == 0


def test_publication_keeps_small_files_and_replaces_earlier_ones(runs, tmp_path):
    out, run = tmp_path / "out", runs / "c"
    assert publish(run, output=out) == 0
    figures = {name for name in held(run) if name.startswith("figures/") and name.endswith(".svg")}
    assert {"figures/diabetes_linear_M2_R5.svg", "figures/formulas_convex.svg"} <= figures
    small = {f"{kind}/diabetes_linear.csv" for kind in ("tables", "reported")} | figures
    small |= {"losses/diabetes_linear.parquet"}
    assert held(out) == KEPT | small | {"silos/diabetes_linear/default/heterogeneity.csv"}
    page = (out / "README.md").read_text()
    assert f'make publish RUN="c" TO={out.name}`' in page
    assert all(f"`make {word} TO={out.name}`" in page for word in ("figures", "report", "claims"))
    assert "by version abc with `make c`" in page
    assert main(["verify", str(out)]) == 0
    (out / "tables/old.csv").write_text("")
    assert publish(run, output=out) == 0
    assert "tables/old.csv" not in held(out)
    table = "tables/diabetes_linear.csv"
    assert (out / table).stat().st_mtime_ns == (run / table).stat().st_mtime_ns


@pytest.mark.parametrize("damaged", [MANIFEST, "config.json", "provenance.json", "tables/diabetes_linear.csv"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text(path.read_text()[:-9])])
def test_half_a_run_or_a_changed_one_is_refused(runs, tmp_path, capsys, damaged, damage):
    damage(runs / "c" / damaged)
    assert publish(runs / "c", output=tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(runs / "c" / damaged) in line
    assert not (tmp_path / "out").exists()


def test_several_runs_are_published_as_one(runs, tmp_path):
    """Each experiment is the last run's that has it, whole: of the first run's two settings one is gone."""
    out, record = tmp_path / "out", runs / "a" / "provenance.json"
    record.write_text(record.read_text().replace("2026-01-02T03:05:05Z", newest := "2026-01-03T00:00:00Z"))
    sign(runs / "a")
    assert publish(runs / "a", runs / "b", output=out) == 0
    assert entities(out)["./"]["datePublished"] == newest
    made_by = {"wbcd_calibrated": "a", "wbcd_mlp": "b", "diabetes_linear": "b"}
    check_made_by(out, made_by)
    # Where both noises are drawn, the errors stand in the picture of both.
    stems = {"wbcd_calibrated": "wbcd_calibrated_M2_R5_noise=calibrated_both_noises"}
    drawn = origins(out, "figures/*_M2_R5.svg") | origins(out, "figures/*_both_noises.svg")
    assert drawn == {stems.get(name, f"{name}_M2_R5"): run for name, run in made_by.items()}
    assert not any("R50" in name for name in held(out))
    assert json.loads((out / "config.json").read_text())["run"] == "a-b"
    record = json.loads((out / "provenance.json").read_text())
    assert {name: run["git"]["commit"] for name, run in record["runs"].items()} == {"a": "abc", "b": "def"}
    assert 'make publish RUN="a b"' in (out / "README.md").read_text()


def test_run_is_published_again_beside_others_whose_folders_are_gone(runs, tmp_path, capsys):
    out = tmp_path / "out"
    assert publish(runs / "a", output=out, options=["--beside"]) == 2
    assert "must be an earlier publication" in capsys.readouterr().err
    assert publish(runs / "a", output=out) == 0
    shutil.rmtree(runs / "a")
    for _ in range(2):
        assert publish(runs / "c", output=out, options=["--beside"]) == 0
        assert origins(out, "tables/*.csv") == {"wbcd_mlp": "a", "wbcd_calibrated": "a", "diabetes_linear": "c"}
        assert json.loads((out / "config.json").read_text())["run"] == "a-c"
        assert list(json.loads((out / "provenance.json").read_text())["runs"]) == ["a", "c"]
    # The other run replaces all of c, which has no record then.
    assert publish(runs / "b", output=out, options=["--beside"]) == 0
    record = json.loads((out / "provenance.json").read_text())
    assert set(record["runs"]) == set(record["made_by"].values()) == {"a", "b"}
    assert main(["verify", str(out)]) == 0
    (out / "tables/wbcd_mlp.csv").write_text("changed by hand")
    assert publish(runs / "b", output=out, options=["--beside"]) == 2
    assert "tables/wbcd_mlp.csv: checksum: differs" in capsys.readouterr().err


def test_what_a_run_made_is_published_no_longer(runs, tmp_path, capsys):
    out = tmp_path / "out"
    assert publish(runs / "a", runs / "b", output=out) == 0
    assert publish(runs / "c", output=out, options=["--without", "b"]) == 2
    assert "--without: goes with --beside" in capsys.readouterr().err
    assert publish(runs / "c", output=out, options=["--beside", "--without", "c"]) == 2
    assert "--without: 'c': must be a run that is published there (a, b)" in capsys.readouterr().err
    # All that b made is gone, also the experiment that a made before it; c has another of its own.
    assert publish(runs / "c", output=out, options=["--beside", "--without", "b"]) == 0
    check_made_by(out, {"wbcd_calibrated": "a", "diabetes_linear": "c"})
    assert not any("wbcd_mlp" in name for name in held(out))
    capsys.readouterr()
    assert main(["publish", str(runs / "c"), "--output", str(out)]) == 0
    *_, done, lost = capsys.readouterr().err.splitlines()
    assert done.endswith(f"{out}: published: diabetes_linear")
    assert lost.endswith(f"{out}: published no longer: wbcd_calibrated")
    for damage in (lambda file: file.write_text("{"), Path.unlink):
        damage(out / "config.json")
        assert publish(runs / "c", output=out) == 0, "a damaged publication is replaced"


@pytest.fixture(scope="module")
def of_a_paper_and_others(tmp_path_factory):
    """Folders of a run with a paper's experiment, of one with the same problem, and of the leaderboard's."""
    folder, bounds = tmp_path_factory.mktemp("others"), {"targets": ["checkins"]}
    finished(folder / "paper", "paper", {"mnist_logistic": {}}, **bounds)
    finished(folder / "adaptive", "adaptive", {"mnist_adaptive": {}}, **bounds)
    finished(folder / "board", "board", {"mnist_logistic_leaderboard": {"trials": 3}}, **bounds)
    return folder


def test_check_ins_and_formulas_are_those_of_the_papers_figures(of_a_paper_and_others, tmp_path):
    runs, out = of_a_paper_and_others, tmp_path / "out"
    assert (runs / "adaptive/checkins/mnist_adaptive.csv").exists(), "a run by itself has the check-ins it asks for"
    assert [path.stem for path in (runs / "board/checkins").glob("*.csv")] == ["figure_2"]
    assert publish(runs / "paper", output=out) == 0
    for run in ("adaptive", "board"):
        assert publish(runs / run, output=out, options=["--beside"]) == 0
        assert (out / "formulas.csv").read_text() == "paper formulas.csv"
        assert (out / "checkins/mnist_logistic.csv").read_text() == "paper checkins/mnist_logistic.csv"
    assert publish(runs / "board", output=tmp_path / "alone") == 0
    assert (tmp_path / "alone/formulas.csv").read_text() == "board formulas.csv"


def test_a_publication_of_many_runs_is_named_by_their_number(of_a_paper_and_others, tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "LONGEST", len("paper-board"))
    folders = [of_a_paper_and_others / name for name in ("paper", "board", "adaptive")]
    for many, name in ((2, "paper-board"), (3, "3-runs")):
        assert publish(*folders[:many], output=tmp_path / "out") == 0
        assert json.loads((tmp_path / "out/config.json").read_text())["run"] == name


def test_the_leaderboard_is_made_of_what_is_published_and_not_copied(of_a_paper_and_others, tmp_path):
    runs, out = of_a_paper_and_others, tmp_path / "out"
    made = {f"board/leaderboard{end}" for end in (".csv", "_best.csv", ".svg")}
    assert made < held(runs / "board")
    assert publish(runs / "paper", runs / "board", output=out) == 0
    assert not made & held(out)
    plan = RunPlan(load(out / "config.json"), folder=str(out))
    assert {f"{out}/{name}" for name in made} == set(plan.files("leaderboard")) <= set(plan.other_figures())
    assert publish(runs / "adaptive", output=tmp_path / "none") == 0
    assert RunPlan(load(tmp_path / "none/config.json"), folder="none").files("leaderboard") == []


def test_runs_with_different_seeds_are_not_published_together(runs, tmp_path, capsys):
    assert publish(runs / "a", runs / "d", output=tmp_path / "out") == 2
    assert "seed: 7: must be 2023, as in" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_publication_replaces_nothing_but_a_publication(runs, tmp_path, capsys):
    thesis, link, run = tmp_path / "thesis", tmp_path / "link", runs / "c"
    thesis.mkdir()
    (thesis / "config.json").write_text("{}")
    link.symlink_to(runs / "d")
    before = held(tmp_path)
    for output in (thesis, run, runs / "d", link, runs, tmp_path, run / "kept"):
        assert publish(run, output=output) == 2
        assert "--output" in capsys.readouterr().err
        assert held(tmp_path) == before


def test_files_that_config_json_does_not_name_are_not_published(runs, tmp_path):
    run, clean = runs / "c", tmp_path / "clean"
    assert publish(run, output=clean) == 0
    gone = ("tables/gone.csv", "figures/diabetes_linear_M2_R50.svg", "figures/diabetes_linear_M2_R5_batch-per_eps.svg")
    for name in (*gone, "silos/gone/default/heterogeneity.csv", "checkins/gone.csv"):
        (run / name).parent.mkdir(exist_ok=True, parents=True)
        (run / name).write_text("of an earlier run file")
    sign(run)
    assert publish(run, output=tmp_path / "out") == 0
    assert held(tmp_path / "out") == held(clean)


def test_publish_that_is_stopped_at_any_moment_leaves_the_old_or_the_new_whole(runs, tmp_path, monkeypatch):
    out, run = tmp_path / "out", runs / "c"
    assert publish(run, output=out) == 0
    old = held(out)
    (run / "tables/diabetes_linear.csv").write_text("another")
    sign(run)

    class Stopped(BaseException):
        pass

    for name, true in (
        ("shutil.copy2", shutil.copy2),
        ("shutil.rmtree", shutil.rmtree),
        ("pathlib.Path.rename", Path.rename),
    ):
        if name == "pathlib.Path.rename":  # where no system call exchanges two folders
            monkeypatch.setattr(publishing, "_exchanged", lambda *_: False)
        for moment in range(2):
            left = [moment]

            def stopping(*arguments, left=left, true=true, **options):
                if left[0] == 0:
                    raise Stopped
                left[0] -= 1
                return true(*arguments, **options)

            with monkeypatch.context() as patched:
                patched.setattr(name, stopping)
                with contextlib.suppress(Stopped):
                    publish(run, output=out)
            # Killed between the two renames, the former publication lies beside; the next publish brings it back.
            assert name == "pathlib.Path.rename" or out.exists()
            assert held(out) == old if out.exists() else held(tmp_path / ".out.old") == old
    assert publish(run, output=out, options=["--beside"]) == 0
    assert (out / "tables/diabetes_linear.csv").read_text() == "another"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_file_that_changes_while_it_is_published_is_never_published(runs, tmp_path, monkeypatch, capsys):
    copy = shutil.copy2

    def changing(source, target):
        if Path(source).name == "diabetes_linear.csv":
            Path(source).write_text("changed after the check")
        return copy(source, target)

    monkeypatch.setattr(shutil, "copy2", changing)
    assert publish(runs / "c", output=tmp_path / "out") == 2
    assert "diabetes_linear.csv: checksum: differs from its manifest: changed meanwhile" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_all_that_write_or_copy_a_folder_wait_for_each_other(runs, tmp_path, capsys):
    run, out = runs / "c", tmp_path / "out"
    assert publish(run, output=out) == 0
    for folder, words in (
        (run, ["publish", str(run), "--output", str(out)]),
        (out, ["publish", str(run), "--output", str(out)]),
        (run, ["clean", "--all", str(run)]),
        (run, ["decided", "tables", "printed", "--folder", str(run)]),
    ):
        before = held(folder)
        with results_locked(folder):
            assert main(["-q", *words]) == 2
        assert f"{folder}: another command works on this folder: wait for its end" in capsys.readouterr().err
        assert held(folder) == before


def test_own_data_are_not_published(runs, tmp_path, capsys):
    path = runs / "c/config.json"
    config = json.loads(path.read_text())
    config["experiments"]["diabetes_linear"]["dataset"] = {"file": "patients.csv", "target": "readmitted"}
    path.write_text(json.dumps(config))
    assert main(["publish", str(runs / "c"), "--output", str(tmp_path / "out")]) == 2
    assert "experiments.diabetes_linear.dataset.file: must not be own data" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_pair_is_printed_or_written(tmp_path, capsys):
    rows = {"experiment": "e", "algorithm": ["a", "a", "b", "b"], "reading": "", "M": 2, "R": 3, "epsilon": 1.0}
    rows |= {"trial": [0, 1, 0, 1], "stepsize": 1, "clip": 1, "phase_length": 1, "train_loss": 1, "diverged": False}
    for folder in ("tables", "reported"):
        (tmp_path / "run" / folder).mkdir(parents=True)
    file = tmp_path / "run" / "reported" / "e.csv"
    pd.DataFrame(rows | {"test_error": [0.1, 0.2, 0.4, 0.51]}).to_csv(file, index=False)
    pair = ["claims", str(tmp_path / "run"), "--pair", "a", "b"]
    assert main(pair) == 0
    assert "-0.305" in capsys.readouterr().out
    assert main([*pair, "--output", str(tmp_path / "c.csv")]) == 0
    assert pd.read_csv(tmp_path / "c.csv")["difference"].tolist() == [pytest.approx(-0.305)]
    assert main([*pair, "--output", str(file)]) == 2
    assert "must lie outside of the run" in capsys.readouterr().err
    file.unlink()
    assert main(pair) == 2
    assert "run: reported: missing" in capsys.readouterr().err
