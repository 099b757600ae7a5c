"""Subcommands that draw figures: figure, redraw."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from silodp.cli.options import among, experiment_command, resolved_with
from silodp.config.experiment import Experiment
from silodp.experiments.names import figure_names, partitioned_as, slug
from silodp.files import REPORTED_COLUMNS, TABLE_COLUMNS, read_csv, read_table

HETEROGENEITY = "υ*²: mean over silos of ‖∇F_i(w*)‖² at the minimiser w* of all silos together; 0 if they share it."


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = experiment_command(add, "figure", figure, "draw figures from a table")
    sub.add_argument("names", metavar="name", nargs="+", help="names of figures, as in wbcd_mlp_M2_R25")
    sub.add_argument("--table", type=Path, required=True, help="CSV file that `silodp table` wrote")
    sub.add_argument(
        "--silos", type=Path, help="folder of the experiment's partitions, for the heterogeneity in titles"
    )
    sub.add_argument("--reported", type=Path, help="CSV file of one row a trial, for intervals where trials are few")
    _describe_files(sub)

    sub = add("redraw", redraw, "draw the figures of a table about bounds, comparisons, check-ins or noise formulas")
    sub.add_argument("table", type=Path, help="CSV file, as in results/default/bounds/rates_convex.csv")
    _describe_files(sub)


def _describe_files(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--folder", type=Path, required=True, help="each figure is written there")
    formats = ("pdf", "png", "svg")
    sub.add_argument("--formats", nargs="+", choices=formats, default=formats, help="of the files (default: all)")


def redraw(options: argparse.Namespace) -> None:
    """Draw the figures of a table, each as PDF, PNG and SVG."""
    from silodp.report.figures import save
    from silodp.report.figures.from_tables import figures_of

    for name, figure in figures_of(options.table).items():
        save(figure, options.folder / name, options.formats)


def figure(options: argparse.Namespace) -> None:
    """Draw figures from a table, as PDF, PNG and SVG."""
    from silodp.report.figures import FIGURES, save
    from silodp.report.figures.slices import with_intervals

    resolved = resolved_with(options)
    experiment = resolved.experiments[options.experiment]
    known = figure_names(options.experiment, experiment)
    for name in options.names:
        among("name", name, known)
    table = read_table(options.table, TABLE_COLUMNS)
    table["reading"] = table["reading"].fillna("")
    if options.reported:
        table = with_intervals(table, read_table(options.reported, REPORTED_COLUMNS))
    for name in options.names:
        shows = known[name]
        # Calibrated noise stands beside the paper's.
        readings = {shows["reading"]} | ({""} if shows["kind"] in ("both_noises", "calibrated_vs_paper") else set())
        rows = table[(table["M"] == shows["M"]) & (table["R"] == shows["R"]) & table["reading"].isin(readings)]
        silos = partitioned_as(experiment, slug(shows["reading"]))
        measured = options.silos / silos / "heterogeneity.csv" if options.silos else None
        about = {"title": _title(experiment, shows, measured)}
        if "υ*²" in about["title"]:
            about["note"] = HETEROGENEITY
        if shows["kind"] != "delivered_vs_claimed":
            about["ylabel"] = (
                "test RMSE relative to the training mean" if experiment.label == "target" else "test error"
            )
        save(FIGURES[shows["kind"]](rows, **about), options.folder / name, options.formats)


def _title(experiment: Experiment, shows: dict, heterogeneity: Path | None) -> str:
    from silodp.report.figures.words import setting_words, variant_words

    reading = f", {variant_words(shows['reading'])}" if shows["reading"] else ""
    title = f"{experiment.title}\n{setting_words(shows['M'], shows['R'])}{reading}"
    if heterogeneity and experiment.model.name in ("linear", "logistic"):
        title += _heterogeneity_note(read_csv(heterogeneity, ("value", "converged")))
    readings = experiment.variants().get(shows["reading"], experiment.readings)
    unproven = readings.clipping != "record" or readings.clip_rule != "grid"
    return title + (" – not private as claimed" if unproven else "")


def _heterogeneity_note(measured: pd.DataFrame) -> str:
    """υ*² as the convex paper's figures have it, the mean over trials; it needs a minimiser in every trial."""
    from silodp.report.numbers import measured as shown

    return f", υ*² = {shown(measured['value'].mean())}" if measured["converged"].all() else ", υ*²: no minimiser"
