"""The commands that judge: comparisons and compare trial by trial, claims by the tables of a run."""

import logging
from collections.abc import Sequence
from pathlib import Path

import click
from tqdm import tqdm

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import PATH, among, command, job_command, output
from silodp.config.errors import ConfigError
from silodp.experiments.columns import PRIVACY_COLUMNS, REPORTED_COLUMNS
from silodp.files import NON_PRIVATE, read_csv, read_table, with_reading, write_csv
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.claim_files import load_claims, read_protocol
from silodp.verdicts.claims.deciding import decide
from silodp.verdicts.claims.rows import is_corrected, markdown, text
from silodp.verdicts.comparisons import compare as paired
from silodp.verdicts.comparisons import headline
from silodp.verdicts.words import Verdict
from silodp.workflow.contents import results_folder

log = logging.getLogger("silodp")


@job_command()
@click.argument("reported", metavar="CSV...", type=PATH, nargs=-1, required=True)
@click.option("--privacy", type=PATH, help="The run's privacy.csv: finds rows of the same algorithm.")
@output
def comparisons(reported: Sequence[Path], privacy: Path | None, output: Path) -> None:
    """Compare SPIDER, minibatch SGD and local SGD in pairs in every experiment, with the margins of decided.yaml."""
    margins = {name: about["margin"] for name, about in read_protocol()["data_sets"].items()}
    tables = {file.stem: read_table(file, REPORTED_COLUMNS) for file in reported}
    plans = with_reading(read_table(privacy, PRIVACY_COLUMNS)) if privacy else None
    write_csv(headline(tables, margins, plans, sorted(ALGORITHMS.own)), output)


@command(epilog="Example: silodp compare results/published/reported/mnist_mlp.csv spider minibatch_sgd")
@click.argument("reported", metavar="CSV", type=PATH)
@click.argument("first")
@click.argument("second")
@click.option("--output", type=PATH, help="CSV file to write; without one the table is printed.")
def compare(reported: Path, first: str, second: str, output: Path | None) -> None:
    """Compare the test errors of two algorithms trial by trial: difference, interval, and which is better.

    One row for each reading, (M, R) and epsilon. local_sgd:non_private is the algorithm without noise.
    """
    if not reported.is_file():
        raise ConfigError(f"command line: CSV: '{reported}': must be a file as RUN/reported/NAME.csv")
    trials = read_csv(reported, REPORTED_COLUMNS)
    known = sorted({*trials["algorithm"], *(f"{name}{NON_PRIVATE}" for name in trials["algorithm"].unique())})
    rows = paired(trials, among("FIRST", first, known), among("SECOND", second, known))
    if output:
        write_csv(rows, output)
    else:
        print(rows.drop(columns="experiment").to_string(index=False, float_format=lambda value: f"{value:.4g}"))


@job_command(epilog="Example: silodp claims results/published")
@click.argument("run")
@click.option("--output", type=PATH, help="CSV file to write; without one the claims are printed.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the claims as a Markdown table.")
def claims(run: str, output: Path | None, as_markdown: bool) -> None:
    """Judge every claim of config/claims by the tables of RUN: a results folder or a run's name."""
    hidden = not log.isEnabledFor(logging.INFO) or None
    known = tqdm(load_claims(), desc="claims", unit="claim", disable=hidden, leave=False)
    folder = results_folder(run)
    if not (folder / "tables").is_dir():
        raise ConfigError(f"{folder}: tables: missing: must be a folder of results")
    table = decide(known, RunFolder(folder))
    if output:
        write_csv(table, output)
    if as_markdown or not output:
        print(markdown(table) if as_markdown else text(table))
    verdicts = table[~is_corrected(table)]["verdict"]
    counts = ", ".join(f"{(verdicts == verdict).sum()} {verdict}" for verdict in Verdict)
    log.info("%d claims: %s", len(verdicts), counts)
