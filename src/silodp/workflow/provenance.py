"""Where a result comes from: code, environment, machine, configuration and data, with nothing that names a person."""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import silodp
from silodp.datasets.addresses import without_credentials
from silodp.files import write_text
from silodp.workflow.digests import _plain, digest

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

_HOME = re.compile(r"(?<![\w.-])(?:(?:/home|/Users)/[^/\s:'\"]+|/root(?![\w.-])|[A-Za-z]:\\Users\\[^\\\s'\"]+)")


def collect(
    run: str,
    config: Mapping[str, Any],
    *,
    root: Path,
    data_hashes: Mapping[str, str],
    lock: Path,
    device: str = "cpu",
    invocations: Sequence[Mapping[str, Any]] = (),
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
        invocations: those that the results come from, oldest first, as `silodp.workflow.invocations.done` gives them.
            The run's `command` is the last one's, its `seconds` are those of all, without the time between them.

    Raises ValueError when the configuration has no JSON form.
    """
    root = Path(root)
    recorded = _plain(recordable(config, root))
    made_in = [_invocation(one, root) for one in invocations]
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
        "command": made_in[-1]["command"] if made_in else None,
        "started": made_in[0]["started"] if made_in else None,
        "finished": made_in[-1]["finished"] if made_in else None,
        "seconds": round(sum(one["seconds"] for one in made_in), 1) if made_in else None,
        "invocations": made_in,
    }


def _invocation(one: Mapping[str, Any], root: Path) -> dict[str, Any]:
    return {
        **{key: one[key] for key in ("commit", "dirty", "completed", "jobs")},
        "command": _scrub(one["command"], root),
        "started": _utc(one["started"]),
        "finished": _utc(one["finished"]),
        "seconds": round((one["finished"] - one["started"]).total_seconds(), 1),
    }


def write(path: Path | str, record: Mapping[str, Any]) -> None:
    """Write `record` as JSON with sorted keys: the same record, the same bytes."""
    text = json.dumps(_plain(record), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(text + "\n", path)


def file_digest(path: Path | str) -> str | None:
    """SHA-256 of a file, in hex; None where there is no such file."""
    path = Path(path)
    if not path.is_file():
        return None
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def git_state(root: Path | str) -> dict[str, Any]:
    """`commit` of the checkout whose top is `root`, and whether it is `dirty`; both None where that is unknown.

    Files that git does not track make nothing dirty: notes, and results of other runs.
    """
    unknown: dict[str, Any] = {"commit": None, "dirty": None}
    top, commit = _git(root, "rev-parse", "--show-toplevel"), _git(root, "rev-parse", "HEAD")
    # A checkout that merely lies inside somebody else's repository says nothing about this code.
    if not top or not commit or Path(top).resolve() != Path(root).resolve():
        return unknown
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
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


def recordable(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A configuration as it may be committed: no credentials in addresses, no home folders in paths."""
    return _scrubbed(dict(config), root)


def _scrubbed(plain: Any, root: Path) -> Any:
    """`plain` with `_scrub` applied to every string in it."""
    if isinstance(plain, Mapping):
        return {
            _scrub(key, root) if isinstance(key, str) else key: _scrubbed(value, root) for key, value in plain.items()
        }
    if isinstance(plain, list | tuple):
        return [_scrubbed(value, root) for value in plain]
    return _scrub(plain, root) if isinstance(plain, str) else plain


def _scrub(text: str, root: Path) -> str:
    """`text` with paths in the checkout relative to it, home folders as ~, and no credentials in addresses."""
    text = without_credentials(text)
    for folder, short in ((str(root.resolve()), "."), (str(root), "."), (str(Path.home()), "~")):
        if len(folder) > 1:  # neither "/" nor "." stands for a folder worth hiding
            text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", short, text)
    return _HOME.sub("~", text)


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


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
