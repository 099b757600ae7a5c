"""The command `silodp formulas`."""

from pathlib import Path

from silodp.cli.options import job_command, output
from silodp.experiments.formulas import formula_rows
from silodp.files import write_csv


@job_command()
@output
def formulas(output: Path) -> None:
    """Bound the true epsilon of every noise formula of the papers, and of released programs."""
    write_csv(formula_rows(), output)
