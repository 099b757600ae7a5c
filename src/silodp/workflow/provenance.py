"""Where a result comes from: code, environment, machine, configuration and data, with nothing that names a person."""

import hashlib
import json
import math
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np

import silodp
from silodp.results import write_text

PACKAGES = (
    "dp-accounting",
    "matplotlib",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "scikit-learn",
    "scipy",
    "snakemake",
    "torch",
)

# Fields that may differ between two runs that must give the same results.
VOLATILE = ("command", "finished", "seconds", "started")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_HOME = re.compile(r"(?<![\w.-])(?:(?:/home|/Users)/[^/\s:'\"]+|/root(?![\w.-])|[A-Za-z]:\\Users\\[^\\\s'\"]+)")


def digest(obj: Any) -> str:
    """SHA-256, in hex, of the JSON form of `obj`: keys sorted, no spaces, ∞ as "inf".

    Raises ValueError for what has no such form.
    """
    text = json.dumps(_plain(obj), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def collect(
    run: str,
    config: Mapping[str, Any],
    *,
    root: Path,
    data_hashes: Mapping[str, str],
    lock: Path,
    device: str = "cpu",
    command: Sequence[str] | None = None,
    started: datetime | None = None,
    finished: datetime | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """All that is known of a run, ready for JSON.

    Args:
        run: the run's name.
        config: the resolved configuration; credentials in its addresses and home folders in its paths are left out,
            and `config_sha256` is of what is recorded.
        root: the checkout; only a git repository whose top is `root` gives a commit.
        data_hashes: SHA-256 of each data file or array, by name.
        lock: requirements.lock; a file that is missing is recorded as null.
        device: torch device of the training, such as "cpu" or "cuda:0".
        command: the command line, `sys.argv` by default.
        started, finished: aware datetimes, recorded in UTC to the second.
        seconds: wall time, from `started` and `finished` where they are given and it is not.

    Raises ValueError when the configuration has no JSON form or a datetime has no time zone.
    """
    root = Path(root)
    for name, moment in (("started", started), ("finished", finished)):
        if moment is not None and moment.tzinfo is None:
            raise ValueError(f"provenance: {name} has no time zone, allowed: a datetime with one")
    if seconds is None and started is not None and finished is not None:
        seconds = (finished - started).total_seconds()
    recorded = _scrubbed(_plain(config), root)
    argv = list(sys.argv if command is None else command)
    return {
        "run": run,
        "silodp": silodp.__version__,
        "git": git_state(root),
        "requirements_lock_sha256": file_digest(lock),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": machine(),
        "torch": torch_device(device),
        "config": recorded,
        "config_sha256": digest(recorded),
        "data_sha256": dict(sorted(data_hashes.items())),
        "command": _scrub(shlex.join([PurePath(argv[0]).name, *argv[1:]]), root) if argv else None,
        "started": _utc(started),
        "finished": _utc(finished),
        "seconds": None if seconds is None else round(float(seconds), 1),
    }


def write(path: Path | str, record: Mapping[str, Any]) -> None:
    """Write `record` as JSON with sorted keys: the same record, the same bytes."""
    text = json.dumps(_plain(record), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(text + "\n", path)


def stable(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without its `VOLATILE` fields."""
    return {key: value for key, value in record.items() if key not in VOLATILE}


def file_digest(path: Path | str) -> str | None:
    """SHA-256 of a file, in hex; None where there is no such file."""
    path = Path(path)
    if not path.is_file():
        return None
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def git_state(root: Path | str) -> dict[str, Any]:
    """`commit` of the checkout whose top is `root`, and whether it is `dirty`; both None where that is unknown."""
    unknown: dict[str, Any] = {"commit": None, "dirty": None}
    top, commit = _git(root, "rev-parse", "--show-toplevel"), _git(root, "rev-parse", "HEAD")
    # A checkout that merely lies inside somebody else's repository says nothing about this code.
    if not top or not commit or Path(top).resolve() != Path(root).resolve():
        return unknown
    changes = _git(root, "status", "--porcelain")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def machine() -> dict[str, Any]:
    """System, CPU model, cores and memory (GiB) of this machine, and not its name."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": platform.system(),
        "release": platform.release().partition("-")[0],  # what a builder of kernels appends may name a place
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_usable": usable,
        "memory_gib": _memory_gib(),
    }


def torch_device(device: str) -> dict[str, Any]:
    """The device's name, and for CUDA the model of the accelerator and the CUDA version."""
    if not device.startswith("cuda"):
        return {"device": device}
    import torch  # slow to import, and needed for this only

    found = torch.cuda.is_available()
    name = torch.cuda.get_device_name(torch.device(device)) if found else None
    return {"device": device, "name": name, "cuda": torch.version.cuda}


def _plain(obj: Any, where: str = "") -> Any:
    """`obj` as JSON types; floats that JSON does not know become "inf", "-inf" and "nan"."""
    if obj is None or isinstance(obj, bool | int | str):
        return obj
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else str(obj)
    if isinstance(obj, np.generic):
        return _plain(obj.item(), where)
    if isinstance(obj, PurePath):
        return obj.as_posix()
    if isinstance(obj, Mapping):
        wrong = [key for key in obj if not isinstance(key, str)]
        if wrong:
            raise ValueError(f"{where or 'record'}: key {wrong[0]!r} is not a string")
        return {key: _plain(value, f"{where}.{key}".lstrip(".")) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [_plain(value, f"{where}[{i}]") for i, value in enumerate(obj)]
    raise ValueError(
        f"{where or 'record'}: {type(obj).__name__} has no JSON form, allowed: mapping, list, str, number, None, path"
    )


def _scrubbed(plain: Any, root: Path) -> Any:
    """`plain` with `_scrub` applied to every string in it."""
    if isinstance(plain, dict):
        return {_scrub(key, root): _scrubbed(value, root) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_scrubbed(value, root) for value in plain]
    return _scrub(plain, root) if isinstance(plain, str) else plain


def _scrub(text: str, root: Path) -> str:
    """`text` with paths in the checkout relative to it, home folders as ~, and no credentials in addresses."""
    text = _URL.sub(lambda match: _without_credentials(match[0]), text)
    for folder, short in ((str(root.resolve()), "."), (str(root), "."), (str(Path.home()), "~")):
        if len(folder) > 1:  # neither "/" nor "." stands for a folder worth hiding
            text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", short, text)
    return _HOME.sub("~", text)


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _git(root: Path | str, *arguments: str) -> str | None:
    """Output of a git command in `root`; None without git, outside a repository, or when it does not answer."""
    # Variables that a hook or a CI job sets would point git at another repository than `root`.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    """The processor's model, from where Linux or macOS keeps it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
        if names:
            return names[0]
    except OSError:
        pass
    if sys.platform == "darwin":
        try:
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            pass
    return platform.processor() or None


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _utc(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
