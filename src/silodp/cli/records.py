"""The commands on finished runs: publish, verify, clean."""

import logging
from collections.abc import Sequence
from pathlib import Path

import click

from silodp.cli.options import PATH, command
from silodp.workflow import contents, engine
from silodp.workflow.publishing import publish as copy


@command(epilog="Example: silodp publish results/paper")
@click.argument("folders", metavar="FOLDER...", type=PATH, nargs=-1, required=True)
@click.option("--output", type=PATH, default="results/published", help="Folder to write.", show_default=True)
@click.option("--beside", is_flag=True, help="Keep experiments of other runs that are published there.")
@click.option("--without", multiple=True, help="With --beside: a run whose experiments are no longer published there.")
def publish(folders: Sequence[Path], output: Path, beside: bool, without: Sequence[str]) -> None:
    """Copy tables, figures and provenance of finished runs, as in results/paper, to a folder that is committed."""
    copy(folders, output, beside=beside, without=without)


log = logging.getLogger("silodp")

runs = click.argument("runs", metavar="RUN...", nargs=-1, required=True)


@command(epilog="Example: silodp verify results/published")
@runs
def verify(runs: Sequence[str]) -> int:
    """Check that every file of finished runs is there and unchanged, by the run's manifest.

    RUN is a run's name or a results folder. Prints a line for each fault; exit code 1 where there is one.
    """
    seen = {str(folder): contents.verified(folder) for folder in map(contents.results_folder, runs)}
    for folder, run in seen.items():
        for line in run["problems"]:
            print(line)
        if strangers := run["strangers"]:
            shown = ", ".join(strangers[:3]) + (", …" if strangers[3:] else "")
            log.warning(
                "%s: %d files that config.json does not name (%s): see `silodp clean`", folder, len(strangers), shown
            )
        if not run["problems"]:
            log.info("%s: %d files are complete and unchanged", folder, run["files"])
    return int(any(run["problems"] for run in seen.values()))


@command(epilog="Example: silodp clean default --dry-run")
@runs
@click.option("--all", "whole", is_flag=True, help="Remove the run's whole folder.")
@click.option("--dry-run", is_flag=True, help="Name what would be removed, and remove nothing.")
def clean(runs: Sequence[str], whole: bool, dry_run: bool) -> None:
    """Remove files of experiments, settings and readings that a run's config.json no longer names; or the whole run.

    RUN is a run's name or a results folder. A publication is never removed.
    """
    # All folders are checked before the first is touched.
    folders = [contents.results_folder(run) for run in runs]
    with engine.results_locked(*folders):
        chosen = {folder: contents.removable(folder) if whole else contents.leftovers(folder) for folder in folders}
        for folder, names in chosen.items():
            if not dry_run:
                contents.remove(folder, names)
            for name in names:
                print(folder / name)
