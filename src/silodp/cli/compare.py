"""The commands that compare algorithms trial by trial: comparisons, compare."""

from collections.abc import Sequence
from pathlib import Path

import click

from silodp.cli.options import PATH, command, job_command, output
from silodp.experiments import plugins
from silodp.files import PRIVACY_COLUMNS, REPORTED_COLUMNS, read_csv, read_table, with_reading, write_csv
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.models import PairedDifference
from silodp.verdicts.comparisons import compare as paired
from silodp.verdicts.comparisons import headline


@job_command()
@click.argument("reported", metavar="CSV...", type=PATH, nargs=-1, required=True)
@click.option("--privacy", type=PATH, help="The run's privacy.csv: finds rows of the same algorithm.")
@output
def comparisons(reported: Sequence[Path], privacy: Path | None, output: Path) -> None:
    """Compare SPIDER, minibatch SGD and local SGD in pairs in every experiment, with the claims' tolerances."""
    tolerances: dict[frozenset[str], float] = {}
    for claim in load_claims():
        if isinstance(claim.statistic, PairedDifference):
            for pair in claim.statistic.pairs:
                both = frozenset((pair.first, pair.second))
                # The strictest that a claim states about the pair.
                if pair.tolerance > 0:
                    tolerances[both] = min(pair.tolerance, tolerances.get(both, pair.tolerance))
    tables = {file.stem: read_table(file, REPORTED_COLUMNS) for file in reported}
    plans = with_reading(read_table(privacy, PRIVACY_COLUMNS)) if privacy else None
    own = sorted(plugin.name for plugin in plugins.in_use() if plugin.registry == "silodp.algorithms")
    write_csv(headline(tables, tolerances, plans, own), output)


@command(epilog="Example: silodp compare results/published/reported/mnist_mlp.csv spider minibatch_sgd")
@click.argument("reported", metavar="CSV", type=PATH)
@click.argument("first")
@click.argument("second")
@click.option("--output", type=PATH, help="CSV file to write; without one the table is printed.")
def compare(reported: Path, first: str, second: str, output: Path | None) -> None:
    """Compare the test errors of two algorithms trial by trial: difference, interval, and which is better.

    One row for each reading, (M, R) and epsilon. local_sgd:non_private is the algorithm without noise.
    """
    rows = paired(read_csv(reported, REPORTED_COLUMNS), first, second)
    if output:
        write_csv(rows, output)
    else:
        print(rows.drop(columns="experiment").to_string(index=False, float_format=lambda value: f"{value:.4g}"))
