"""The manifest as an RO-Crate, opened by the library that others would open it with."""

import shutil

import pytest
import yaml
from finished import finished
from rocrate.rocrate import ROCrate
from small import ROOT

from silodp.cli import main
from silodp.workflow.contents import MANIFEST, entities, manifest
from silodp.workflow.crate import person
from silodp.workflow.digests import checksum


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("made") / "my-run", "my-run", {"wbcd_mlp": {}})


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "my-run")


def test_crate_names_software_inputs_and_results(run, tmp_path):
    opened = ROCrate(run)
    root = opened.root_dataset
    assert root["conformsTo"].id == "https://w3id.org/ro/wfrun/process/0.5"
    (action,) = root["mentions"] if isinstance(root["mentions"], list) else [root["mentions"]]
    assert action.type == "CreateAction"
    (software,) = action["instrument"]
    assert (software["name"], software["version"]) == ("silodp", "abc")
    assert (action["startTime"], action["endTime"]) == ("2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z")
    assert action["description"] == "make my-run"
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
    assert main(["crate", str(run)]) == 0
    assert (run / MANIFEST).read_bytes() == before


def test_crate_of_a_run_with_a_missing_file_is_refused(run, capsys):
    (run / "privacy.csv").unlink()
    assert main(["crate", str(run)]) == 2
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
    assert main(["crate", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    (out / "tables/wbcd_mlp.csv").write_text("changed")
    assert main(["crate", str(out)]) == 2
    assert "tables/wbcd_mlp.csv: checksum: differs" in capsys.readouterr().err
    assert main(["verify", str(out)]) == 1
