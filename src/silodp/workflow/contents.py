"""What a folder of results holds: the files that its configuration names, and a manifest with their checksums.

The manifest is the folder's RO-Crate, which `silodp.workflow.crate` writes after all other files.
"""

import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from silodp.config.errors import ConfigError, suggest_name
from silodp.experiments.validation import load
from silodp.files import read_json, reading
from silodp.workflow.digests import checksum
from silodp.workflow.outputs import MANIFEST, OUTPUTS, Output, Outputs

# Of the manifest's root entity: `publish` sets it, and only such a folder is replaced by the next publication.
PUBLISHED = {"creativeWorkStatus": "Published"}
# Files of a run beside its outputs.
TRACES = ("logs/*", "run.yaml")


def output_of(name: str) -> Output | None:
    """The kind of output that a file of this path is."""
    return next((output for output in OUTPUTS if fnmatchcase(name, output.glob)), None)


def fate_of(name: str) -> str | None:
    """What a publication does with a file; None for a file of no run."""
    output = output_of(name)
    return output.fate if output else "run" if any(fnmatchcase(name, trace) for trace in TRACES) else None


def results_folder(run: str) -> Path:
    """The folder `run`, or the results folder of a run of this name."""
    for path in (Path(run), Path("results") / run):
        if run and path.is_dir():
            return path
    beside = suggest_name(run, (path.name for path in Path("results").glob("*")))
    raise ConfigError(f"command line: run: {run!r}: must be a results folder or a run's name{beside}")


def entities(folder: Path) -> dict[str, dict[str, Any]]:
    """Entities of a folder's manifest by their `@id`; empty where the folder has no manifest."""
    found = read_json(folder / MANIFEST)
    with reading(folder / MANIFEST):
        return {entity["@id"]: entity for entity in found["@graph"]} if found else {}


def manifest(folder: Path) -> dict[str, str]:
    """SHA-256 by file, as the folder's manifest has them."""
    with reading(folder / MANIFEST):
        # Data files from the web have no size there.
        return {unquote(key): entity["sha256"] for key, entity in entities(folder).items() if "contentSize" in entity}


def refuse_own_data(folder: Path) -> None:
    """ValueError for a run of a user's own data: its seed gives its noise, and its tables have errors without noise."""
    for name, config in (read_json(folder / "config.json").get("experiments") or {}).items():
        if isinstance(config.get("dataset"), dict) and config["dataset"].get("file"):
            allowed = "must not be own data, which stay with their owner"
            raise ValueError(f"{folder / 'config.json'}: experiments.{name}.dataset.file: {allowed}")


def is_publication(folder: Path) -> bool:
    return PUBLISHED.items() <= entities(folder).get("./", {}).items()


def present(folder: Path) -> list[str]:
    """Every file below a folder but logs, as paths from there."""
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for name in files if not name.startswith("logs/"))


def named_files(folder: Path, published: bool) -> tuple[set[str], set[str]]:
    """Files that a folder's config.json names: those that must be there, and those that may be there."""
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder}: config.json: missing: must be a folder of results")
    run = Outputs(load(folder / "config.json"), folder=str(folder), published=published)
    required, more = (
        {Path(file).relative_to(folder).as_posix() for file in files}
        for files in (run.deliverables(), [*run.bounds(), *run.checkins()])
    )
    if published:
        added = {output.pattern for output in OUTPUTS if output.fate == "added"}
        return set(), {name for name in required | more if fate_of(name) != "run"} | added
    return required - {MANIFEST}, required | more


def unexpected_files(folder: Path) -> list[str]:
    """Files of no experiment, setting or reading of config.json: no figure, table or page reads them."""
    _, allowed = named_files(folder, is_publication(folder))
    return [name for name in present(folder) if name not in allowed | {MANIFEST, "run.yaml"}]


def problems(folder: Path) -> list[str]:
    checksums = manifest(folder)
    if not checksums:
        return [f"{folder / MANIFEST}: missing: the rebuild did not come to its end"]
    lines = []
    for name, digest in sorted(checksums.items()):
        if not (folder / name).is_file():
            lines.append(f"{folder / name}: missing")
        elif (folder / name).resolve() != folder.resolve() / name:
            lines.append(f"{folder / name}: a link: must be the file itself")
        elif checksum(folder / name) != digest:
            lines.append(f"{folder / name}: checksum: differs from {MANIFEST}: changed after it was made")
    return lines


def added_files(folder: Path) -> list[str]:
    """Files that config.json names and the manifest does not."""
    listed = manifest(folder)
    named = named_files(folder, is_publication(folder))[1] if listed else set()
    return sorted(named & {*present(folder)} - {*listed, MANIFEST})


def verified(folder: Path) -> dict[str, Any]:
    """What `silodp verify` tells of a folder: number of files, problems and strangers."""
    added = [f"{folder / name}: not in {MANIFEST}: added after it was made" for name in added_files(folder)]
    return {"files": len(manifest(folder)), "problems": problems(folder) + added, "strangers": unexpected_files(folder)}


def leftovers(folder: Path) -> list[str]:
    """Strangers, which an earlier run file left; ConfigError where one is newer than the manifest."""
    names = unexpected_files(folder)
    ended = (folder / MANIFEST).stat().st_mtime if (folder / MANIFEST).is_file() else 0.0
    if newer := [name for name in names if (folder / name).stat().st_mtime > ended]:
        raise ConfigError(
            f"{folder / newer[0]}: newer than {MANIFEST}, and config.json does not name it: finish the rebuild first, "
            "or remove it by hand"
        )
    return names


def removable(folder: Path) -> list[str]:
    """The whole folder, "."; ConfigError where it is not a run, or holds anything that is not a run's."""
    others = [name for name in present(folder) if not fate_of(name)]
    for wrong, reason in (
        (folder.is_symlink(), "is a link"),
        (not (folder / "logs").is_dir() and not (folder / "config.json").is_file(), "has neither logs nor config.json"),
        (others, f"holds {(others or [''])[0]}"),
        (is_publication(folder), "is a publication"),
    ):
        if wrong:
            allowed = "must be a folder with a run and nothing else"
            raise ConfigError(f"command line: run: {str(folder)!r}: {reason}: {allowed}")
    return ["."]


def remove(folder: Path, names: list[str]) -> None:
    """Remove files of a folder and what is empty then; "." is the folder itself."""
    if names == ["."]:
        shutil.rmtree(folder)
        return
    for name in names:
        (folder / name).unlink()
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
