"""The command `silodp list`."""

import sys
import textwrap

import click
from tabulate import tabulate

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import command
from silodp.config.loading import known_experiments
from silodp.datasets import DATASETS
from silodp.report.paper_figures import paper_figures


def source_of(algorithm: str) -> str:
    """The first line of an algorithm's file, which names its paper; empty where a plug-in says nothing."""
    return (sys.modules[ALGORITHMS[algorithm].__module__].__doc__ or "").partition("\n")[0]


@command("list", epilog="Example: silodp list figures")
@click.argument("kind", type=click.Choice(("experiments", "algorithms", "datasets", "figures")), required=False)
def listing(kind: str | None) -> None:
    """List the names that a run file or a command may use, all kinds or one."""
    known, figures = sorted(known_experiments().items()), paper_figures()
    tables: dict[str, list[tuple]] = {
        "experiments": [(name, keys.get("title", ""), keys.get("paper", "")) for name, keys in known],
        "algorithms": [(name, source_of(name)) for name in sorted(ALGORITHMS)],
        "datasets": [
            (name, "ships with scikit-learn" if dataset.embedded else f"silodp fetch {name}", dataset.citation)
            for name, dataset in sorted(DATASETS.items())
        ],
        "figures": [(each.name, f"{each.paper}, {each.title}", each.experiment, each.file) for each in figures],
    }
    for name, rows in tables.items():
        if kind in (None, name):
            print(f"{name}:")
            print(textwrap.indent(tabulate(rows, tablefmt="plain"), "  "))
