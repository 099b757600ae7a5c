"""A folder of results: complete and unchanged by its manifest, of one configuration, and removed only by itself.

The manifest is an RO-Crate, opened by the library that others would open it with.
"""

import os
import shutil
from pathlib import Path

import pytest
import yaml
from finished import finished, held, run_file, sign
from rocrate.rocrate import ROCrate
from small import ROOT

from silodp.cli import main
from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.jobs.__main__ import main as run_job
from silodp.workflow.contents import (
    MANIFEST,
    entities,
    fate_of,
    manifest,
    present,
    problems,
    unexpected_files,
    verified,
)
from silodp.workflow.crate import person
from silodp.workflow.digests import checksum
from silodp.workflow.job_digest import RunPlan

STRANGERS = ["figures/wbcd_mlp_M9_R5.png", "tables/gone.csv", "trials/wbcd_mlp/minibatch_sgd/M2_R9/default_0-0.parquet"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("made") / "r7", "r7", {"wbcd_mlp": {}})


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path / "results/r7")


def add_strangers(run):
    for name in STRANGERS:
        write_text("of an earlier run file", run / name)
    sign(run)


def test_finished_run_verifies_by_name_and_by_folder(run, capsys):
    assert main(["verify", str(run), "r7"]) == 0
    assert capsys.readouterr().out == ""
    assert verified(run) == {"files": len(held(run)) - 2, "problems": [], "strangers": []}  # not manifest and log


def test_verify_names_every_missing_or_changed_file(run):
    assert set(manifest(run)) == held(run) - {MANIFEST, "logs/fetch.log"}
    for name in manifest(run):
        path = run / name
        content = path.read_bytes()
        path.unlink()
        assert problems(run) == [f"{path}: missing"]
        path.write_bytes(content + b" ")
        assert problems(run) == [f"{path}: checksum: differs from {MANIFEST}: changed after it was made"]
        path.write_bytes(content)
    assert problems(run) == []


