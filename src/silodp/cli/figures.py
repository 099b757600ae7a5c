"""The commands that draw figures: figure, redraw."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from silodp.cli.experiments import experiment_of
from silodp.cli.options import PATH, among, experiment, job_command, run_file, several
from silodp.config.experiment import Experiment
from silodp.experiments.names import figure_names, partitioned_as, slug
from silodp.files import REPORTED_COLUMNS, TABLE_COLUMNS, read_csv, read_table
from silodp.report.figures import FIGURES, save
from silodp.report.figures.from_tables import figures_of
from silodp.report.figures.slices import with_intervals
from silodp.report.figures.words import setting_words, variant_words
from silodp.report.numbers import measured

HETEROGENEITY = "υ*²: mean over silos of ‖∇F_i(w*)‖² at the minimiser w* of all silos together; 0 if they share it."
FORMATS = ("pdf", "png", "svg")


def _files(function: Callable) -> Callable:
    formats = several("--formats", type=click.Choice(FORMATS), default=FORMATS, help="Formats (default: all).")
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
@click.option("--silos", type=PATH, help="Folder of the experiment's partitions, for the heterogeneity in titles.")
@click.option("--reported", type=PATH, help="CSV file of one row a trial, for intervals where trials are few.")
@_files
def figure(
    run_file: Path,
    experiment: str,
    names: Sequence[str],
    table: Path,
    silos: Path | None,
    reported: Path | None,
    folder: Path,
    formats: Sequence[str],
) -> None:
    """Draw figures, called as in wbcd_mlp_M2_R25, from an experiment's table."""
    _, config = experiment_of(run_file, experiment)
    known = figure_names(experiment, config)
    for name in names:
        among("name", name, known)
    rows = read_table(table, TABLE_COLUMNS)
    rows["reading"] = rows["reading"].fillna("")
    if reported:
        rows = with_intervals(rows, read_table(reported, REPORTED_COLUMNS))
    for name in names:
        shows = known[name]
        # Calibrated noise is shown beside the paper's.
        readings = {shows["reading"]} | ({""} if shows["kind"] in ("both_noises", "calibrated_vs_paper") else set())
        chosen = rows[(rows["M"] == shows["M"]) & (rows["R"] == shows["R"]) & rows["reading"].isin(readings)]
        partition = partitioned_as(config, slug(shows["reading"]))
        words = {"title": _title(config, shows, silos / partition / "heterogeneity.csv" if silos else None)}
        if "υ*²" in words["title"]:
            words["note"] = HETEROGENEITY
        if shows["kind"] != "delivered_vs_claimed":
            is_target = config.label == "target"
            words["ylabel"] = "test RMSE relative to the training mean" if is_target else "test error"
        save(FIGURES[shows["kind"]](chosen, **words), folder / name, formats)


def _title(config: Experiment, shows: dict, heterogeneity: Path | None) -> str:
    reading = f", {variant_words(shows['reading'])}" if shows["reading"] else ""
    title = f"{config.title}\n{setting_words(shows['M'], shows['R'])}{reading}"
    if heterogeneity and config.model.name in ("linear", "logistic"):
        # The convex paper's figures state the mean over trials, which needs a minimiser in every trial.
        rows = read_csv(heterogeneity, ("value", "converged"))
        title += f", υ*² = {measured(rows['value'].mean())}" if rows["converged"].all() else ", υ*²: no minimiser"
    readings = config.variants().get(shows["reading"], config.readings)
    unproven = readings.noise == "paper" and (readings.clipping != "record" or readings.clip_rule != "grid")
    return title + (" – not private as claimed" if unproven else "")
