"""The command `silodp claims`."""

import logging
from collections.abc import Sequence
from pathlib import Path

import click

from silodp.cli.options import PATH, job_command, several
from silodp.files import write_csv
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.deciding import decide
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import markdown, text
from silodp.verdicts.words import Verdict
from silodp.workflow.contents import results_folder

log = logging.getLogger("silodp")


@job_command(epilog="Example: silodp claims results/published")
@click.argument("run")
@several("--experiments", help="Only these experiments (default: those of config.json).")
@click.option("--output", type=PATH, help="CSV file to write; without one the claims are printed.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the claims as a Markdown table.")
def claims(run: str, experiments: Sequence[str], output: Path | None, as_markdown: bool) -> None:
    """Judge every claim of config/claims by the tables of RUN: a results folder or a run's name."""
    table = decide(load_claims(), RunFolder(results_folder(run), experiments or None))
    if output:
        write_csv(table, output)
    if as_markdown or not output:
        print(markdown(table) if as_markdown else text(table))
    verdicts = table[~table["claim"].str.contains(": ")]["verdict"]
    counts = ", ".join(f"{(verdicts == verdict).sum()} {verdict}" for verdict in Verdict)
    log.info("%d claims: %s", len(verdicts), counts)
