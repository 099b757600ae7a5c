"""Figures of tables about bounds, check-ins and noise formulas, from the tables alone."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from silodp.config.errors import ConfigError, show_value
from silodp.experiments.columns import BY_ROUND_COLUMNS
from silodp.files import read_csv
from silodp.report.cells import COMPARED, in_forests, read_cells
from silodp.report.figures import BOUNDS_FIGURES
from silodp.report.figures.by_round import draw_by_round
from silodp.report.figures.checkin_lines import amplified_epsilon, error_at_equal_epsilon
from silodp.report.figures.delivered_vs_claimed import draw_formulas
from silodp.report.figures.paired_differences import paired_differences
from silodp.report.figures.reader_words import setting_words, short_title
from silodp.report.figures.style import short_label
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.checks.bound_columns import BOUNDS_COLUMNS
from silodp.verdicts.comparisons import BY_CALIBRATED, CALIBRATED, ENDED

# Columns of a check's table whose empty cells are empty words.
WORDS = ("verdict", "form", "rivals", "detail")
FORMULAS = {"convex": "Convex", "nonconvex": "Non-convex"}


def figures_of(path: Path) -> dict[str, Figure]:
    """The figures of a CSV table, by name without suffix; ConfigError for a table or a check without a figure."""
    rows = read_csv(path, float_precision="round_trip")
    columns = set(rows.columns)
    if columns >= set(BOUNDS_COLUMNS):
        check = str(rows["check"].iloc[0]) if len(rows) else ""
        if check not in BOUNDS_FIGURES:
            raise ConfigError(f"{path}: check: {show_value(check)}: must be one of {', '.join(BOUNDS_FIGURES)}")
        rows = rows.astype({name: object for name in WORDS}).fillna(dict.fromkeys(WORDS, ""))
        return {path.stem: BOUNDS_FIGURES[check](rows, title=CHECKS[check])}
    if columns >= set(BY_ROUND_COLUMNS):
        return {
            f"{name}_M{M}_R{R}_by_round": draw_by_round(
                part, title=f"{short_title(name)}\n{setting_words(M, R)}: ε by round"
            )
            for (name, M, R), part in rows.groupby(["experiment", "M", "R"], sort=False)
        }
    if columns >= set(COMPARED):
        rows = read_cells(path)
        rows = rows[rows["experiment"].isin(in_forests(rows["experiment"].unique()))]
        pairs = rows.groupby(["reading", "first", "second"], sort=False)
        return dict(_paired(str(reading), str(first), str(second), part) for (reading, first, second), part in pairs)
    if columns >= {"paper", "formula", "claimed_epsilon", "delivered_epsilon"}:
        return {
            f"formulas_{paper}": draw_formulas(part, title=f"{FORMULAS[paper]} paper: true ε of its noise formulas")
            for paper, part in rows.groupby("paper", sort=False)
        }
    if columns >= {"bound", "reports", "epsilon0"}:
        title = "Check-ins, Figure 2: shuffling"
        return {path.stem: amplified_epsilon(rows, title=title)}
    if columns >= {"experiment", "protocol", "amplified"} and len(rows):
        title = f"{short_title(rows['experiment'].iloc[0])}\nCheck-ins and others at equal central ε"
        return {path.stem: error_at_equal_epsilon(rows, title=title)}
    known = "check, formulas, comparisons, privacy --by-round, checkins(-figure-2)"
    raise ConfigError(f"{path}: {', '.join(rows.columns)}: must be a table of {known}")


def _paired(reading: str, first: str, second: str, rows: pd.DataFrame) -> tuple[str, Figure]:
    """Name and forest plot of one pair; of an algorithm under both noises the second is itself."""
    names = [short_label(name.removesuffix(BY_CALIBRATED)) for name in (first, second)]
    if first.endswith(BY_CALIBRATED):
        noises, title = ("calibrated", "paper's noise"), f"{names[0]}: calibrated against paper's noise"
        return f"noises_{second}", paired_differences(rows, title=title, names=noises)
    kinds = {ENDED: ("equal", ", at equal true ε"), CALIBRATED: ("certified", ", at exactly the claimed ε")}
    kind, where = kinds.get(reading, ("paired", ""))
    return f"{kind}_{first}-{second}", paired_differences(rows, title=" against ".join(names) + where)
