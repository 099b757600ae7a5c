"""The command `silodp contract`."""

from pathlib import Path

import click

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import PATH, command
from silodp.datasets import DATASETS
from silodp.extending import plugins
from silodp.extending.contract import results


@command(epilog="Example: silodp contract my_algorithm.py")
@click.argument("file", type=PATH)
def contract(file: Path) -> int:
    """Test whether the plug-in FILE offers what every algorithm or data set must offer.

    Exit code 1 where a check fails. `silodp audit` tests whether messages are as noisy as an algorithm's plan says.
    """
    plugins.set_command_line([str(file)])
    plugins.activate()
    faults = 0
    for entry in sorted(plugin for plugin in plugins.in_use() if plugin.root == file.resolve()):
        value = ALGORITHMS[entry.name] if entry.registry == "silodp.algorithms" else DATASETS[entry.name]
        for check, fault in results(value):
            faults += bool(fault)
            print(f"{'BAD' if fault else 'ok':<4}{entry.name} {check}{': ' if fault else ''}{fault}")
    return int(faults > 0)
