"""The command `silodp claims`: the papers' claims by the tables of a run, or two algorithms trial by trial."""

import logging
from pathlib import Path

import click
import pandas as pd
from tqdm import tqdm

from silodp.cli.options import FILE, command
from silodp.config.errors import ConfigError, among
from silodp.experiments.columns import REPORTED_COLUMNS
from silodp.files import NON_PRIVATE, read_csv, write_csv
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.deciding import decide
from silodp.verdicts.claims.rows import is_corrected, text
from silodp.verdicts.comparisons import compare
from silodp.verdicts.words import Verdict
from silodp.workflow.contents import results_folder

log = logging.getLogger("silodp")


@command(epilog="Example: silodp claims results/published --pair spider minibatch_sgd")
@click.argument("run")
@click.option("--output", type=FILE, help="CSV file to write; without one the rows are printed.")
@click.option("--pair", nargs=2, metavar="A B", help="Compare two algorithms in place of the claims.")
def claims(run: str, output: Path | None, pair: tuple[str, str] | None) -> None:
    """Judge every claim of config/claims by the tables of RUN: a results folder or a run's name.

    With --pair, the test errors of two algorithms trial by trial: difference, interval, and which is better, a row for
    each experiment, reading, (M, R) and epsilon. local_sgd:non_private is the algorithm without noise.
    """
    folder = results_folder(run)
    if output and folder.resolve() in output.resolve().parents:
        raise ConfigError(f"command line: --output: '{output}': must lie outside of the run, whose tables are read")
    if pair:
        _write_pair(folder, *pair, output)
        return
    if not any((folder / "tables").glob("*.csv")):
        raise ConfigError(f"{folder}: tables: missing: must be a folder of results")
    hidden = not log.isEnabledFor(logging.INFO) or None
    known = tqdm(load_claims(), desc="claims", unit="claim", disable=hidden, leave=False)
    table = decide(known, RunFolder(folder))
    if output:
        write_csv(table, output)
    else:
        print(text(table))
    verdicts = table[~is_corrected(table)]["verdict"]
    counts = ", ".join(f"{(verdicts == verdict).sum()} {verdict}" for verdict in Verdict)
    log.info("%d claims: %s", len(verdicts), counts)


def _write_pair(folder: Path, first: str, second: str, output: Path | None) -> None:
    files = sorted((folder / "reported").glob("*.csv"))
    if not files:
        raise ConfigError(f"{folder}: reported: missing: must be a folder of results")
    trials = pd.concat([read_csv(file, REPORTED_COLUMNS) for file in files], ignore_index=True)
    known = sorted({*trials["algorithm"], *(f"{name}{NON_PRIVATE}" for name in trials["algorithm"].unique())})
    rows = compare(trials, among("--pair", first, known), among("--pair", second, known))
    if output:
        write_csv(rows, output)
    else:
        print(rows.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
