"""What is kept of finished runs in the repository: a publication, which is a folder with a manifest of its own."""

import ctypes
import glob
import logging
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.files import read_csv, read_json, write_csv, write_text
from silodp.report.paper_figures import of_figures
from silodp.workflow import crate, provenance
from silodp.workflow.contents import (
    is_publication,
    manifest,
    named_files,
    output_of,
    present,
    problems,
    refuse_own_data,
)
from silodp.workflow.digests import checksum
from silodp.workflow.engine import results_locked
from silodp.workflow.outputs import Output

log = logging.getLogger("silodp")

# Files of a run with a row for each experiment; those of several runs are put together.
JOINED = ("privacy.csv", "by_round.csv", "audit.csv")
# A run's name may have so many letters.
LONGEST = 100
README = """# Published results

What is small of
{runs}
`provenance.json` names code, lock, data and machine, `config.json` holds every option, `ro-crate-metadata.json` the
checksum of every file: `silodp verify results/{folder}`.

- Made by the commands above and `make publish RUN="{names}"{to}`.
- `report.html` is everything on one page, for any browser, also without a network.
- `make figures{to}` draws the figures again from the tables in this folder, `make report{to}` the page; neither trains.
- `claims.csv` holds a verdict for every claim of the papers (docs/claims.md); `make claims{to}` decides them again.
- `losses/` holds the training loss of each trained point of later runs, by which points are chosen.
- `reported/` holds one row a trial behind the default rows: `silodp claims results/{folder} --pair A B` sets two
  algorithms against each other.
- `silodp audit results/{folder} --output FILE` audits the algorithms again from the tables.
"""


def publish(folders: Sequence[Path], output: Path, *, beside: bool = False, without: Sequence[str] = ()) -> None:
    """Copy tables, figures and provenance of finished runs to `output`; what was there before is replaced.

    Of several runs, an experiment, and what belongs to none, is taken from the last that has it; with `beside`, what
    else is published there stays, but for what the runs `without` made. Verdicts, comparisons and page are made by
    `make publish`. ValueError for runs of a user's own data, whose noise and records they would give away.
    """
    new = [place for place in output.resolve().parents if not place.exists()]
    output.resolve().parent.mkdir(parents=True, exist_ok=True)
    try:
        with results_locked(output, *folders):
            _recover(output)
            _publish(folders, output, beside, without)
    finally:
        for place in new:
            with suppress(OSError):  # the publication is in it
                place.rmdir()


def _publish(folders: Sequence[Path], output: Path, beside: bool, without: Sequence[str]) -> None:
    _check_output(output, folders, beside)
    if without and not beside:
        raise ValueError("command line: --without: goes with --beside")
    gone = _files_made_by(output, without) if beside else set()
    # By its files: a publication that is damaged is replaced too.
    before = {file.stem for file in (output / "tables").glob("*.csv")}
    sources = [output, *folders] if beside else list(folders)
    for source in sources:
        _check_source(source)
    runs: dict[str, dict] = {}
    made_by: dict[str, str] = {}
    for source in sources:
        record = read_json(source / "provenance.json")
        runs |= provenance.runs_of(record)
        # Experiment, `bounds` or `checkins` → the run that made it.
        others = [part for part in ("bounds", "checkins") if (source / part).is_dir()]
        parts = record.get("made_by") or dict.fromkeys([*_experiments(source), *others], record["run"])
        made_by |= {part: run for part, run in parts.items() if source != output or part not in gone}
    # A run of which no experiment is left has no record.
    runs = {name: record for name, record in runs.items() if name in made_by.values()}
    names = "-".join(runs)
    config = _joined_config(sources, gone) | {"run": names if len(names) <= LONGEST else f"{len(runs)}-runs"}
    # The papers' formulas are of no experiment: the last run about the papers' figures brings them.
    formulas = [source for source in sources if of_figures() & _experiments(source).keys()] or sources
    with _replaced(output) as built:
        for source in sources:
            for name, digest in manifest(source).items():
                if _is_copied(output_of(name)) and (name != "formulas.csv" or source == formulas[-1]):
                    (built / name).parent.mkdir(parents=True, exist_ok=True)
                    # Times come along: a figure stays younger than its table.
                    shutil.copy2(source / name, built / name)
                    if checksum(built / name) != digest:
                        raise ValueError(f"{source / name}: checksum: differs from its manifest: changed meanwhile")
        for table in JOINED:
            rows = _joined(sources, table)
            write_csv(rows[rows["experiment"].isin(list(config["experiments"]))], built / table)
        provenance.write_config(built / "config.json", config)
        provenance.write(built / "provenance.json", {"runs": runs, "made_by": made_by})
        write_text(_readme(runs, made_by, output.name), built / "README.md")
        # An earlier run may have had more settings or readings of an experiment.
        _, allowed = named_files(built, published=True)
        for name in set(present(built)) - allowed:
            (built / name).unlink()
        crate.write(built, published=True)
        for source in sources:
            _check_source(source)
    log.info("%s: published: %s", output, ", ".join(sorted(config["experiments"])))
    if lost := sorted(before - set(config["experiments"])):
        log.warning("%s: published no longer: %s", output, ", ".join(lost))


