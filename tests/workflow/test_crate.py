"""The RO-Crate of a run, opened again by the library that others would open it with."""

import json

import pytest
from rocrate.rocrate import ROCrate

from silodp.cli import main
from silodp.workflow.crate import NAME

RECORD = {
    "run": "tiny",
    "silodp": "0.1.0",
    "git": {"commit": "c0ffee", "dirty": False},
    "packages": {"snakemake": "9.27.1"},
    "data_sha256": {"insurance/insurance.csv": "sha256:" + "ab" * 32},
    "command": "make reproduce RUN=tiny",
    "started": "2026-01-02T03:04:05Z",
    "finished": "2026-01-02T03:05:05Z",
}


def finished(folder, record=RECORD, without=None):
    """A finished run's files."""
    texts = {
        "provenance.json": json.dumps(record),
        "config.json": "{}",
        "report.html": "<html>",
        "claims.csv": "claim\n",
    }
    texts |= {"tables/a b.csv": "x\n", "figures/a_M2_R5.png": "", "trials/a/b.parquet": ""}
    texts |= {"source/Snakefile": "rule all:\n", "source/workflow/rules/data.smk": ""}
    for name, text in texts.items():
        if name != without:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def test_a_crate_is_opened_again_and_names_workflow_inputs_and_results(tmp_path):
    assert main(["crate", str(finished(tmp_path / "run"))]) == 0
    crate = ROCrate(tmp_path / "run")
    assert crate.mainEntity.id == "source/Snakefile"
    assert set(crate.mainEntity.type) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    assert crate.mainEntity["programmingLanguage"]["name"] == "Snakemake"
    assert "https://w3id.org/ro/wfrun/workflow/0.5" in {one.id for one in crate.root_dataset["conformsTo"]}
    (action,) = crate.root_dataset["mentions"]
    assert action.type == "CreateAction"
    assert action["instrument"] is crate.mainEntity
    assert (action["startTime"], action["endTime"]) == (RECORD["started"], RECORD["finished"])
    assert action["description"] == "make reproduce RUN=tiny"
    results = {one.id for one in action["result"]}
    assert results == {"report.html", "claims.csv", "tables/a%20b.csv", "figures/a_M2_R5.png"}
    config, data = action["object"]
    assert config.id == "config.json"
    assert config["exampleOfWork"] is crate.mainEntity["input"]
    assert data["sha256"] == "ab" * 32
    assert data.id.startswith("https://")
    # Every file that it names is there: the library would warn of others when it copies them.
    crate.write(tmp_path / "copy")
    assert (tmp_path / "copy" / "tables" / "a b.csv").read_text() == "x\n"


def test_the_same_run_is_the_same_bytes(tmp_path):
    texts = []
    for name in ("a", "b"):
        main(["crate", str(finished(tmp_path / name))])
        texts.append((tmp_path / name / NAME).read_bytes())
    assert texts[0] == texts[1]


def test_a_publication_of_several_runs_has_an_action_for_each(tmp_path):
    runs = {name: RECORD | {"run": name, "command": f"make {name}"} for name in ("convex", "nonconvex")}
    main(["crate", str(finished(tmp_path, {"runs": runs}))])
    actions = ROCrate(tmp_path).root_dataset["mentions"]
    assert [one["description"] for one in actions] == ["make convex", "make nonconvex"]
    assert actions[0]["object"][1] is actions[1]["object"][1]


@pytest.mark.parametrize("lacking", ["provenance.json", "config.json", "source/Snakefile"])
def test_half_a_run_is_refused_in_one_line(tmp_path, capsys, lacking):
    assert main(["crate", str(finished(tmp_path, without=lacking))]) == 2
    assert f"{lacking}: missing: must be a finished run's" in capsys.readouterr().err
    assert not (tmp_path / NAME).exists()
