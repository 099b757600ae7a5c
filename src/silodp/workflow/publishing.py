"""Subcommands on finished runs: what is kept of one in the repository, and two algorithms compared in it."""

import argparse
import json
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pandas as pd

from silodp.results import write_csv, write_text

# Of a run's folder: what figures, page and verdicts are made from, and the figures themselves.
KEPT = (
    "config.json",
    "provenance.json",
    "privacy.csv",
    "tables/*.csv",
    "audit.csv",
    "formulas.csv",
    "reported/*.csv",
    "figures/*.pdf",
    "figures/*.png",
    *(f"{folder}/*.{suffix}" for folder in ("bounds", "checkins") for suffix in ("csv", "pdf", "png")),
    "claims.csv",
    "silos/*/*/heterogeneity.csv",
)
NEEDED = KEPT[:4]
# Files of a run with a row or an entry for each experiment; of several runs they are put together.
JOINED = ("privacy.csv", "audit.csv")
README = """# Published results

What is small of
{runs}

`provenance.json` names code, lock, data and machine, `config.json` holds every option.

- Made by {made} and `make publish RUN={names}`.
- `report.html` is everything on one page, for any browser, also without a network.
- `make figures` draws the figures again from the tables in this folder, `make report` the page; neither trains.
- `claims.csv` holds a verdict for every claim of the papers (docs/claims.md); `make claims` decides them again.
- `reported/` holds one row a trial behind the default rows: `silodp compare` sets two algorithms against each other.
"""


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("publish", publish, "copy what is kept of finished runs into a folder that is committed")
    sub.add_argument("folders", metavar="folder", type=Path, nargs="+", help="results folder, as in results/paper")
    sub.add_argument("--output", type=Path, default=Path("results/published"), help="default results/published")

    sub = add("compare", compare, "two algorithms, trial by trial")
    sub.add_argument("reported", type=Path, help="CSV file, as in results/default/reported/wbcd_mlp.csv")
    sub.add_argument("first", help="algorithm, as in spider; local_sgd:non_private is the form without noise")
    sub.add_argument("second", help="the algorithm it is set against")
    sub.add_argument("--confidence", type=float, default=0.95, help="of the interval (default 0.95)")
    sub.add_argument("--output", type=Path, help="CSV file; default: print")


def publish(options: argparse.Namespace) -> None:
    """Copy tables, figures and provenance of finished runs; what was in the folder before is replaced.

    Of several runs, an experiment, and what belongs to none, is taken from the last that has it; claims are then
    decided by all tables together.
    """
    folders, output = options.folders, options.output
    for folder in folders:
        missing = [name for name in NEEDED if not any(folder.glob(name))]
        if missing:
            raise ValueError(
                f"command line: folder: {str(folder)!r}: lacks {', '.join(missing)}: must be a finished run"
            )
        if output.resolve() == folder.resolve():
            raise ValueError(f"command line: --output: {str(output)!r}: must be another folder than a run's")
    if output.exists() and not (output / "config.json").is_file():
        raise ValueError(f"command line: --output: {str(output)!r}: must be an earlier publication, or not be there")
    records = [json.loads((folder / "provenance.json").read_text(encoding="utf-8")) for folder in folders]
    config = _joined_config(folders) if len(folders) > 1 else None
    shutil.rmtree(output, ignore_errors=True)
    for position, folder in enumerate(folders):
        later = _experiments(folders[position + 1 :])
        for path in sorted(path for name in KEPT for path in folder.glob(name)):
            if _experiment(path.relative_to(folder), later) is None:
                target = output / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                # Times come along: a figure stays younger than its table.
                shutil.copy2(path, target)
    if config is not None:
        _join(folders, output, config, records)
    names = [record.get("run") or folder.name for record, folder in zip(records, folders, strict=True)]
    write_text(_readme(names, records), output / "README.md")


def _experiments(folders: Sequence[Path]) -> set[str]:
    """The experiments that runs have a table of."""
    return {path.stem for folder in folders for path in folder.glob("tables/*.csv")}


def _experiment(path: Path, experiments: Collection[str]) -> str | None:
    """The one of `experiments` that a file of a run belongs to, None where it belongs to none of them."""
    if path.parts[0] == "silos":
        return path.parts[1] if path.parts[1] in experiments else None
    if path.parts[0] == "figures":
        return next((name for name in experiments if re.match(rf"{re.escape(name)}_M\d+_R\d+", path.stem)), None)
    return path.stem if len(path.parts) > 1 and path.stem in experiments else None


def _joined_config(folders: Sequence[Path]) -> dict:
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
            "run": f"{joined['run']}-{config['run']}",
            "experiments": joined["experiments"] | config["experiments"],
            "targets": sorted({*joined.get("targets", []), *config.get("targets", [])}),
        }
    return joined


def _join(folders: Sequence[Path], output: Path, config: dict, records: list[dict]) -> None:
    """Write what several runs have together: options, provenance by run, rows of all experiments, verdicts."""
    from silodp import provenance
    from silodp.claims import decide
    from silodp.claims.base import RunFolder
    from silodp.claims.loading import load_claims

    write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", output / "config.json")
    runs = {record.get("run") or folder.name: record for record, folder in zip(records, folders, strict=True)}
    provenance.write(output / "provenance.json", {"runs": runs})
    for name in JOINED:
        frames = []
        for position, folder in enumerate(folders):
            if (folder / name).is_file():
                frame = pd.read_csv(folder / name, dtype=str, keep_default_na=False)
                frames.append(frame[~frame["experiment"].isin(_experiments(folders[position + 1 :]))])
        if frames:
            write_csv(pd.concat(frames, ignore_index=True).fillna(""), output / name)
    write_csv(decide(load_claims(), RunFolder(output)), output / "claims.csv")


def _readme(names: Sequence[str], records: Sequence[dict]) -> str:
    """What is in the folder, and the commands that made it and that use it."""
    runs = [
        f"the run `{name}`, finished {record.get('finished') or 'unknown'}\n"
        f"  by version {(record.get('git') or {}).get('commit') or 'unknown'}"
        for name, record in zip(names, records, strict=True)
    ]
    together = names[0] if len(names) == 1 else f'"{" ".join(names)}"'
    made = ", ".join(f"`make reproduce RUN={name}`" for name in names)
    return README.format(runs="".join(f"\n- {run}" for run in runs), made=made, names=together)


def compare(options: argparse.Namespace) -> None:
    """Paired differences of test error, with an interval and who is better, for each reading, (M, R) and epsilon."""
    from silodp.comparisons import compare as paired

    found = paired(pd.read_csv(options.reported), options.first, options.second, options.confidence)
    if options.output:
        write_csv(found, options.output)
    else:
        print(found.drop(columns="experiment").to_string(index=False, float_format=lambda value: f"{value:.4g}"))
