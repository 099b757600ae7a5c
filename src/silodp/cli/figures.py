"""The commands that draw figures: figure, redraw."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from silodp.cli.options import PATH, among, experiment, job_command, option_of_values, run_file
from silodp.config.experiment import Experiment
from silodp.experiments.columns import REPORTED_COLUMNS, TABLE_COLUMNS
from silodp.experiments.validation import experiment_of
from silodp.experiments.variants import figure_names
from silodp.files import read_table, with_reading
from silodp.report.figures import FIGURES, save
from silodp.report.figures.from_tables import figures_of
from silodp.report.figures.reader_words import setting_words, short_title, variant_words
from silodp.report.figures.slices import with_intervals

FORMATS = ("pdf", "png", "svg")


def _files(function: Callable) -> Callable:
    formats = option_of_values("--formats", type=click.Choice(FORMATS), default=FORMATS, help="Formats (default: all).")
    return click.option("--folder", type=PATH, required=True, help="Folder for the figures.")(formats(function))


@job_command(epilog="Example: silodp redraw results/published/formulas.csv --folder .")
@click.argument("tables", metavar="TABLE...", type=PATH, nargs=-1, required=True)
@_files
def redraw(tables: Sequence[Path], folder: Path, formats: Sequence[str]) -> None:
    """Draw the figures of tables of bounds, comparisons, check-ins or noise formulas."""
    for table in tables:
        for name, figure in figures_of(table).items():
            save(figure, folder / name, formats)


@job_command()
@run_file
@experiment
@click.argument("names", nargs=-1, required=True)
@click.option("--table", type=PATH, required=True, help="CSV file that `silodp table` wrote.")
@click.option("--reported", type=PATH, help="CSV file of one row a trial, for intervals where trials are few.")
@_files
def figure(
    run_file: Path,
    experiment: str,
    names: Sequence[str],
    table: Path,
    reported: Path | None,
    folder: Path,
    formats: Sequence[str],
) -> None:
    """Draw figures, called as in wbcd_mlp_M2_R25, from an experiment's table."""
    _, config = experiment_of(run_file, experiment)
    known = figure_names(experiment, config)
    for name in names:
        among("name", name, known)
    rows = with_reading(read_table(table, TABLE_COLUMNS))
    if reported:
        rows = with_intervals(rows, read_table(reported, REPORTED_COLUMNS))
    for name in names:
        shows = known[name]
        # Calibrated noise is shown beside the paper's.
        readings = {shows["reading"]} | ({""} if shows["kind"] == "both_noises" else set())
        chosen = rows[(rows["M"] == shows["M"]) & (rows["R"] == shows["R"]) & rows["reading"].isin(readings)]
        words = {"title": _title(experiment, config, shows)}
        if shows["kind"] != "delivered_vs_claimed":
            words["ylabel"] = "test error"
            if config.label == "target":
                words |= {"ylabel": "relative test RMSE", "note": "1: as good as the mean of the training targets."}
        save(FIGURES[shows["kind"]](chosen, **words), folder / name, formats)


def _title(experiment: str, config: Experiment, shows: dict) -> str:
    reading = f", {variant_words(shows['reading'])}" if shows["reading"] else ""
    title = f"{short_title(experiment, config.short, config.title)}\n{setting_words(shows['M'], shows['R'])}{reading}"
    readings = config.variants().get(shows["reading"], config.readings)
    unproven = readings.noise == "paper" and (readings.clipping != "record" or readings.clip_rule != "grid")
    return title + (" – not private as claimed" if unproven else "")
