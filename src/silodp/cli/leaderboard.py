"""The command `silodp leaderboard`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import pandas as pd

from silodp.cli.options import PATH, command
from silodp.config.errors import ConfigError
from silodp.experiments.columns import REPORTED_COLUMNS
from silodp.files import read_table, write_csv, write_text
from silodp.report.figures.leaderboard import error_panels, heterogeneity_panels
from silodp.report.figures.style import save
from silodp.verdicts.leaderboard import compared, counted, heterogeneity_axis, on_board
from silodp.workflow.engine import results_locked


@command(
    epilog="Example: silodp leaderboard results/leaderboard results/leaderboard-mnist --output results/leaderboard"
)
@click.argument("folders", metavar="FOLDER...", type=PATH, nargs=-1, required=True)
@click.option("--output", type=PATH, required=True, help="Folder for leaderboard.csv, .md and figures.")
def leaderboard(folders: Sequence[Path], output: Path) -> None:
    """Make the leaderboard's comparisons, their counts and figures from finished runs (docs/leaderboard.md)."""
    # The output lies in one of them, or is nobody else's.
    with results_locked(*folders):
        _make(folders, output)


def _make(folders: Sequence[Path], output: Path) -> None:
    files = sorted(file for folder in folders for file in (folder / "reported").glob("*.csv"))
    if not files:
        raise ConfigError(f"command line: {folders[0]}: no reported/*.csv: must be the folder of a finished run")
    reported = pd.concat([read_table(file, REPORTED_COLUMNS) for file in files], ignore_index=True)
    reported = reported[reported["experiment"].map(on_board)]
    table = compared(reported)
    write_csv(table, output / "leaderboard.csv")
    pairs = counted(table)
    lines = [_row(pairs.columns), _row(["---"] * len(pairs.columns)), *(_row(row) for row in pairs.to_numpy())]
    text = "\n".join([*lines, ""])
    write_text(text, output / "leaderboard.md")
    save(error_panels(reported), output / "leaderboard", ["svg"])
    if (reported["experiment"].map(heterogeneity_axis) != "").any():
        save(heterogeneity_panels(table), output / "leaderboard_heterogeneity", ["svg"])
    print(text, end="")


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
