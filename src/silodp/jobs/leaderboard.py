"""Compare algorithms at equal true epsilon over data sets."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from silodp.config.board import heterogeneity_axis
from silodp.experiments.columns import REPORTED_COLUMNS
from silodp.files import read_table, write_csv
from silodp.report.figures.leaderboard_picture import error_panels, heterogeneity_panels
from silodp.report.figures.style import save
from silodp.verdicts.leaderboard import best_models, compared


def leaderboard(reported: Sequence[Path], folder: Path, formats: Sequence[str]) -> None:
    """Write leaderboard.csv, leaderboard_best.csv and figures, from files of one row a trial: docs/leaderboard.md."""
    rows = pd.concat([read_table(file, REPORTED_COLUMNS) for file in reported], ignore_index=True)
    table = compared(rows)
    write_csv(table, folder / "leaderboard.csv")
    write_csv(best_models(rows), folder / "leaderboard_best.csv")
    save(error_panels(rows), folder / "leaderboard", formats)
    if rows["experiment"].map(heterogeneity_axis).any():
        save(heterogeneity_panels(table), folder / "leaderboard_heterogeneity", formats)
