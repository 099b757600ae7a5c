"""What runs is what was planned: a rebuild freezes its plan, and a job refuses to work where its digest is another."""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from silodp import files
from silodp.config.errors import ConfigError
from silodp.config.loading import PLUGIN_COPIES
from silodp.experiments.validation import load
from silodp.workflow.closure import Sources
from silodp.workflow.plan import Plan

_FOLDER = Path(".snakemake") / "silodp"
_SOURCES = "sources.json"


def frozen_file(run_file: Path | str) -> Path:
    """Where the plan of a run file is frozen; a name without any character of the run file's."""
    return _FOLDER / f"{zlib.crc32(os.fspath(run_file).encode()):08x}" / "run.json"


def make_plan(run_file: Path | str, folder: str | None, frozen: bool) -> Plan:
    """The plan of a run file, the one that the rebuild froze if `frozen`; ConfigError where the run file is wrong."""
    place = frozen_file(run_file)
    frozen = frozen and place.is_file()
    plan = Plan(load(place if frozen else run_file), folder=folder)
    plan.sources = Sources(plan.plugin_roots(), snapshot=place.parent / _SOURCES, frozen=frozen)
    return plan


def freeze(plan: Plan, run_file: Path | str) -> None:
    """Write what jobs read: the checked run file, copies of its plug-ins, and the state of the source files."""
    place = frozen_file(run_file)
    for plugin in plan.resolved.plugins:
        files.write_text(plugin.read_text(encoding="utf-8"), place.parent / PLUGIN_COPIES / plugin.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    # The address of a mirror may hold a password.
    temporary = place.with_suffix(f".{os.getpid()}")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(plan.resolved.dump()), encoding="utf-8")
    temporary.replace(place)
    plan.sources.save(place.parent / _SOURCES)


def hold(digest: str, run_file: Path, job: str, options: Mapping[str, Any], folder: Path | str | None = None) -> None:
    """Refuse, now and before each write, a job whose digest is not the plan's; `job`, `options` as for `digest_of`."""
    plan = Plan(load(run_file))
    if folder is not None and Path(folder) != Path(plan.folder):
        plan = Plan(plan.resolved, folder=os.fspath(folder))

    def check() -> None:
        plan.sources = Sources(plan.plugin_roots(), snapshot=run_file.parent / _SOURCES)
        if plan.digest_of(job, **options) != digest:
            raise ConfigError(
                f"command line: --digest: {digest[:12]}: code, data or claims have changed since the rebuild was "
                "planned: start the rebuild again"
            )

    check()
    files.before_rename.append(check)
