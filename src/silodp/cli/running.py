"""How a command starts and ends: logging, environment, plug-ins, and errors as one line with an exit code."""

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from silodp.config.errors import ConfigError
from silodp.datasets.own.schema import TableError
from silodp.datasets.sources import without_credentials
from silodp.extending import plugins
from silodp.workflow.engine import set_environment

log = logging.getLogger("silodp")


def _check_files(values: Mapping[str, Any], parameters: Sequence[click.Parameter]) -> None:
    """ConfigError where a file is a pipe, which would be waited for, or --output an input, which would be replaced."""
    output = values.get("output")
    if isinstance(output, Path):
        # Before the work, not after it.
        there = next(place for place in (output.absolute(), *output.absolute().parents) if place.exists())
        if there != output.absolute() and not (there.is_dir() and os.access(there, os.W_OK)):
            raise ConfigError(f"command line: --output: '{output}': {there}: must be a folder where a file can be made")
    for parameter in parameters:
        name = parameter.name or ""
        given = (values.get(name) or ()) if isinstance(parameter.type, click.Path) else ()
        for path in given if isinstance(given, tuple) else (given,):
            if path.exists() and not path.is_file() and not path.is_dir():
                raise ConfigError(f"command line: {name}: {str(path)!r}: is a pipe or a device: must be a file")
            is_input = name != "output" and path.is_file()
            if is_input and isinstance(output, Path) and output.exists() and output.samefile(path):
                raise ConfigError(f"command line: --output: {str(path)!r}: is {name}: must be another file")


def run(context: click.Context, function: Callable[[click.Context], int | None]) -> int:
    """Run a command's function; returns its exit code: 2 for bad input, 1 for a fault of the machine, both in one line.

    Any other exception is a fault of the program and keeps its traceback.
    """
    # Other libraries report warnings only.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", force=True)
    log.setLevel(logging.WARNING if context.meta.get("quiet") else logging.INFO)
    try:
        set_environment()
        if context.meta.get("plugin"):
            plugins.set_command_line(context.meta["plugin"])
        plugins.activate()
        _check_files(context.params, context.command.params)
        if digest := context.meta.get("digest"):
            from silodp.workflow.job_digest import hold  # plans the run, which other commands need not do

            options, command = context.params, context.info_name or ""
            folder = options.get("run", options.get("folder")) if command in ("claims", "report") else None
            plan = context.meta.get("plan") or options["run_file"]
            hold(digest, plan, command, options, folder)
        code = function(context) or 0
        if sys.stdout:  # None where it is closed
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        raise
    except (MemoryError, RuntimeError) as error:
        # PyTorch says so in words alone.
        if context.meta.get("verbose") or not (isinstance(error, MemoryError) or "allocate memory" in str(error)):
            raise
        print(f"{context.command_path}: memory: too little is free: must be more, or a smaller run", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        if context.meta.get("verbose"):
            raise
        unreadable = isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError))
        text = without_credentials(str(error))
        # Errors of the parquet reader name the file in their text only.
        if isinstance(error, OSError) and error.filename:
            text = f"{error.filename}: {error.strerror}"
        # A table may have several faults, each a line.
        for line in text.split("\n") if isinstance(error, TableError) else [text]:
            words = " ".join(line.split()) + (": must be a readable file" if unreadable else "")
            print(f"{context.command_path}: {words}", file=sys.stderr)
        return 2 if unreadable or isinstance(error, ValueError) else 1
