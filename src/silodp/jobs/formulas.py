"""Bound the true epsilon of every noise formula of the papers, and of released programs."""

from pathlib import Path

from silodp.experiments.formulas import formula_rows
from silodp.files import write_csv


def formulas(output: Path) -> None:
    write_csv(formula_rows(), output)
