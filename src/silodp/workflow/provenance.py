"""Where a result comes from: code, environment, machine, configuration and data, with nothing that names a person.

The Snakefile notes the start of each invocation in the run's folder; times and jobs come from the logs of the jobs.
"""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

import psutil

from silodp.config.errors import project_root
from silodp.config.loading import PLUGIN_COPIES, Resolved
from silodp.config.yaml_file import FORMAT
from silodp.datasets.sources import without_credentials
from silodp.experiments.made_for import cards
from silodp.files import read_csv, read_json, write_text
from silodp.workflow.digests import checksum, digest

# What a person typed, handed on by `make` and `silodp rebuild`.
COMMAND_VARIABLE = "SILODP_COMMAND"
_STARTS = Path("logs", "invocations.json")
_HOME = re.compile(r"(?<![\w.-])(?:(?:/home|/Users)/[^/\s:'\"]+|/root(?![\w.-])|[A-Za-z]:\\Users\\[^\\\s'\"]+)")


def record(resolved: Resolved, listings: Iterable[Path], output: Path) -> None:
    """Write provenance.json as `output`, beside it config.json and the plug-ins; `listings` are `silodp fetch`'s."""
    hashes: dict[str, str] = {}
    for path in listings:
        rows = read_csv(path, ("file", "checksum"))
        hashes |= {row.file: row.checksum for row in rows.itertuples()}
    # Committed files hold no credentials of a mirror.
    options, folder = recordable(resolved.dump(), project_root()), output.parent
    write_config(folder / "config.json", options)
    for plugin in resolved.plugins:
        write_text(plugin.read_text(encoding="utf-8"), folder / PLUGIN_COPIES / plugin.name)
    write(output, collect(options, hashes, folder, project_root()))


def collect(config: Mapping[str, Any], data_hashes: Mapping[str, str], folder: Path, root: Path) -> dict[str, Any]:
    """All that is known of a run, ready for JSON; the `command` is the last invocation's, the `seconds` those of all.

    `config` is as `recordable` gives it, `data_hashes` are SHA-256 by name, `folder` has the logs of the run's jobs,
    and only a git repository whose top is `root` gives a commit.
    """
    # JSON has no infinite clip thresholds: they are recorded as "inf".
    recorded = json.loads(json.dumps(config), parse_constant=lambda name: str(float(name)))
    lock, made_in = root / "requirements.lock", invocations(folder)
    direct = [line for line in metadata.requires("silodp") or [] if "extra ==" not in line]
    packages = [re.split(r"[^\w-]", line)[0] for line in direct]
    return {
        "run": recorded["run"],
        "silodp": metadata.version("silodp"),
        "git": git_state(root),
        "requirements_lock_sha256": checksum(lock) if lock.is_file() else None,
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in packages},
        "machine": machine(),
        "torch": _trained_on(_device_of(recorded), folder),
        "config": recorded,
        "config_sha256": digest(recorded),
        "data_sha256": dict(data_hashes),
        "command": made_in[-1]["command"] if made_in else None,
        "started": made_in[0]["started"] if made_in else None,
        "finished": made_in[-1]["finished"] if made_in else None,
        "seconds": round(sum(each["seconds"] for each in made_in), 1) if made_in else None,
        "invocations": made_in,
    }


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Write `record` as JSON with sorted keys: the same record, the same bytes."""
    record = {"format": FORMAT, **record}
    write_text(json.dumps(record, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def write_config(path: Path, options: Mapping[str, Any]) -> None:
    """Write the options of a run, or of a publication, as `load` reads them."""
    write_text(json.dumps({"format": FORMAT, **options}, indent=1, sort_keys=True) + "\n", path)


def runs_of(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Name → record of the run that provenance.json tells of, or of each run of a publication."""
    return record["runs"] if "runs" in record else {record["run"]: dict(record)}


