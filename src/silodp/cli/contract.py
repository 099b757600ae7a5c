"""The command `silodp contract`."""

import json
from pathlib import Path

import click

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import PATH, as_json, command
from silodp.datasets import DATASETS
from silodp.experiments import plugins
from silodp.experiments.contract import results


@command(epilog="Example: silodp contract my_algorithm.py")
@click.argument("file", type=PATH)
@as_json
def contract(file: Path, as_json: bool) -> int:
    """Test whether the plug-in FILE offers what every algorithm or data set must offer.

    Exit code 1 where a check fails. `silodp audit` tests whether messages are as noisy as an algorithm's plan says.
    """
    plugins.set_command_line([str(file)])
    plugins.activate()
    rows = []
    for entry in sorted(plugins.brought_by(file)):
        value = ALGORITHMS[entry.name] if entry.registry == "silodp.algorithms" else DATASETS[entry.name]
        for check, fault in results(value):
            rows.append({"name": entry.name, "check": check, "fault": fault or None})
            if not as_json:
                print(f"{'BAD' if fault else 'ok':<4}{entry.name} {check}{': ' if fault else ''}{fault}")
    if as_json:
        print(json.dumps(rows, indent=1))
    return int(any(row["fault"] for row in rows))
