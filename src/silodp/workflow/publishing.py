"""What is kept of finished runs in the repository."""

import json
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from silodp.files import read_csv, write_csv, write_text
from silodp.verdicts.claims import decide
from silodp.workflow.contents import CHECKSUMS, PUBLICATION, Folder, checksums, problems, write_checksums

NEEDED = ("config.json", "provenance.json", "privacy.csv", "tables/*.csv", CHECKSUMS)
# A run of the workflow has these, a publication never does.
OF_A_RUN = ("trials", "selection", "privacy", CHECKSUMS)
# Tables that a publication makes again, with its page.
AGAIN = ("claims.csv", "comparisons.csv", "ro-crate-metadata.json")
# Files of a run with a row or an entry for each experiment; of several runs they are put together.
JOINED = ("privacy.csv", "by_round.csv", "audit.csv")
README = """# Published results

What is small of
{runs}

`provenance.json` names code, lock, data and machine, `config.json` holds every option.

- Made by {made} and `make publish RUN={names}{to}`.
- `report.html` is everything on one page, for any browser, also without a network.
- `make figures{to}` draws the figures again from the tables in this folder, `make report{to}` the page; neither trains.
- `claims.csv` holds a verdict for every claim of the papers (docs/claims.md); `make claims{to}` decides them again.
- `reported/` holds one row a trial behind the default rows: `silodp compare` sets two algorithms against each other.
"""


def publish(folders: Sequence[Path], output: Path, *, beside: bool = False) -> None:
    """Copy tables, figures and provenance of finished runs; what was in the folder before is replaced.

    Of several runs, an experiment, and what belongs to none, is taken from the last that has it; claims are then
    decided by all tables together.

    Args:
        folders: of the runs.
        output: the publication.
        beside: whether what is published there stays, each experiment with the record of the run that made it, but for
            those that the runs have too. A paper's run of hours need not be at hand for another to stand beside it.
    """
    for folder in folders:
        missing = [name for name in NEEDED if not any(folder.glob(name))]
        if missing:
            raise ValueError(
                f"command line: folder: {str(folder)!r}: lacks {', '.join(missing)}: must be a finished run"
            )
    _replaceable(output, folders)
    if beside and not (output / PUBLICATION).is_file():
        raise ValueError(f"command line: --beside: {str(output)!r}: no publication: must be one, or be left out")
    folders = [output, *folders] if beside else folders
    sources = [Folder(folder) for folder in folders]
    for source in sources:
        # Figures are drawn again from the published tables.
        if wrong := problems(source, drawn=False):
            more = f" (and {len(wrong) - 1} more: silodp verify)" if wrong[1:] else ""
            raise ValueError(
                f"command line: folder: {str(source.path)!r}: not as its rebuild left it: {wrong[0]}{more}"
            )
    runs: dict[str, dict] = {}
    made_by: dict[str, str] = {}
    for folder in folders:
        runs |= _runs(folder)
        made_by |= _made_by(folder)
    # The record of a run of which nothing is left here would tell of numbers that are another's.
    runs = {name: record for name, record in runs.items() if name in made_by.values()}
    config = _joined_config(folders, list(runs)) if len(folders) > 1 else None
    with _replaced(output) as built:
        for position, source in enumerate(sources):
            later = _experiments(sources[position + 1 :])
            for name in source.publishable():
                if _experiment(Path(name), later) is None:
                    (built / name).parent.mkdir(parents=True, exist_ok=True)
                    # Times come along: a figure stays younger than its table.
                    shutil.copy2(source.path / name, built / name)
        if config is not None:
            _join(sources, built, config, {"runs": runs, "made_by": made_by})
        write_text(_readme(runs, made_by, output.name), built / "README.md")
        # Of what stays: figures, verdicts and page are made from it again.
        data = [path for path in built.rglob("*") if path.suffix in (".csv", ".json") and path.name not in AGAIN]
        found = checksums(built, (path.relative_to(built).as_posix() for path in data))
        write_checksums(built / PUBLICATION, {"runs": list(runs)}, found)


def _runs(folder: Path) -> dict[str, dict]:
    """Name → record of the run in a folder, or of each that a publication was made from."""
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    together = record.get("runs")
    return together if isinstance(together, dict) else {record.get("run") or folder.name: record}


def _made_by(folder: Path) -> dict[str, str]:
    """Experiment, `bounds` or `checkins` → name of the run that it is from."""
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    if isinstance(found := record.get("made_by"), dict):
        return found
    runs = {run: one["config"] for run, one in _runs(folder).items()}
    found = {name: run for run, config in runs.items() for name in config["experiments"]}
    asked = {target: run for run, config in runs.items() for target in config.get("targets") or ()}
    # Both can be made of a run whose file asks for neither.
    last = [*runs][-1]
    return found | {kind: asked.get(kind, last) for kind in ("bounds", "checkins") if (folder / kind).is_dir()}


