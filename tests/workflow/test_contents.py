"""What a run's folder holds: complete, unchanged, of one configuration; what is not is found, and can be removed."""

import contextlib
import json
import shutil

import pytest
from finished import finished, held, sign

from silodp.cli import main
from silodp.files import write_text
from silodp.verdicts.claims.base import RunFolder
from silodp.workflow.contents import PUBLICATION, Folder, problems


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("made") / "r7", "r7", {"wbcd_mlp": {}})


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path / "results/r7")


STRANGERS = ("tables/gone.csv", "trials/wbcd_mlp/minibatch_sgd/M2_R9/default_0-0.parquet", "figures/wbcd_mlp_M9_R5.png")


def strange(run):
    for name in STRANGERS:
        write_text("of an earlier run file", run / name)


def test_a_finished_run_verifies_by_name_and_by_folder(run, capsys):
    assert main(["verify", "r7"]) == 0
    assert main(["verify", str(run), "r7"]) == 0
    assert capsys.readouterr().out == ""


def test_every_single_file_that_is_missing_or_changed_is_named(run, capsys):
    seen = Folder(run)
    assert {"source/Snakefile", "source/workflow/rules/report.smk"} <= set(seen.expected())
    for name in seen.expected():
        path = run / name
        content = path.read_bytes()
        for damage in (None, content[:-1], content[:-1] + b" "):
            path.unlink()
            if damage is not None:
                path.write_bytes(damage)
            kind = "missing" if damage is None else "checksum"
            assert any(line.startswith(f"{run / name}: {kind}") for line in problems(seen))
            path.write_bytes(content)
    assert problems(seen) == []
    (run / "config.json").write_text("{")
    assert main(["verify", "r7"]) == 2
    assert "r7/config.json: file: not YAML" in capsys.readouterr().err


def test_provenance_of_another_configuration_is_found(run, capsys):
    record = json.loads((run / "provenance.json").read_text())
    write_text(json.dumps(record | {"config_sha256": "0" * 64, "run": "r8"}), run / "provenance.json")
    sign(run)
    assert main(["verify", "r7"]) == 1
    said = capsys.readouterr().out
    assert "provenance.json: run: 'r8': config.json has 'r7'" in said
    assert "provenance.json: config_sha256: " in said


def test_a_rebuild_that_did_not_end_does_not_verify(run, capsys):
    (run / "checksums.json").unlink()
    assert main(["verify", "r7"]) == 1
    assert "the rebuild did not come to its end" in capsys.readouterr().out


def test_a_publication_verifies_too(run, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["publish", str(run), "--output", str(out)]) == 0
    assert main(["verify", str(out)]) == 1
    made_again = ("comparisons.csv", "report.html", "ro-crate-metadata.json")
    assert capsys.readouterr().out == "".join(f"{out / name}: missing\n" for name in made_again)
    for name in made_again:
        write_text("made again", out / name)
    assert main(["verify", str(out)]) == 0
    (out / "tables/wbcd_mlp.csv").write_text("changed")
    assert main(["verify", str(out)]) == 1
    assert "tables/wbcd_mlp.csv: checksum: differs from publication.json" in capsys.readouterr().out


def test_strangers_are_told_in_one_line_and_removed_by_clean_alone(run, capsys):
    before = held(run)
    strange(run)
    assert main(["verify", "r7"]) == 0
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "WARNING" in one]
    assert "3 files of nothing in config.json (figures/wbcd_mlp_M9_R5.png, " in line
    assert main(["clean", "--dry-run", "r7"]) == 0
    assert held(run) == before | set(STRANGERS)
    assert main(["clean", "r7"]) == 0
    assert held(run) == before
    assert not (run / "trials/wbcd_mlp/minibatch_sgd/M2_R9").exists()
    assert main(["clean", "r7"]) == 0
    assert held(run) == before


def test_verify_and_clean_say_the_same_as_json(run, capsys):
    def told(*words, code=0):
        assert main([*words, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    files = len(Folder(run).expected())
    assert told("verify", "r7") == {"results/r7": {"files": files, "problems": [], "strangers": []}}
    strange(run)
    (run / "privacy.csv").unlink()
    (found,) = told("verify", "r7", code=1).values()
    assert found["problems"] == ["results/r7/privacy.csv: missing"]
    assert found["strangers"] == sorted(STRANGERS)
    assert told("clean", "--dry-run", "r7") == {"dry_run": True, "removed": {"results/r7": sorted(STRANGERS)}}
    assert told("clean", "r7")["removed"] == {"results/r7": sorted(STRANGERS)}
    assert told("clean", "r7")["removed"] == {"results/r7": []}
    assert told("clean", "--all", "r7")["removed"] == {"results/r7": ["."]}
    assert not run.exists()


def test_claims_and_page_do_not_read_a_removed_experiments_tables(run):
    shutil.copy(run / "tables/wbcd_mlp.csv", run / "tables/gone.csv")
    for name in ("tables/gone.csv", "reported/gone.csv", "checkins/gone.csv"):
        write_text("a,b\n1,2\n", run / name)
        assert RunFolder(run).table(name) is None
    write_text("a,b\n1,2\n", run / "checkins/figure_2.csv")
    assert RunFolder(run).table("checkins/figure_2.csv") is not None


@pytest.mark.parametrize(
    "words", [[], [""], ["results"], ["results/r7", ""], ["."], ["config"], ["results/kept"], ["x"]]
)
def test_clean_all_removes_a_runs_own_folder_and_nothing_else(run, tmp_path, words):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/default.yaml").write_text("run: x")
    kept = shutil.copytree(run, tmp_path / "results/kept")
    (kept / PUBLICATION).write_text("{}")
    before = held(tmp_path)
    with contextlib.suppress(SystemExit):  # by the parser, where no run is named
        assert main(["clean", "--all", *words]) == 2
    assert held(tmp_path) == before
    assert main(["clean", "--all", "r7"]) == 0
    assert not run.exists()
    assert kept.exists()


def test_clean_all_refuses_links_and_folders_with_other_things(run, tmp_path, capsys):
    (run / "notes.txt").write_text("mine")
    (tmp_path / "results/link").symlink_to(run)
    assert main(["clean", "--all", "r7"]) == 2
    assert "holds notes.txt: must be a folder with a run and nothing else" in capsys.readouterr().err
    (run / "notes.txt").unlink()
    assert main(["clean", "--all", "link"]) == 2
    assert run.exists()