def note_start(folder: Path, root: Path) -> None:
    """Note that an invocation starts to do jobs of the run in `folder`."""
    typed = os.environ.get(COMMAND_VARIABLE, "").strip() or shlex.join([PurePath(sys.argv[0]).name, *sys.argv[1:]])
    start = {"command": _scrub(typed, root), "started": datetime.now(UTC).isoformat(), **git_state(root)}
    starts = [*read_json(folder / _STARTS).get("invocations", []), start]
    write_text(json.dumps({"invocations": starts}, indent=1) + "\n", folder / _STARTS)


def invocations(folder: Path) -> list[dict[str, Any]]:
    """Invocations that results of a run come from, oldest first; a job counts where its last result is from.

    `finished` is the end of the last job, `jobs` the number by kind, which is the first part of a log's path.
    """
    starts = read_json(folder / _STARTS).get("invocations", [])
    begun = [datetime.fromisoformat(start["started"]).timestamp() for start in starts]
    jobs: list[Counter[str]] = [Counter() for _ in begun]
    ended = [*begun]
    for path in (folder / "logs").rglob("*.log"):
        when = path.stat().st_mtime
        if place := bisect_right(begun, when):
            ended[place - 1] = max(ended[place - 1], when)
            jobs[place - 1][path.relative_to(folder / "logs").parts[0].removesuffix(".log")] += 1
    return [
        {key: start[key] for key in ("command", "commit", "dirty")}
        | {"started": _utc(first), "finished": _utc(last), "seconds": round(last - first, 1)}
        | {"jobs": dict(sorted(count.items()))}
        for start, first, last, count in zip(starts, begun, ended, jobs, strict=True)
        if count
    ]


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def git_state(root: Path) -> dict[str, Any]:
    """`commit` and `dirty` (tracked files differ) of the checkout whose top is `root`; both None where unknown."""
    top, commit = _git(root, "rev-parse", "--show-toplevel"), _git(root, "rev-parse", "HEAD")
    # A checkout that merely lies inside another repository says nothing about this code.
    if not top or not commit or Path(top).resolve() != root.resolve():
        return {"commit": None, "dirty": None}
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _git(root: Path, *arguments: str) -> str | None:
    """Output of a git command in `root`; None without git, outside a repository, or without an answer."""
    # Variables that a hook or a CI job sets would point git at another repository than `root`.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, env=environment)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def machine() -> dict[str, Any]:
    """System, CPU model, cores and memory (GiB) of this machine, and not its name."""
    information = Path("/proc/cpuinfo")
    text = information.read_text(errors="replace") if information.is_file() else ""
    model = re.search(r"model name\s*: (.*)", text)
    return {
        "system": platform.system(),
        "release": platform.release().partition("-")[0],  # what a builder of kernels appends may name a place
        "architecture": platform.machine(),
        "cpu": model[1] if model else platform.processor() or None,
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def _trained_on(device: str, folder: Path) -> dict[str, Any]:
    """The device, and for CUDA what the jobs noted of their GPUs: the machine that plans may have none."""
    return {"device": device} | ({"cards": cards(folder / "trials")} if device.startswith("cuda") else {})


def _device_of(recorded: Mapping[str, Any]) -> str:
    """The device of a run: CUDA where one of its experiments is trained on it."""
    named = [experiment.get("device") for experiment in (recorded.get("experiments") or {}).values() if experiment]
    used = [device or recorded["device"] for device in named] or [recorded["device"]]
    return next((device for device in used if device.startswith("cuda")), used[0])


def recordable(config: Any, root: Path) -> Any:
    """A configuration as it may be committed: no credentials in addresses, no home folders in paths."""
    if isinstance(config, Mapping):
        return {_scrub(key, root): recordable(value, root) for key, value in config.items()}
    if isinstance(config, list):
        return [recordable(value, root) for value in config]
    return _scrub(config, root) if isinstance(config, str) else config


def _scrub(text: str, root: Path) -> str:
    """`text` with paths in the checkout relative to it, home folders as ~, and no credentials in addresses."""
    text = without_credentials(text)
    for folder, short in ((str(root.resolve()), "."), (str(root), "."), (str(Path.home()), "~")):
        if len(folder) > 1:  # neither "/" nor "." stands for a folder worth hiding
            text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", short, text)
    return _HOME.sub("~", text)
