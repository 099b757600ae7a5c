"""How a command starts: its files are looked at before its work."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from silodp.config.errors import ConfigError
from silodp.workflow.ending import exit_code_of, start

# Commands that hold a plug-in to the agreed SHA-256 before it runs.
_AGREED = "silo", "federate"


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
    """Run a command's function; returns its exit code."""

    def work() -> int | None:
        start(context.meta.get("quiet", False), context.meta.get("plugin", ()), context.info_name not in _AGREED)
        _check_files(context.params, context.command.params)
        return function(context)

    return exit_code_of(context.command_path, work, context.meta.get("verbose", False))
