"""The subcommand `silodp list`: which experiments, algorithms, data sets and figures there are."""

import argparse
import json
from collections.abc import Callable

from silodp.algorithms import ALGORITHMS
from silodp.cli.parser import aligned
from silodp.config.errors import project_root
from silodp.config.loading import read_experiment
from silodp.datasets import DATASETS
from silodp.report.paper_figures import paper_figures

KINDS = ("experiments", "algorithms", "datasets", "figures")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add this subcommand with `add(name, function, help)`."""
    sub = add("list", listing, "experiments, algorithms, data sets and the papers' figures")
    sub.add_argument("kind", nargs="?", choices=KINDS, help="default: all")
    sub.add_argument("--json", action="store_true", help="print JSON")


def listing(options: argparse.Namespace) -> None:
    """List what can be named in a run file or on the command line."""
    tables = {kind: _TABLES[kind]() for kind in ([options.kind] if options.kind else KINDS)}
    if options.json:
        print(json.dumps(tables, indent=1, ensure_ascii=False))
        return
    for kind, rows in tables.items():
        print(f"{kind}:")
        print("\n".join(f"  {line}" for line in aligned(rows, heading=False).splitlines()))


def _experiments() -> list[dict[str, str]]:
    found, folder = [], project_root() / "config" / "experiments"
    for path in sorted(folder.glob("*.yaml")):
        read = read_experiment(folder, path)
        found.append({"name": path.stem, "title": read.get("title", ""), "paper": read.get("paper", "")})
    return found


def _algorithms() -> list[dict[str, str]]:
    from silodp.report.figures.style import label

    return [{"name": name, "title": label(name)} for name in sorted(ALGORITHMS)]


def _datasets() -> list[dict[str, str]]:
    return [
        {"name": name, "from": "ships with scikit-learn" if one.embedded else f"silodp fetch {name}"}
        for name, one in sorted(DATASETS.items())
    ]


def _figures() -> list[dict[str, str]]:
    return [
        {"name": one.name, "figure": f"{one.paper}, {one.title}", "experiment": one.experiment, "file": one.file}
        for one in paper_figures()
    ]


_TABLES: dict[str, Callable[[], list[dict[str, str]]]] = {
    "experiments": _experiments,
    "algorithms": _algorithms,
    "datasets": _datasets,
    "figures": _figures,
}
