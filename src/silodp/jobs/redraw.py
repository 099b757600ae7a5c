"""Draw the figures of tables of bounds, comparisons, check-ins or noise formulas."""

from collections.abc import Sequence
from pathlib import Path

from silodp.report.figures import save
from silodp.report.figures.from_tables import figures_of


def redraw(tables: Sequence[Path], folder: Path, formats: Sequence[str]) -> None:
    for table in tables:
        for name, figure in figures_of(table).items():
            save(figure, folder / name, formats)