def test_verify_names_a_link_and_a_file_that_was_added(run, tmp_path, capsys):
    (run / "bounds").mkdir()
    (run / "bounds" / "table_1.csv").write_text("check\n")
    table = next((run / "tables").iterdir())
    table.rename(tmp_path / "elsewhere.csv")
    table.symlink_to(tmp_path / "elsewhere.csv")
    (run / "reported").rename(tmp_path / "reported")
    (run / "reported").symlink_to(tmp_path / "reported")
    assert main(["verify", str(run)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"{table}: a link: must be the file itself" in lines
    assert any(line.startswith(str(run / "reported")) and ": a link: " in line for line in lines)
    assert f"{run / 'bounds/table_1.csv'}: not in ro-crate-metadata.json: added after it was made" in lines


@pytest.mark.parametrize(
    ("damage", "code", "line"),
    [
        (lambda run: (run / "tables/wbcd_mlp.csv").write_text("changed"), 1, "tables/wbcd_mlp.csv: checksum: differs"),
        (lambda run: (run / MANIFEST).unlink(), 1, f"{MANIFEST}: missing: the rebuild did not come to its end"),
        (lambda run: (run / MANIFEST).write_text((run / MANIFEST).read_text()[:-9]), 2, f"{MANIFEST}: not JSON"),
        (lambda run: (run / MANIFEST).write_text('{"@graph": [{}]}'), 2, f"{MANIFEST}: file: damaged"),
        (lambda run: write_text("x", run / "tables/x.csv"), 0, "1 files that config.json does not name (tables/x.csv)"),
        (lambda run: (run / "config.json").write_text("{"), 2, "config.json: file: not YAML"),
        (lambda run: (run / "config.json").unlink(), 2, "config.json: missing: must be a folder of results"),
    ],
)
def test_verify_tells_each_damage_in_one_line(run, capsys, damage, code, line):
    damage(run)
    assert main(["verify", "r7"]) == code
    text = capsys.readouterr()
    (only,) = [each for each in (text.out + text.err).splitlines() if " INFO " not in each]
    assert line in only


def test_clean_removes_files_that_config_json_does_not_name(run, capsys):
    before = held(run)
    add_strangers(run)
    made = (run / MANIFEST).stat().st_mtime_ns
    os.utime(run / STRANGERS[0], ns=(made, made))
    assert unexpected_files(run) == STRANGERS
    for dry, left in ((["--dry-run"], before | {*STRANGERS}), ([], before)):
        assert main(["clean", "r7", *dry]) == 0
        assert capsys.readouterr().out.split() == [f"results/r7/{name}" for name in STRANGERS]
        assert held(run) == left
    assert not (run / "trials/wbcd_mlp/minibatch_sgd/M2_R9").exists()
    assert main(["clean", "r7"]) == 0
    assert capsys.readouterr().out == ""


def test_clean_keeps_what_a_rebuild_made_since_the_manifest(run, capsys):
    """config.json names an added experiment only when its rebuild ends; a killed one must not lose its training."""
    add_strangers(run)
    os.utime(run / MANIFEST, (0, 0))
    assert main(["clean", "r7"]) == 2
    assert "finish the rebuild first" in capsys.readouterr().err
    assert held(run) >= {*STRANGERS}
    (run / MANIFEST).unlink()
    for name in STRANGERS:
        os.utime(run / name, (1, 1))
    assert main(["clean", "r7"]) == 2
    assert held(run) >= {*STRANGERS}, "without a manifest every file is newer"


def test_every_file_of_every_run_has_a_kind(tmp_path):
    """So that `clean --all` knows a run by its files, also one that was killed before its config.json."""
    own = tmp_path / "p.csv"
    own.write_text("who,x,y\n" + "".join(f"{silo},{number},{number % 2}\n" for silo in "ab" for number in range(40)))
    assert main(["-q", "init", str(own), "--target", "y", "--silo", "who", "--output", str(tmp_path / "p.yaml")]) == 0
    for file in (tmp_path / "p.yaml", *(ROOT / "config" / f"{name}.yaml" for name in ("paper", "cifar", "certified"))):
        plan = RunPlan(load(file))
        files = [*plan.deliverables(), *plan.bounds(), *plan.checkins()]
        assert [file for file in files if not fate_of(file.removeprefix(f"{plan.folder}/"))] == []
    assert not any(fate_of(name) for name in ("notes.txt", "trials/notes.txt", "thesis/a.csv", "config.yaml"))


@pytest.mark.parametrize("name", ["published", "published-protocols"])
def test_a_publication_holds_the_figures_that_its_plan_names(name):
    folder = ROOT / "results" / name
    plan = RunPlan(load(folder / "config.json"), folder=str(folder))
    named = {file for file in (*plan.files("figures"), *plan.other_figures()) if file.endswith(".svg")}
    assert named == {str(path) for path in folder.rglob("*.svg")}


def test_what_was_kept_before_is_kept():
    """Tables stay as published, figures and pages are made again, decided tables stay beside them."""
    fates = {name: fate_of(name) for name in present(ROOT / "results" / "published")}
    assert {name for name, fate in fates.items() if fate == "added"} == {
        *(f"{table}.csv" for table in ("decided", "decided_means", "decided_power", "decided_verdicts", "gate")),
        "README.md",
    }
    assert {Path(name).suffix for name, fate in fates.items() if fate == "remade"} == {".svg", ".csv", ".html"}
    assert {fate for name, fate in fates.items() if name.startswith(("tables/", "losses/", "silos/"))} == {"kept"}


def test_clean_all_removes_a_run_of_replicate_and_a_killed_run(run, tmp_path):
    assert main(["-q", "replicate", "nonconvex-8", "--trials", "2", "--dry-run"]) == 0
    figure = tmp_path / "results/figure-nonconvex-8-2-trials"
    assert held(figure) == {"run.yaml"}
    finished(figure, figure.name, {"wbcd_mlp": {}})
    (run / "config.json").unlink()
    assert main(["clean", "--all", "--dry-run", figure.name, "r7"]) == 0
    assert figure.exists()
    assert main(["clean", "--all", figure.name, "r7"]) == 0
    assert not figure.exists()
    assert not run.exists()


def test_clean_all_removes_nothing_but_a_runs_folder(run, tmp_path, capsys):
    run_file(tmp_path / "config/default.yaml", "x", {"wbcd_mlp": {}})
    assert main(["-q", "publish", "results/r7", "--output", "results/kept"]) == 0
    write_text("mine", tmp_path / "results/mixed/notes.txt")
    write_text("", tmp_path / "results/mixed/logs/a.log")
    (tmp_path / "results/link").symlink_to(run)
    before = held(tmp_path)
    for words in ([""], ["results"], ["r7", ""], ["."], ["config"], ["kept"], ["x"], ["mixed"], ["link"]):
        assert main(["clean", "--all", *words]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
        assert held(tmp_path) == before


def test_crate_names_software_inputs_and_results(run, tmp_path):
    opened = ROCrate(run)
    root = opened.root_dataset
    assert root["conformsTo"].id == "https://w3id.org/ro/wfrun/process/0.5"
    (action,) = root["mentions"] if isinstance(root["mentions"], list) else [root["mentions"]]
    assert action.type == "CreateAction"
    (software,) = action["instrument"]
    assert (software["name"], software["version"]) == ("silodp", "abc")
    assert (action["startTime"], action["endTime"]) == ("2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z")
    assert action["description"] == "make r7"
    assert [result.id for result in action["result"]] == ["tables/wbcd_mlp.csv"]
    config, data = action["object"]
    assert config.id == "config.json"
    assert data["sha256"] == "ab" * 32
    assert data.id.startswith("https://")
    # Every file that the crate names is there: the library copies them all.
    opened.write(tmp_path / "copy")
    for name, digest in manifest(run).items():
        assert checksum(tmp_path / "copy" / name) == digest


def test_same_run_gives_the_same_bytes(run):
    before = (run / MANIFEST).read_bytes()
    assert run_job(["crate", f"folder={run}"]) == 0
    assert (run / MANIFEST).read_bytes() == before


def test_crate_of_a_run_with_a_missing_file_is_refused(run, capsys):
    (run / "privacy.csv").unlink()
    assert run_job(["crate", f"folder={run}"]) == 2
    assert "privacy.csv: missing: must be there" in capsys.readouterr().err


def test_authors_are_those_of_the_citation(run):
    authors = yaml.safe_load((ROOT / "CITATION.cff").read_text())["authors"]
    for folder in (run, *(ROOT / "results").glob("published*")):
        known = entities(folder)
        assert [known[author["@id"]] for author in known["./"]["author"]] == [person(author) for author in authors]
    ada = {"given-names": "Ada", "family-names": "Byron", "orcid": "https://orcid.org/0000-0000-0000-0000"}
    assert person(ada) == {"@id": ada["orcid"], "@type": "Person", "name": "Ada Byron"}


def test_crate_of_a_publication_refuses_a_changed_table_and_takes_a_new_figure(run, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["-q", "publish", str(run), "--output", str(out)]) == 0
    (out / "figures/wbcd_mlp_M2_R5.svg").write_text("drawn again")
    assert main(["verify", str(out)]) == 1
    assert run_job(["crate", f"folder={out}"]) == 0
    assert main(["verify", str(out)]) == 0
    (out / "tables/wbcd_mlp.csv").write_text("changed")
    assert run_job(["crate", f"folder={out}"]) == 2
    assert "tables/wbcd_mlp.csv: checksum: differs" in capsys.readouterr().err
    assert main(["verify", str(out)]) == 1


@pytest.mark.parametrize("folder", sorted((ROOT / "results").glob("published*")), ids=lambda folder: folder.name)
def test_every_published_table_has_its_figures(folder):
    """A merge once lost 41 of them, and a manifest made anew did not miss them."""
    drawn = {file.name.partition("_M")[0] for file in (folder / "figures").glob("*_M*_R*.svg")}
    assert {file.stem for file in (folder / "tables").glob("*.csv")} <= drawn
