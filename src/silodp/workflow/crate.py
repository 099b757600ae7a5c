"""A run's folder as an RO-Crate: ro-crate-metadata.json says in linked data what workflow made which file from what.

Profile: Workflow Run Crate 0.5 (https://w3id.org/ro/wfrun/workflow/0.5). Nothing is asked of the network.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from silodp.datasets.sources import source_of
from silodp.files import read_json, write_text

NAME = "ro-crate-metadata.json"
WORKFLOW = "source/Snakefile"

# What a run makes for readers, and what each file is.
RESULTS = {
    "report.html": "the report page, on one page for any browser",
    "claims.csv": "a verdict for every claim of the papers",
    "privacy.csv": "delivered and claimed epsilon of every private row",
    "by_round.csv": "delivered epsilon so far, round by round",
    "audit.csv": "lower bounds on epsilon from canary records",
    "comparisons.csv": "paired differences of test error, with intervals",
    "formulas.csv": "what the papers' noise formulas deliver",
    "tables/*.csv": "test errors by algorithm, setting and epsilon",
    "reported/*.csv": "one row a trial behind the default rows",
    "silos/*/*/heterogeneity.csv": "how heterogeneous the silos are",
    "bounds/*.*": "the papers' bounds held against runs",
    "checkins/*.*": "random check-ins against other amplification",
    "figures/*.*": "figures",
}
_FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
_LICENCE = "https://spdx.org/licenses/Apache-2.0"


def write(folder: Path) -> None:
    """Write the crate's description of a finished run, or of a publication of several.

    Raises ValueError where the run's record or its workflow is not in the folder.
    """
    record = read_json(folder / "provenance.json")
    for name in ("config.json", WORKFLOW):
        if not record or not (folder / name).is_file():
            raise ValueError(f"{folder / (name if record else 'provenance.json')}: missing: must be a finished run's")
    runs = record.get("runs") or {record["run"]: record}
    crate = ROCrate(version="1.1")
    _describe_root(crate, runs)
    workflow = _workflow(crate, folder, next(iter(runs.values())))
    config = _file(crate, folder, "config.json", "every option of the run")
    config["exampleOfWork"] = workflow["input"]
    about = _file(crate, folder, "provenance.json", "code, lock, machine, data and invocations of the run")
    results = [
        _file(crate, folder, path.relative_to(folder).as_posix(), text)
        for pattern, text in RESULTS.items()
        for path in sorted(folder.glob(pattern))
    ]
    actions = [_action(crate, name, one, workflow, [config, *_data(crate, one)], results) for name, one in runs.items()]
    about["about"] = actions
    crate.root_dataset["mentions"] = actions
    write_text(
        json.dumps(crate.metadata.generate(), indent=1, sort_keys=True, ensure_ascii=False) + "\n", folder / NAME
    )


def _describe_root(crate: ROCrate, runs: Mapping[str, Mapping[str, Any]]) -> None:
    root = crate.root_dataset
    names = ", ".join(runs)
    crate.name = f"silodp: results of {names}"
    crate.description = (
        f"Tables, figures and verdicts of the run {names} of silodp, a replication of differentially private federated "
        "learning across silos."
    )
    crate.license = crate.add(
        ContextEntity(crate, _LICENCE, {"@type": "CreativeWork", "name": "Apache License 2.0", "url": _LICENCE})
    )
    finished = [one["finished"] for one in runs.values() if one.get("finished")]
    if finished:
        root["datePublished"] = max(finished)
    for place, name in _PROFILES.items():
        version = place.rpartition("/")[2]
        profile = {"@type": "CreativeWork", "name": name, "version": version}
        root.append_to("conformsTo", crate.add(ContextEntity(crate, place, profile)))


def _workflow(crate: ROCrate, folder: Path, record: Mapping[str, Any]) -> Entity:
    """The Snakefile with its rule files, and its one parameter."""
    version = (record.get("packages") or {}).get("snakemake")
    workflow = crate.add_workflow(dest_path=WORKFLOW, lang="snakemake", lang_version=version, main=True)
    commit = (record.get("git") or {}).get("commit")
    told = {"name": "silodp", "license": {"@id": _LICENCE}, "version": commit or record["silodp"]}
    for key, value in told.items():
        workflow[key] = value
    options = {
        "@type": "FormalParameter",
        "name": "run file",
        "additionalType": "File",
        "description": "experiments and their options",
        "conformsTo": {"@id": "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"},
    }
    workflow["input"] = crate.add(ContextEntity(crate, "#run-file", options))
    parts = [
        _file(crate, folder, path.relative_to(folder).as_posix(), "rules of the workflow", "text/plain")
        for path in sorted(folder.glob("source/workflow/rules/*.smk"))
    ]
    if parts:
        workflow["hasPart"] = parts
    return workflow


def _file(crate: ROCrate, folder: Path, name: str, text: str, kind: str | None = None) -> Entity:
    path = folder / name
    known = {"name": name, "description": text, "contentSize": str(path.stat().st_size)}
    kind = kind or _FORMATS.get(path.suffix)
    return crate.add_file(dest_path=name, properties=known | ({"encodingFormat": kind} if kind else {}))


def _data(crate: ROCrate, record: Mapping[str, Any]) -> list[Entity]:
    """The downloaded files of a run; data that come with scikit-learn are part of its locked version."""
    found = []
    for name, checksum in (record.get("data_sha256") or {}).items():
        about = {"name": name, "sha256": checksum.removeprefix("sha256:")}
        source = source_of(name)
        if source is None:
            found.append(crate.add(ContextEntity(crate, f"#{name}", {"@type": "File", **about})))
            continue
        about |= {"contentSize": str(source.size), "version": source.version, "usageInfo": source.licence}
        found.append(crate.get(source.address) or crate.add_file(source.address, properties=about))
    return found


def _action(
    crate: ROCrate,
    name: str,
    record: Mapping[str, Any],
    workflow: Entity,
    inputs: list[Entity],
    results: list[Entity],
) -> Entity:
    told = {
        "@type": "CreateAction",
        "name": f"run {name}",
        "description": record.get("command"),
        "startTime": record.get("started"),
        "endTime": record.get("finished"),
        "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
    }
    action = crate.add(
        ContextEntity(crate, f"#run-{name}", {key: value for key, value in told.items() if value is not None})
    )
    action["instrument"], action["object"], action["result"] = workflow, inputs, results
    return action
