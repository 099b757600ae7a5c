"""The command `silodp claims`."""

import logging
from collections.abc import Sequence
from pathlib import Path

import click

from silodp.cli.options import PATH, job_command, several
from silodp.config.errors import ConfigError, near
from silodp.experiments.validation import load
from silodp.files import write_csv
from silodp.verdicts.claims import decide
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import markdown, text
from silodp.verdicts.words import Verdict

log = logging.getLogger("silodp")


@job_command(epilog="Example: silodp claims results/published")
@click.argument("run")
@several("--experiments", help="Only these experiments (default: those of config.json).")
@click.option("--output", type=PATH, help="CSV file to write; without one the claims are printed.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the claims as a Markdown table.")
def claims(run: str, experiments: Sequence[str], output: Path | None, as_markdown: bool) -> None:
    """Judge every claim of config/claims by the tables of RUN: a results folder, a run file or a run's name."""
    table = decide(load_claims(), RunFolder(_folder(run), experiments or None))
    if output:
        write_csv(table, output)
    if as_markdown or not output:
        print(markdown(table) if as_markdown else text(table))
    verdicts = table[~table["claim"].str.contains(": ")]["verdict"]
    counts = ", ".join(f"{(verdicts == verdict).sum()} {verdict}" for verdict in Verdict)
    log.info("%d claims: %s", len(verdicts), counts)


def _folder(run: str) -> Path:
    """The results folder of a folder, a run file or a run's name."""
    path = Path(run)
    if path.suffix in (".yaml", ".json") and path.is_file():
        run = load(path).run.run
    for folder in (path, Path("results") / run):
        if folder.is_dir():
            return folder
    beside = near(Path(run).name, (path.name for path in Path("results").glob("*")))
    raise ConfigError(f"command line: run: {run!r}: must be a results folder, a run file or a run's name{beside}")