def _is_copied(output: Output | None) -> bool:
    """Whether a publication takes a file of this kind from a run; what is made of all its runs it does not."""
    if output is None or output.fate == "run":
        return False
    return output.fate != "remade" or output.per not in ("run", "papers", "board", "axis")


def _check_source(source: Path) -> None:
    """ValueError where a run's folder is not as its rebuild left it, or is of own data."""
    refuse_own_data(source)
    if wrong := problems(source):
        more = f" (and {len(wrong) - 1} more: silodp verify)" if wrong[1:] else ""
        raise ValueError(f"command line: folder: {str(source)!r}: must be as its rebuild left it: {wrong[0]}{more}")


def _files_made_by(output: Path, runs: Sequence[str]) -> set[str]:
    """What these runs made of an earlier publication; ValueError for a run of which it has nothing."""
    made_by = read_json(output / "provenance.json")["made_by"]
    if unknown := [name for name in runs if name not in made_by.values()]:
        known = ", ".join(sorted(set(made_by.values())))
        raise ValueError(f"command line: --without: {unknown[0]!r}: must be a run that is published there ({known})")
    return {part for part, run in made_by.items() if run in runs}


def _experiments(folder: Path) -> dict[str, Any]:
    return read_json(folder / "config.json")["experiments"]


def _check_output(output: Path, folders: Sequence[Path], beside: bool) -> None:
    """ValueError where the publication would replace anything but an earlier publication."""
    place, allowed = output.resolve(), None
    for folder in map(Path.resolve, folders):
        if place == folder or place in folder.parents or folder in place.parents:
            allowed = f"must lie outside of the run {str(folder)!r}, and not around it"
    if output.exists() or beside:
        allowed = allowed if is_publication(output) else "must be an earlier publication, or not be there"
    if allowed:
        raise ValueError(f"command line: --output: {str(output)!r}: {allowed}")


def _sibling(output: Path, name: str) -> Path:
    place = output.resolve()
    return place.with_name(f".{place.name}.{name}")


def _recover(output: Path) -> None:
    """Bring back what a killed publish left between two renames, and remove what it did not finish."""
    place, former = output.resolve(), _sibling(output, "old")
    if former.exists() and not place.exists():
        former.rename(place)
    for left in (former, *place.parent.glob(glob.escape(_sibling(output, "new.").name) + "*")):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _replaced(output: Path) -> Iterator[Path]:
    """A new folder beside `output` that takes its place once the block ends without an error."""
    place, former, built = output.resolve(), _sibling(output, "old"), _sibling(output, f"new.{os.getpid()}")
    try:
        built.mkdir(parents=True)
    except OSError as error:
        error.filename = str(output)
        raise
    try:
        yield built
        if place.exists() and not _exchanged(built, place):
            place.rename(former)
        if not place.exists():
            built.rename(place)
    finally:
        shutil.rmtree(built, ignore_errors=True)
    shutil.rmtree(former, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two folders got each other's name in one step, so that a kill leaves no moment without `other`."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of Linux
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _joined_config(folders: Sequence[Path], gone: set[str]) -> dict[str, Any]:
    """The runs' options as those of one run; ValueError where the runs differ in what is not an experiment's.

    Without the experiments `gone` of the first folder.
    """
    first, *others = (read_json(folder / "config.json") for folder in folders)
    joined = first | {"experiments": {name: of for name, of in first["experiments"].items() if name not in gone}}
    for folder, config in zip(folders[1:], others, strict=True):
        for key in ("seed", "dtype"):
            if config[key] != first[key]:
                raise ValueError(
                    f"{folder / 'config.json'}: {key}: {config[key]!r}: must be {first[key]!r}, as in "
                    f"{folders[0] / 'config.json'}"
                )
        joined = joined | {
            "experiments": joined["experiments"] | config["experiments"],
            **{key: sorted({*joined[key], *config[key]}) for key in ("targets", "plugins")},
        }
    return joined


def _joined(folders: Sequence[Path], table: str) -> pd.DataFrame:
    """Rows of all runs, each experiment's from the last run that has it."""
    rows = pd.DataFrame({"experiment": []})
    for folder in folders:
        more = read_csv(folder / table, ("experiment",), dtype=str, keep_default_na=False)
        rows = pd.concat([rows[~rows["experiment"].isin(list(_experiments(folder)))], more], ignore_index=True)
    return rows.fillna("")


def _readme(runs: dict[str, dict], made_by: dict[str, str], folder: str) -> str:
    """What is in the folder, and the commands that made it and that use it."""
    lines = [
        f"\n- the run `{name}`, finished {record.get('finished') or 'unknown'}\n"
        f"  by version {(record.get('git') or {}).get('commit') or 'unknown'} with `{record.get('command')}`:\n"
        f"  {', '.join(sorted(part for part, run in made_by.items() if run == name))}\n"
        for name, record in runs.items()
    ]
    to = "" if folder == "published" else f" TO={folder}"
    return README.format(runs="".join(lines), names=" ".join(runs), folder=folder, to=to)
