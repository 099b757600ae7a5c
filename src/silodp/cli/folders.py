"""The commands on folders of results: verify, clean."""

import json
import logging
from collections.abc import Sequence

import click

from silodp.cli.options import as_json, command
from silodp.workflow import contents

log = logging.getLogger("silodp")

runs = click.argument("runs", metavar="RUN...", nargs=-1, required=True)


@command(epilog="Example: silodp verify results/published")
@runs
@as_json
def verify(runs: Sequence[str], as_json: bool) -> int:
    """Check that every file of finished runs is there and unchanged, by the run's manifest.

    RUN is a run's name or a results folder. Prints a line for each fault; exit code 1 where there is one.
    """
    seen = {str(folder): contents.verified(folder) for folder in map(contents.results_folder, runs)}
    if as_json:
        print(json.dumps(seen, indent=1))
        return int(any(run["problems"] for run in seen.values()))
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
@as_json
def clean(runs: Sequence[str], whole: bool, dry_run: bool, as_json: bool) -> None:
    """Remove files of experiments, settings and readings that a run's config.json no longer names; or the whole run.

    RUN is a run's name or a results folder. A publication is never removed. JSON lists the removed files by folder,
    "." for the folder itself.
    """
    # All folders are checked before the first is touched.
    folders = map(contents.results_folder, runs)
    chosen = {folder: contents.removable(folder) if whole else contents.leftovers(folder) for folder in folders}
    for folder, names in chosen.items():
        if not dry_run:
            contents.remove(folder, names)
        for name in [] if as_json else names:
            print(folder / name)
    if as_json:
        removed = {str(folder): names for folder, names in chosen.items()}
        print(json.dumps({"dry_run": dry_run, "removed": removed}, indent=1))
