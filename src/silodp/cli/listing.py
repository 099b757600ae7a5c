"""The command `silodp list`."""

import textwrap

import click
from tabulate import tabulate

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import command
from silodp.config.errors import project_root
from silodp.config.loading import read_experiment
from silodp.datasets import DATASETS
from silodp.report.paper_figures import paper_figures


@command("list", epilog="Example: silodp list figures")
@click.argument("kind", type=click.Choice(("experiments", "algorithms", "datasets", "figures")), required=False)
def listing(kind: str | None) -> None:
    """List the names that a run file or a command may use, all kinds or one."""
    tables = {name: rows for name, rows in _tables().items() if kind in (None, name)}
    for name, rows in tables.items():
        print(f"{name}:")
        print(textwrap.indent(tabulate([row.values() for row in rows], tablefmt="plain"), "  "))


def _tables() -> dict[str, list[dict[str, str]]]:
    folder = project_root() / "config" / "experiments"
    texts = {path.stem: read_experiment(folder, path) for path in sorted(folder.glob("*.yaml"))}
    return {
        "experiments": [
            {"name": name, "title": text.get("title", ""), "paper": text.get("paper", "")}
            for name, text in texts.items()
        ],
        "algorithms": [{"name": name} for name in sorted(ALGORITHMS)],
        "datasets": [
            {"name": name, "from": "ships with scikit-learn" if dataset.embedded else f"silodp fetch {name}"}
            for name, dataset in sorted(DATASETS.items())
        ],
        "figures": [
            {"name": panel.name, "figure": f"{panel.paper}, {panel.title}"}
            | {"experiment": panel.experiment, "file": panel.file}
            for panel in paper_figures()
        ],
    }
