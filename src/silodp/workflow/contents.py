"""What a folder of results holds: what its config.json asks for, their checksums, and what is left of others."""

import fnmatch
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from silodp.config.loading import PLUGIN_COPIES
from silodp.experiments.validation import load
from silodp.files import read_json, write_text
from silodp.workflow.digests import digest
from silodp.workflow.plan import Plan
from silodp.workflow.provenance import file_digest

# Written last: SHA-256 of every file of a finished run.
CHECKSUMS = "checksums.json"
# Written by `publish` only: a folder that has it is a publication, which the next one may replace.
PUBLICATION = "publication.json"
# Of a run's folder: what figures, page and verdicts are made from, and the figures themselves.
KEPT = (
    "config.json",
    "provenance.json",
    "privacy.csv",
    "by_round.csv",
    "tables/*.csv",
    "audit.csv",
    "formulas.csv",
    "reported/*.csv",
    # Of the formats of a figure the one that is text: small, and an edit changes few bytes of the history.
    "figures/*.svg",
    *(f"{folder}/*.{suffix}" for folder in ("bounds", "checkins") for suffix in ("csv", "svg")),
    "claims.csv",
    "silos/*/*/heterogeneity.csv",
    "source/Snakefile",
    "source/workflow/rules/*.smk",
    f"{PLUGIN_COPIES}/*.py",
)
# Made again in a publication, from what it holds.
REMADE = ("comparisons.csv", "report.html", "ro-crate-metadata.json")


@dataclass
class Folder:
    """A run's results or a publication, seen through the plan of its config.json.

    Attributes:
        path: the folder.
        plan: names of what belongs there; ValueError (ConfigError) where config.json cannot be read as a run file.
        published: whether it is a publication.
    """

    path: Path
    plan: Plan = field(init=False)
    published: bool = field(init=False)

    def __post_init__(self) -> None:
        if not (self.path / "config.json").is_file():
            raise ValueError(f"{self.path}: config.json: missing: must be a folder of results")
        self.published = (self.path / PUBLICATION).is_file()
        self.plan = Plan(load(self.path / "config.json"), folder=str(self.path), published=self.published)

    def expected(self) -> list[str]:
        """Files that must be there, as paths below the folder."""
        own = [self._below(file) for file in self.plan.deliverables()]
        return [name for name in own if not self.published or kept(name) or name in REMADE]

    def _below(self, file: str) -> str:
        return Path(file).relative_to(self.path).as_posix()

    def allowed(self) -> set[str]:
        """Files that may be there beside: bounds and check-ins, which can be asked for at any time."""
        beside = {self._below(file) for file in (*self.plan.bounds(), *self.plan.checkins())}
        return beside | {CHECKSUMS, PUBLICATION, "README.md"}

    def present(self) -> list[str]:
        """Every file below the folder but logs."""
        files = (path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if not path.is_dir())
        return sorted(name for name in files if not name.startswith("logs/"))

    def strangers(self) -> list[str]:
        """Files that belong to no experiment, setting or reading of config.json; nothing reads them."""
        known = {*self.expected(), *self.allowed()}
        return [name for name in self.present() if name not in known and not name.startswith("source/")]

    def publishable(self) -> list[str]:
        """Files that `publish` copies."""
        known = {*self.expected(), *self.allowed()}
        return [name for name in self.present() if (name in known or name.startswith("source/")) and kept(name)]


def kept(name: str) -> bool:
    """Whether a file, by its path below a run's folder, is part of a publication."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in KEPT)


def checksums(folder: Path, names: Iterable[str]) -> dict[str, str | None]:
    """SHA-256 by file; None for a file that is not there."""
    return {name: file_digest(folder / name) for name in sorted(names)}


def write_checksums(path: Path, about: dict[str, Any], found: dict[str, str | None]) -> None:
    """A record of checksums, as `problems` reads it."""
    write_text(json.dumps(about | {"files": found}, indent=1, sort_keys=True) + "\n", path)


def problems(folder: Folder, *, drawn: bool = True) -> list[str]:
    """What is wrong with a folder of results, one line each: completeness, checksums, provenance.

    Args:
        folder: the results.
        drawn: whether a figure that is not there is a problem too; where they are drawn again it is none, so that a
            version with one more kind of figure can publish the runs of an earlier one.
    """
    path = folder.path
    present = set(folder.present())
    asked = [name for name in folder.expected() if drawn or not name.startswith("figures/")]
    found = [f"{path / name}: missing" for name in asked if name not in present]
    record = PUBLICATION if folder.published else CHECKSUMS
    known: dict[str, Any] = {}
    try:
        known = read_json(path / record)
        found += [] if known else [f"{path / record}: missing: the rebuild did not come to its end"]
    except ValueError as error:
        found.append(str(error))
    for name, wanted in known.get("files", {}).items():
        if name in present and file_digest(path / name) != wanted:
            found.append(f"{path / name}: checksum: differs from {record}: changed after it was made")
    if not folder.published and known:
        unknown = sorted(set(folder.expected()) - set(known.get("files", {})))
        found += [f"{path / name}: checksum: not in {record}" for name in unknown if name in present]
    return found + _disagreements(path)


def _disagreements(path: Path) -> list[str]:
    """Where provenance.json tells of another configuration than config.json; that of several runs has one for each."""
    try:
        config, provenance = read_json(path / "config.json"), read_json(path / "provenance.json")
    except ValueError as error:
        return [str(error)]
    if not provenance or "runs" in provenance:
        return []
    place, found = path / "provenance.json", []
    if provenance.get("run") != config.get("run"):
        found.append(f"{place}: run: {provenance.get('run')!r}: config.json has {config.get('run')!r}")
    if provenance.get("config_sha256") != digest(config):
        found.append(f"{place}: config_sha256: {provenance.get('config_sha256')!r}: config.json has {digest(config)}")
    return found