def _replaceable(output: Path, folders: Sequence[Path]) -> None:
    """ValueError where `output` is anything but a publication or not there, or lies around or in one of the runs."""

    def fail(allowed: str) -> None:
        raise ValueError(f"command line: --output: {str(output)!r}: {allowed}")

    place = output.resolve()
    for folder in folders:
        run = folder.resolve()
        if place == run:
            fail("must be another folder than a run's")
        if run.is_relative_to(place):
            fail(f"must not hold the run {str(folder)!r}, which would go with it")
        if place.is_relative_to(run):
            fail(f"must lie outside of the run {str(folder)!r}")
    if not output.exists():
        return
    if found := next((name for name in OF_A_RUN if (output / name).exists()), None):
        fail(f"holds {found} and so is a run: must be an earlier publication, or not be there")
    if not (output / PUBLICATION).is_file():
        fail(f"must be an earlier publication (a folder with {PUBLICATION}), or not be there")


@contextmanager
def _replaced(output: Path) -> Iterator[Path]:
    """A new folder beside `output` that takes its place once the block ends without an error."""
    place = output.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    built, former = (place.parent / f".{place.name}.{kind}" for kind in ("new", "old"))
    # A publish that was killed between its two renames left the former publication here.
    if former.exists() and not place.exists():
        former.rename(place)
    shutil.rmtree(former, ignore_errors=True)
    shutil.rmtree(built, ignore_errors=True)
    built.mkdir()
    try:
        yield built
        if place.exists():
            place.rename(former)
        built.rename(place)
    finally:
        shutil.rmtree(built, ignore_errors=True)
    shutil.rmtree(former, ignore_errors=True)


def _experiments(sources: Sequence[Folder]) -> set[str]:
    """The experiments of runs."""
    return {name for source in sources for name in source.plan.experiments}


def _experiment(path: Path, experiments: Collection[str]) -> str | None:
    """The one of `experiments` that a file of a run belongs to, None where it belongs to none of them."""
    if path.parts[0] == "silos":
        return path.parts[1] if path.parts[1] in experiments else None
    if path.parts[0] == "figures":
        return next((name for name in experiments if re.match(rf"{re.escape(name)}_M\d+_R\d+", path.stem)), None)
    return path.stem if len(path.parts) > 1 and path.stem in experiments else None


def _joined_config(folders: Sequence[Path], names: Sequence[str]) -> dict:
    """The runs' options as those of one run; ValueError where the runs differ in what is not an experiment's."""
    read = [json.loads((folder / "config.json").read_text(encoding="utf-8")) for folder in folders]
    joined = read[0]
    for folder, config in zip(folders[1:], read[1:], strict=True):
        for key in ("seed", "dtype"):
            if config.get(key) != joined.get(key):
                raise ValueError(
                    f"{folder / 'config.json'}: {key}: {config.get(key)!r}: must be {joined.get(key)!r}, as in "
                    f"{folders[0] / 'config.json'}"
                )
        joined = joined | {
            "run": "-".join(names),
            "experiments": joined["experiments"] | config["experiments"],
            **{key: sorted({*joined.get(key, []), *config.get(key, [])}) for key in ("targets", "plugins")},
        }
    return joined


def _join(sources: Sequence[Folder], output: Path, config: dict, record: dict[str, dict]) -> None:
    """Write what several runs have together: options, provenance by run, rows of all experiments, verdicts."""
    from silodp.verdicts.claims.base import RunFolder
    from silodp.verdicts.claims.loading import load_claims
    from silodp.workflow import provenance

    write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", output / "config.json")
    provenance.write(output / "provenance.json", record)
    for name in JOINED:
        frames = []
        for position, source in enumerate(sources):
            frame = read_csv(source.path / name, ("experiment",), dtype=str, keep_default_na=False)
            frames.append(frame[~frame["experiment"].isin(_experiments(sources[position + 1 :]))])
        write_csv(pd.concat(frames, ignore_index=True).fillna(""), output / name)
    write_csv(decide(load_claims(), RunFolder(output)), output / "claims.csv")


def _readme(runs: dict[str, dict], made_by: dict[str, str], folder: str) -> str:
    """What is in the folder, and the commands that made it and that use it."""
    said = [
        f"the run `{name}`, finished {record.get('finished') or 'unknown'}\n"
        f"  by version {(record.get('git') or {}).get('commit') or 'unknown'}:\n"
        f"  {', '.join(sorted(part for part, run in made_by.items() if run == name))}"
        for name, record in runs.items()
    ]
    names = list(runs)
    together = names[0] if len(names) == 1 else f'"{" ".join(names)}"'
    made = ", ".join(_command(name) for name in names)
    to = "" if folder == "published" else f" TO={folder}"
    return README.format(runs="".join(f"\n- {run}" for run in said), made=made, names=together, to=to)


def _command(run: str) -> str:
    """What makes a run: `make figure` that of one figure, of which the rest is made by its own run file."""
    if found := re.fullmatch(r"figure-(.+?)(?:-(\d+)-trials)?", run):
        trials = f" TRIALS={found[2]}" if found[2] else ""
        return f"`make figure FIG={found[1]}{trials}` and `silodp rebuild results/{run}/run.yaml`"
    return f"`make reproduce RUN={run}`"
