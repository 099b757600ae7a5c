"""A folder of results as an RO-Crate: which software made which file from which data, with every file's checksum.

Profile: Process Run Crate 0.5 (https://w3id.org/ro/wfrun/process/0.5). The same folder gives the same bytes.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from silodp.config.errors import project_root
from silodp.config.loading import read_yaml
from silodp.datasets.sources import source_of
from silodp.files import read_json, write_text
from silodp.workflow.contents import PUBLISHED, fate_of, is_publication, manifest, named_files, present
from silodp.workflow.digests import checksum
from silodp.workflow.outputs import MANIFEST
from silodp.workflow.provenance import runs_of

# RO-Crate 1.1 has no term for SHA-256; schema.org has.
_RO_CRATE = "https://w3id.org/ro/crate/1.1"
_CONTEXT = [f"{_RO_CRATE}/context", {"sha256": "http://schema.org/sha256"}]
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_LICENCE = "https://spdx.org/licenses/Apache-2.0"


def renew(folder: Path) -> None:
    """Write a folder's manifest again; ValueError where a table of a publication differs from the manifest."""
    published = is_publication(folder)
    for name, digest in manifest(folder).items() if published else ():
        if fate_of(name) == "kept" and (not (folder / name).is_file() or checksum(folder / name) != digest):
            raise ValueError(f"{folder / name}: checksum: differs from {MANIFEST}: must be as it was published")
    write(folder, published=published)


def write(folder: Path, *, published: bool) -> None:
    """Write the manifest of a finished run, or of a publication; ValueError where a file is missing."""
    required, allowed = named_files(folder, published)
    there = set(present(folder))
    if missing := sorted((required | {"provenance.json"}) - there):
        raise ValueError(f"{folder / missing[0]}: missing: must be there before its checksum is taken")
    files = {name: _file(folder, name) for name in sorted(there & allowed - {MANIFEST})}
    runs = runs_of(read_json(folder / "provenance.json"))
    authors = [person(author) for author in read_yaml(project_root() / "CITATION.cff")["authors"]]
    inputs, actions = [], []
    for run, record in runs.items():
        software = _software(record)
        data = [_data(name, digest) for name, digest in record.get("data_sha256", {}).items()]
        names = (f"tables/{name}.csv" for name in record["config"]["experiments"])
        tables = [files[name] for name in names if name in files]
        action = {"@id": quote(f"#run-{run}"), "@type": "CreateAction", "name": f"run {run}", "result": _ids(tables)}
        action |= {"instrument": _ids([software]), "object": _ids([files["config.json"], *data])}
        about = {"description": "command", "startTime": "started", "endTime": "finished"}
        actions.append(action | {key: record[field] for key, field in about.items() if record.get(field)})
        inputs += [software, *data]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"silodp: results of {', '.join(runs)}",
        "description": "Tables, figures and verdicts of a replication of private federated learning across silos.",
        "datePublished": max(record.get("finished") or "" for record in runs.values()),
        "license": {"@id": _LICENCE},
        "author": _ids(authors),
        "conformsTo": {"@id": _PROFILE},
        "hasPart": _ids([*files.values(), *(entity for entity in inputs if entity["@type"] == "File")]),
        "mentions": _ids(actions),
    }
    graph = [
        {"@id": MANIFEST, "@type": "CreativeWork", "conformsTo": {"@id": _RO_CRATE}, "about": {"@id": "./"}},
        root | (PUBLISHED if published else {}),
        {"@id": _PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {"@id": _LICENCE, "@type": "CreativeWork", "name": "Apache License 2.0", "url": _LICENCE},
        *authors,
        *actions,
        *files.values(),
        # Runs share software and data.
        *{entity["@id"]: entity for entity in inputs}.values(),
    ]
    text = json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=1, sort_keys=True, ensure_ascii=False)
    write_text(text + "\n", folder / MANIFEST)


def _ids(entities: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"@id": entity["@id"]} for entity in entities]


def _file(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    return {
        "@id": quote(name),
        "@type": "File",
        "name": name,
        "contentSize": str(path.stat().st_size),
        "sha256": checksum(path),
    }


def person(author: Mapping[str, str]) -> dict[str, Any]:
    """An author of CITATION.cff, who is a person or an organisation with a name."""
    name = author.get("name") or f"{author['given-names']} {author['family-names']}"
    entity = {"@type": "Organization" if "name" in author else "Person", "name": name}
    return entity | {"@id": author.get("orcid") or quote(f"#{name}")}


def _software(record: Mapping[str, Any]) -> dict[str, Any]:
    version = (record.get("git") or {}).get("commit") or record.get("silodp") or "unknown"
    entity = {"@id": f"#silodp-{version}", "@type": "SoftwareApplication", "name": "silodp", "version": version}
    return entity | {"license": {"@id": _LICENCE}}


def _data(name: str, digest: str) -> dict[str, Any]:
    """A downloaded file; data that come with scikit-learn are part of its locked version."""
    source = source_of(name)
    entity = {"@id": f"#{quote(name)}", "@type": "CreativeWork", "name": name}
    if source:
        entity |= {"@id": source.address, "@type": "File", "usageInfo": source.licence}
    return entity | {"sha256": digest.removeprefix("sha256:")}
