"""The command `report`."""

import os
from pathlib import Path

import click

from silodp.cli.options import PATH, job_command, output
from silodp.config.errors import ConfigError
from silodp.report.page.build import build


@job_command()
@click.argument("folder", type=PATH)
@output
def report(folder: Path, output: Path) -> None:
    """Build the self-contained report page of the run in FOLDER."""
    if not folder.is_dir():
        raise ConfigError(f"command line: folder: {os.fspath(folder)!r}: must be a run's results folder")
    build(folder, output)
