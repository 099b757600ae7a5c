"""The subcommand `silodp doctor`: what will work on this machine, as text for a bug report."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from silodp import __version__
from silodp.config.errors import project_root
from silodp.datasets import DATASETS
from silodp.datasets.sources import sources


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add this subcommand with `add(name, function, help)`."""
    sub = add("doctor", doctor, "what will work on this machine: environment, cores, disk, data, CUDA, Slurm")
    sub.add_argument("--json", action="store_true", help="print JSON")


def doctor(options: argparse.Namespace) -> int:
    """Look at what rebuilds need: exit code 0 where the default run will work, else 1. Names no person and no host."""
    from silodp.workflow import provenance

    root = project_root()
    machine = provenance.machine()
    locked = _locked(root / "requirements.lock")
    checks = {
        "silodp": (True, f"{__version__}, {provenance.git_state(root)['commit'] or 'not a git checkout'}"),
        "python": (fits(sys.version_info[:2]), f"{sys.version.split()[0]}, 3.11 to 3.13 wanted"),
        "packages": (not locked, f"not as in requirements.lock: {', '.join(locked)}" if locked else "as locked"),
        "cores": (True, f"{machine['cores_usable']} of {machine['cores']}, {machine['cpu']}"),
        "memory": (True, f"{machine['memory_gib']} GiB"),
        "disk": _disk(Path.cwd()),
        "this folder": _writable(Path.cwd()),
        "temporary files": _writable(Path(tempfile.gettempdir())),
        "home": _writable(Path.home()),
    }
    # What only some runs need.
    extras = {"data": _data(), "CUDA": _cuda(), "Slurm": _slurm()}
    if options.json:
        found = {name: {"works": works, "found": text} for name, (works, text) in (checks | extras).items()}
        print(json.dumps(found, indent=1))
    else:
        for name, (works, text) in (checks | extras).items():
            print(f"{'ok' if works else 'no' if name in extras else 'BAD':<4}{name:<16} {text}")
    return 0 if all(works for works, _ in checks.values()) else 1


def fits(version: tuple[int, int]) -> bool:
    """Whether the package runs with this Python, as pyproject.toml has it."""
    return (3, 11) <= version <= (3, 13)


def _locked(path: Path) -> list[str]:
    """Packages whose version is another than the lock's, or that are not there."""
    wrong = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        name, found, version = line.partition("#")[0].partition(";")[0].strip().partition("==")
        if not found:
            continue
        try:
            here = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            here = "missing"
        if here != version.partition("+")[0]:
            wrong.append(f"{name} {here}")
    return wrong


def _disk(folder: Path) -> tuple[bool, str]:
    free = shutil.disk_usage(folder).free / 1e9
    return free > 1, f"{free:.1f} GB free"


def _writable(folder: Path) -> tuple[bool, str]:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True, "can be written"
    except OSError as error:
        return False, f"cannot be written: {error.strerror}"


def _data() -> tuple[bool, str]:
    from silodp.datasets.cache import cache_folder

    folder = cache_folder()
    wanted = {name: sources(name).files for name, one in DATASETS.items() if not one.embedded}
    there = [name for name, files in wanted.items() if all((folder / one.file).is_file() for one in files)]
    mirror = "a mirror is set" if os.environ.get("SILODP_DATA_MIRROR") else "no mirror is set"
    return len(there) == len(wanted), f"{', '.join(there) or 'nothing'} of {', '.join(wanted)} fetched; {mirror}"


def _cuda() -> tuple[bool, str]:
    import torch

    found = torch.cuda.is_available()
    return found, torch.cuda.get_device_name() if found else "no device that PyTorch sees"


def _slurm() -> tuple[bool, str]:
    if shutil.which("sinfo") is None:
        return False, "no sinfo"
    try:
        done = subprocess.run(["sinfo", "--noheader", "--format", "%D"], capture_output=True, text=True, timeout=15)
    except (OSError, subprocess.SubprocessError):
        return False, "sinfo does not answer"
    return done.returncode == 0, f"{done.stdout.strip().replace(chr(10), '+') or 'no'} nodes"
