"""Subcommands of run files: rebuild, config."""

import argparse
import dataclasses
import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from silodp.cli import warm
from silodp.config.errors import ConfigError
from silodp.experiments.validation import load
from silodp.workflow import engine
from silodp.workflow.invocations import COMMAND_VARIABLE

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("rebuild", rebuild, "run the workflow of a run file")
    sub.add_argument("run_file", type=Path, help="as in config/default.yaml")
    sub.add_argument("--cores", help="cores used at once (default: the profile's, which is all for a local run)")
    sub.add_argument("--profile", default="workflow/profiles/default", help="Snakemake profile")
    sub.set_defaults(arguments=[])
    sub.epilog = "What follows -- goes to Snakemake: targets and its options, as in `-- figures --dry-run`."

    sub = add("cost", cost, "what a rebuild of a run file would take: jobs, runs, operations, time, memory, disk")
    sub.add_argument("run_file", type=Path, help="as in config/default.yaml")
    sub.add_argument("--cores", type=int, help="cores used at once (default: all)")
    sub.add_argument("--json", action="store_true", help="print JSON")

    sub = add("config", config, "check a run file, or print the schema or the reference of all keys")
    sub.add_argument("action", choices=["check", "schema", "reference"])
    sub.add_argument("run_file", type=Path, nargs="?", help="the file to check")


def cost(options: argparse.Namespace) -> None:
    """Say what a rebuild from nothing would take; refused, as the rebuild would be, above the run file's limits."""
    from silodp.workflow import cost as costs
    from silodp.workflow.plan import Plan

    plan = Plan(load(options.run_file))
    found = costs.estimate(plan, options.cores or os.cpu_count() or 1, costs.measured_rate())
    print(json.dumps(dataclasses.asdict(found), indent=1) if options.json else found.text())
    costs.refuse(plan, found, Path.cwd())


def rebuild(options: argparse.Namespace) -> int:
    """Run the workflow of a run file: what is finished stays, what is missing or stale is made.

    Two rebuilds of a folder are kept apart, also after the first one's parent was killed; what was killed is simply
    started again. A signal ends the jobs too.
    """
    from silodp.workflow import cost as costs
    from silodp.workflow.contents import PUBLICATION
    from silodp.workflow.plan import Plan

    plan = Plan(load(options.run_file))
    # Nothing is trained for a publication.
    if not (options.run_file.parent / PUBLICATION).is_file():
        cores = int(options.cores) if (options.cores or "").isdigit() else os.cpu_count() or 1
        expected = costs.estimate(plan, cores, costs.measured_rate(0.3))
        log.info("%s, from nothing: %s", options.run_file, expected.text())
        costs.refuse(plan, expected, Path.cwd())
    return run_workflow(options.run_file, options.profile, options.cores, options.arguments, options.words)


def run_workflow(
    run_file: Path, profile: str, cores: str | None, arguments: Sequence[str], words: Sequence[str]
) -> int:
    """Run Snakemake on a run file; returns its exit code.

    Args:
        run_file: checked already.
        profile: Snakemake's.
        cores: used at once; None for what the profile says.
        arguments: targets and options of Snakemake's own.
        words: what a person typed behind `silodp`, for the provenance.

    Raises:
        BusyError: another rebuild runs in this folder.
    """
    with engine.only_one() as lock:
        bin_folder = str(Path(sys.executable).parent)
        environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"}
        # Threads of BLAS and OpenMP would multiply with jobs side by side; the run file sets a job's threads.
        environment.setdefault("OMP_NUM_THREADS", "1")
        # `make` hands on its own command, which is what a person typed.
        environment.setdefault(COMMAND_VARIABLE, shlex.join(["silodp", *words]))
        # First, as it takes all words up to the next option: targets would be taken for configuration files.
        command = [sys.executable, "-m", "silodp.workflow.scheduling", "--configfile", os.fspath(run_file)]
        command += ["--profile", profile]
        # On a cluster this bounds all jobs together, so it is passed on only where it is asked for.
        command += ["--cores", cores] if cores else []
        local = nullcontext(environment) if engine.on_cluster(Path(profile)) else warm.jobs_from_one(environment)
        with local as environment:
            return engine.run([*command, *arguments], environment, lock, Path(profile))


def config(options: argparse.Namespace) -> None:
    """Check a run file, or print the JSON schema or the reference page of all keys."""
    from silodp.cli import reference as pages

    if options.action == "schema":
        print(pages.schema_text(), end="")
    elif options.action == "reference":
        print(pages.reference_text(), end="")
    else:
        if options.run_file is None:
            raise ConfigError("command line: run_file: missing: must name the file to check")
        resolved = load(options.run_file)
        log.info("%s: %d experiments, all checks passed", options.run_file, len(resolved.experiments))
