"""Subcommands on finished runs: what is kept of one in the repository, and two algorithms compared in it."""

import argparse
import json
import shutil
from collections.abc import Callable
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
README = """# Published results

What is small of the run `{run}`, finished {finished} by version {commit}; `provenance.json` names code, lock, data and
machine, `config.json` holds every option.

- Made by `make reproduce RUN={run}` and `make publish RUN={run}`.
- `make figures` draws the figures again from the tables in this folder, `make report` the page; neither trains.
- `claims.csv` holds a verdict for every claim of the papers (docs/claims.md); `make report` decides them again.
- `reported/` holds one row a trial behind the default rows: `silodp compare` sets two algorithms against each other.
"""


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("publish", publish, "copy what is kept of a run into a folder that is committed")
    sub.add_argument("folder", type=Path, help="results folder of a finished run, as in results/paper")
    sub.add_argument("--output", type=Path, default=Path("results/published"), help="default results/published")

    sub = add("compare", compare, "two algorithms, trial by trial")
    sub.add_argument("reported", type=Path, help="CSV file, as in results/default/reported/wbcd_mlp.csv")
    sub.add_argument("first", help="algorithm, as in spider; local_sgd:non_private is the form without noise")
    sub.add_argument("second", help="the algorithm it is set against")
    sub.add_argument("--confidence", type=float, default=0.95, help="of the interval (default 0.95)")
    sub.add_argument("--output", type=Path, help="CSV file; default: print")


def publish(options: argparse.Namespace) -> None:
    """Copy a finished run's tables, figures, page and provenance; what was in the folder before is replaced."""
    source, output = options.folder, options.output
    missing = [name for name in NEEDED if not any(source.glob(name))]
    if missing:
        raise ValueError(f"command line: folder: {str(source)!r}: lacks {', '.join(missing)}: must be a finished run")
    if output.resolve() == source.resolve():
        raise ValueError(f"command line: --output: {str(output)!r}: must be another folder than the run's")
    if output.exists() and not (output / "config.json").is_file():
        raise ValueError(f"command line: --output: {str(output)!r}: must be an earlier publication, or not be there")
    shutil.rmtree(output, ignore_errors=True)
    for path in sorted(path for name in KEPT for path in source.glob(name)):
        target = output / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Times come along: a figure stays younger than its table.
        shutil.copy2(path, target)
    write_text(
        _readme(source, json.loads((source / "provenance.json").read_text(encoding="utf-8"))), output / "README.md"
    )


def _readme(source: Path, provenance: dict) -> str:
    """What is in the folder, and the commands that made it and that use it."""
    run = provenance.get("run") or source.name
    commit = (provenance.get("git") or {}).get("commit") or "unknown"
    return README.format(run=run, commit=commit, finished=provenance.get("finished") or "unknown")


def compare(options: argparse.Namespace) -> None:
    """Paired differences of test error, with an interval and who is better, for each reading, (M, R) and epsilon."""
    from silodp.comparisons import compare as paired

    found = paired(pd.read_csv(options.reported), options.first, options.second, options.confidence)
    if options.output:
        write_csv(found, options.output)
    else:
        print(found.drop(columns="experiment").to_string(index=False, float_format=lambda value: f"{value:.4g}"))
