"""Bound the true epsilon of the papers' noise formulas."""

from pathlib import Path

from silodp.experiments.formulas import formula_rows
from silodp.files import write_csv


def formulas(output: Path) -> None:
    """Write a row for every noise formula of the papers, and of released programs."""
    write_csv(formula_rows(), output)
