"""The subcommand `silodp contract`: whether a plug-in offers what everything that is registered must offer."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from silodp.algorithms import ALGORITHMS
from silodp.datasets import DATASETS
from silodp.experiments import plugins


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add this subcommand with `add(name, function, help)`."""
    sub = add("contract", contract, "test an algorithm or a data set of one's own against what all must offer")
    sub.add_argument("file", type=Path, help="a plug-in, as in my_algorithm.py")
    sub.add_argument("--json", action="store_true", help="print JSON")


def contract(options: argparse.Namespace) -> int:
    """Test what a plug-in brings: a line a check, and exit code 1 for a fault.

    That an algorithm's messages are as noisy as its plan says is tested by `silodp audit`.
    """
    from silodp.experiments.contract import results  # loads PyTorch

    plugins.named([str(options.file)])
    plugins.use()
    told = []
    for one in sorted(plugins.brought_by(options.file)):
        entry = ALGORITHMS[one.name] if one.registry == "silodp.algorithms" else DATASETS[one.name]
        for check, fault in results(entry):
            told.append({"name": one.name, "check": check, "fault": fault or None})
            if not options.json:
                print(f"{'BAD' if fault else 'ok':<4}{one.name} {check}{': ' if fault else ''}{fault}")
    if options.json:
        print(json.dumps(told, indent=1))
    return int(any(one["fault"] for one in told))
