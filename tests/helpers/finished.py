"""A finished run's folder without the run: every file that its plan names, small and told apart by its text."""

import json
from pathlib import Path

import pandas as pd

from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.workflow import crate
from silodp.workflow.contents import MANIFEST
from silodp.workflow.job_digest import RunPlan

SMALL = {"trials": 1, "epsilons": [3], "clips": [1], "phase_lengths": [1], "settings": [{"M": 2, "R": 5}]}


def run_file(path: Path, run: str, experiments: dict, **keys) -> Path:
    """A run file of small experiments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    named = {name: SMALL | (overrides or {}) for name, overrides in experiments.items()}
    path.write_text(json.dumps({"run": run, "experiments": named} | keys))
    return path


def finished(folder: Path, run: str, experiments: dict, commit: str = "abc", **keys) -> Path:
    """A folder as a rebuild leaves it, with `<run> <file>` as the text of files that nobody parses here."""
    resolved = load(run_file(folder.parent / f"{run}.yaml", run, experiments, **keys))
    config = resolved.dump()
    for name in RunPlan(resolved, folder=str(folder), published=False).deliverables():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{run} {path.relative_to(folder)}")
    rows = {"experiment": list(experiments), "delivered_epsilon": run, "delivered_lower": ""}
    for name in ("privacy.csv", "by_round.csv", "audit.csv"):
        pd.DataFrame(rows).to_csv(folder / name, index=False)
    write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", folder / "config.json")
    times = {"started": "2026-01-02T03:04:05Z", "finished": "2026-01-02T03:05:05Z"}
    record = {"run": run, "git": {"commit": commit}, "command": f"make {run}", "config": config} | times
    data = {"insurance/insurance.csv": "sha256:" + "ab" * 32}
    write_text(json.dumps(record | {"data_sha256": data}), folder / "provenance.json")
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs/fetch.log").write_text("")
    sign(folder)
    return folder


def sign(folder: Path) -> None:
    """Write the manifest of the files as they are now."""
    (folder / MANIFEST).unlink(missing_ok=True)
    crate.write(folder, published=False)


def held(folder: Path) -> set[str]:
    """Every file below a folder but locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path.relative_to(folder).as_posix() for path in files}
