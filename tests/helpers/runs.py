"""Running the workflow in a folder of its own, and comparing what two runs wrote."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
# Measured times and the moment of a run: the only content that may differ between two rebuilds.
VOLATILE_COLUMNS = ["seconds"]

TINY = """\
run: tiny
seed: 7
experiments:
  wbcd_mlp:
    trials: 4
    trials_per_job: {trials_per_job}
    epsilons: [3]
    stepsizes: {{low: -3, high: 0, points: 2, spacing: exponential}}
    clips: [1]
    phase_lengths: [2]
    settings: [{{M: 2, R: 5}}]
    algorithms: {{local_sgd: ~, fedprox_spider: ~}}
    reports: [{{selection: pooled, evaluation: fresh}}, {{selection: per_trial, evaluation: same}}]
"""


def checkout(folder: Path) -> Path:
    """A copy of what the workflow reads, so that its state and results are apart from the checkout's."""
    for name in ("Snakefile", "environment.yml", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("workflow", "config"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def environment() -> dict[str, str]:
    """The tests' own interpreter first on the path, one thread a job."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"}


def snakemake(*arguments: str, profile: str = "default") -> list[str]:
    """The command line of a rebuild."""
    cores = ("--cores", "2") if profile == "default" else ()
    return [sys.executable, "-m", "snakemake", "--profile", f"workflow/profiles/{profile}", *cores, *arguments]


def rebuild(name: str = "tiny") -> list[str]:
    """The command that `make reproduce` runs."""
    return [sys.executable, "-m", "silodp", "rebuild", f"config/{name}.yaml", "--cores", "2"]


def run(folder: Path, *arguments: str, profile: str = "default") -> subprocess.CompletedProcess:
    """Run Snakemake in `folder` to its end."""
    command = snakemake(*arguments, profile=profile)
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=900)


def rebuild_in(folder: Path, name: str = "tiny") -> subprocess.CompletedProcess:
    """`silodp rebuild` of a run file in `folder`, to its end."""
    return subprocess.run(rebuild(name), cwd=folder, env=environment(), capture_output=True, text=True, timeout=900)


def contents(results: Path) -> dict[str, object]:
    """Every result file by its path, without what may differ between two rebuilds; logs are left out."""
    found: dict[str, object] = {}
    for path in sorted(results.rglob("*")):
        name = path.relative_to(results).as_posix()
        if not path.is_file() or name.startswith("logs/"):
            continue
        if path.suffix in (".parquet", ".csv"):
            as_text = {"dtype": str, "keep_default_na": False}
            frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, **as_text)
            found[name] = frame.drop(columns=VOLATILE_COLUMNS, errors="ignore").to_csv()
        elif name == "provenance.json":
            record = json.loads(path.read_text())
            found[name] = {key: record[key] for key in ("run", "config_sha256", "lock_sha256") if key in record}
        elif name == "report.html":
            found[name] = path.stat().st_size > 10_000
        elif name == "ro-crate-metadata.json":
            # Sizes of files with measured times, and the moment of the run.
            found[name] = [one["@id"] for one in json.loads(path.read_text())["@graph"]]
        else:
            found[name] = path.read_bytes()
    return found
