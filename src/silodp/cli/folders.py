"""Subcommands on folders of results: verify, clean, checksums."""

import argparse
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from silodp.config.errors import ConfigError

log = logging.getLogger("silodp")

# What stands at the top of a run's folder; with anything else beside it the folder is not removed as a whole.
OF_A_RUN = {
    *(
        "audit",
        "bounds",
        "by_round",
        "by_round.csv",
        "checkins",
        "data",
        "figures",
        "logs",
        "privacy",
        "reported",
        "selection",
        "silos",
        "source",
    ),
    *(
        "tables",
        "trials",
        "audit.csv",
        "checksums.json",
        "claims.csv",
        "comparisons.csv",
        "config.json",
        "formulas.csv",
    ),
    *("formulas.csv", "privacy.csv", "provenance.json", "report.html", "ro-crate-metadata.json"),
}


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("verify", verify, "check a finished run: every file there, unchanged, and from one configuration")
    sub.add_argument("run", nargs="+", help="run's name or results folder, as in results/default")
    sub.add_argument("--json", action="store_true", help="print JSON")

    sub = add("clean", clean, "remove what a run's configuration no longer names, or the whole run")
    sub.add_argument("run", nargs="+", help="run's name or results folder, as in results/default")
    sub.add_argument("--all", action="store_true", help="remove the run's whole folder")
    sub.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    sub.add_argument("--json", action="store_true", help="print JSON")

    sub = add("checksums", checksums, "record the checksums of a finished run's files")
    sub.add_argument("run", help="run's name or results folder, as in results/default")


def verify(options: argparse.Namespace) -> int:
    """Check finished runs: exit code 0 where every file is there, has its checksum, and provenance agrees; else 1.

    Prints a line for each thing that is wrong; as JSON, by folder, also how many files belong there and those of no
    experiment in config.json.
    """
    from silodp.workflow.contents import Folder, problems

    told = {}
    for folder in [_folder(run) for run in options.run]:
        seen = Folder(folder)
        found, strangers, files = problems(seen), seen.strangers(), len(seen.expected())
        told[str(folder)] = {"files": files, "problems": found, "strangers": strangers}
        if options.json:
            continue
        for line in found:
            print(line)
        if strangers:
            log.warning("%s", _left(folder, strangers))
        if not found:
            log.info("%s: %d files, all as they were made", folder, files)
    if options.json:
        print(json.dumps(told, indent=1))
    return 1 if any(one["problems"] for one in told.values()) else 0


def clean(options: argparse.Namespace) -> None:
    """Remove files of experiments, settings and readings that a run's config.json no longer names; or the whole run.

    Only a run's own folder is ever touched, and never a publication. JSON holds by folder what was (or would be)
    removed; "." is the folder itself.
    """
    from silodp.workflow.contents import Folder

    said = "would be removed" if options.dry_run else "removed"
    # All are looked at before the first is touched.
    folders = [_own_folder(run) if options.all else _folder(run) for run in options.run]
    chosen = [(folder, [] if options.all else Folder(folder).strangers()) for folder in folders]
    for folder, strangers in chosen:
        if options.all:
            if not options.dry_run:
                shutil.rmtree(folder)
            log.info("%s: %s", folder, said)
            continue
        for name in strangers:
            if not options.json:
                print(folder / name)
            if not options.dry_run:
                (folder / name).unlink()
        if not options.dry_run:
            _remove_empty(folder)
        log.info("%s: %d files of nothing in config.json %s", folder, len(strangers), said)
    if options.json:
        removed = {str(folder): ["."] if options.all else strangers for folder, strangers in chosen}
        print(json.dumps({"dry_run": options.dry_run, "removed": removed}, indent=1))


def checksums(options: argparse.Namespace) -> None:
    """Record the checksums of a finished run's files, for `silodp verify`."""
    from silodp.workflow import contents

    seen = contents.Folder(_folder(options.run))
    found = contents.checksums(seen.path, seen.expected())
    if missing := [name for name, value in found.items() if value is None]:
        raise ConfigError(f"{seen.path / missing[0]}: missing: must be there before checksums are taken")
    contents.write_checksums(seen.path / contents.CHECKSUMS, {"run": seen.plan.run.run}, found)
    if strangers := seen.strangers():
        log.warning("%s", _left(seen.path, strangers))


def _left(folder: Path, strangers: list[str]) -> str:
    shown = ", ".join(strangers[:3]) + (", …" if strangers[3:] else "")
    return f"{folder}: {len(strangers)} files of nothing in config.json ({shown}): `silodp clean {folder}` removes them"


def _folder(run: str) -> Path:
    """The results folder that is named, or that a run of this name has."""
    path = Path(run)
    for one in (path, Path("results") / run):
        if run and one.is_dir():
            return one
    raise ConfigError(f"command line: run: {run!r}: must be a results folder or a run's name")


def _own_folder(run: str) -> Path:
    """A folder that holds one run and nothing else."""
    from silodp.workflow.contents import PUBLICATION

    folder = _folder(run)
    names = {path.name for path in folder.iterdir()}
    if PUBLICATION in names:
        raise ConfigError(f"command line: run: {run!r}: is a publication: must be a run's folder")
    if folder.is_symlink():
        raise ConfigError(f"command line: run: {run!r}: is a link: must be a run's folder")
    if not names & {"logs", "config.json"} or (beside := sorted(names - OF_A_RUN)):
        what = f"holds {beside[0]}" if names & {"logs", "config.json"} else "has neither logs nor config.json"
        raise ConfigError(f"command line: run: {run!r}: {what}: must be a folder with a run and nothing else")
    return folder


def _remove_empty(folder: Path) -> None:
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
