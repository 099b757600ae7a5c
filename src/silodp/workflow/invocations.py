"""The invocations that a run was made in: the command a person typed, when, from which commit, which jobs were done.

The Snakefile notes their starts and ends in `logs/invocations.json` of the run's folder. What an invocation did is read
from the logs of its jobs, so that one that was killed is counted as well; a job that was done again counts where its
last result comes from.
"""

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from silodp.datasets.addresses import without_credentials
from silodp.files import read_json, write_text

# What a person typed, handed on by `make` and `silodp rebuild`.
COMMAND_VARIABLE = "SILODP_COMMAND"
_NAME = "invocations.json"


def begin(folder: Path | str, git: Mapping[str, Any]) -> None:
    """Note that an invocation starts to do jobs of the run in `folder`, from the state `git` of the checkout."""
    noted = _noted(folder)
    one = {"command": _typed(), "started": datetime.now(UTC).isoformat(), "finished": None, "completed": None}
    _write(folder, [*noted, one | dict(git)])


def end(folder: Path | str, completed: bool) -> None:
    """Note that the last invocation has ended, and whether all its jobs succeeded."""
    noted = _noted(folder)
    if noted:
        noted[-1] |= {"finished": datetime.now(UTC).isoformat(), "completed": completed}
        _write(folder, noted)


def done(folder: Path | str) -> list[dict[str, Any]]:
    """Invocations that results of the run come from, oldest first.

    Each has `command`, `commit`, `dirty`, `started` and `finished` (aware datetimes; of one that was killed, and of the
    one at work, the end of its last job), `completed` (None for these two) and `jobs`: number by kind of job, which is
    the first part of a log's path.
    """
    found: list[dict[str, Any]] = []
    for one in _noted(folder):
        ended = one["finished"] and datetime.fromisoformat(one["finished"])
        found.append(one | {"started": datetime.fromisoformat(one["started"]), "finished": ended, "jobs": Counter()})
    logs = Path(folder) / "logs"
    for path in sorted(logs.rglob("*.log")):
        when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        before = [one for one in found if one["started"] <= when]
        if before:
            of = before[-1]
            of["jobs"][path.relative_to(logs).parts[0].removesuffix(".log")] += 1
            if of["completed"] is None:
                of["finished"] = max(of["finished"] or when, when)
    return [one | {"jobs": dict(sorted(one["jobs"].items()))} for one in found if one["jobs"]]


def _typed() -> str:
    handed_on = os.environ.get(COMMAND_VARIABLE, "").strip()
    return without_credentials(handed_on or shlex.join([PurePath(sys.argv[0]).name, *sys.argv[1:]]))


def _noted(folder: Path | str) -> list[dict[str, Any]]:
    return read_json(Path(folder) / "logs" / _NAME).get("invocations", [])


def _write(folder: Path | str, noted: list[dict[str, Any]]) -> None:
    write_text(json.dumps({"invocations": noted}, indent=1) + "\n", Path(folder) / "logs" / _NAME)
