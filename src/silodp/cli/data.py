"""The command `silodp fetch`."""

from collections.abc import Sequence

import click

from silodp.cli.options import command
from silodp.datasets import DATASETS
from silodp.jobs.fetch import fetch as get


@command(epilog="Example: silodp fetch mnist")
@click.argument("names", metavar="DATASET...", nargs=-1, required=True)
def fetch(names: Sequence[str]) -> None:
    """Download the files of data sets, or of `all`, and check their SHA-256.

    The mirror (SILODP_DATA_MIRROR) is tried first, then the official address; SILODP_DATA_CACHE names their folder.
    """
    get(list(DATASETS) if list(names) == ["all"] else names)
