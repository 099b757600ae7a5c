"""Subcommands of the workflow: fetch, partition, train, select, privacy, table, figure, provenance, report, config."""

import argparse
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from silodp.cli.parser import near
from silodp.config.errors import ConfigError
from silodp.config.loading import Resolved
from silodp.experiments.validation import load

log = logging.getLogger("silodp")


def experiment_command(add: Callable, name: str, function: Callable, text: str) -> argparse.ArgumentParser:
    sub = add(name, function, text)
    sub.add_argument("run_file", type=Path, help="as in config/default.yaml")
    sub.add_argument("experiment", help="an experiment of the run file")
    return sub


def resolved_with(options: argparse.Namespace) -> Resolved:
    """The checked run file, which has the experiment that is asked for."""
    resolved = load(options.run_file)
    if options.experiment not in resolved.experiments:
        known = ", ".join(resolved.experiments)
        raise ConfigError(
            f"{options.run_file}: experiments.{options.experiment}: not in this run: must be one of {known}"
            + near(options.experiment, resolved.experiments)
        )
    return resolved


def among(kind: str, value: str, allowed: Iterable[str]) -> str:
    allowed = list(allowed)
    if value not in allowed:
        raise ConfigError(f"command line: {kind}: {value!r}: must be one of {', '.join(allowed)}{near(value, allowed)}")
    return value
