"""Cutting a results table into what one figure shows, and the name of that figure's files."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from silodp.algorithms import traits
from silodp.files import with_reading
from silodp.report.figures.notes import FEWEST_FOR_BARS
from silodp.verdicts.comparisons import CALIBRATED
from silodp.verdicts.statistics import mean_interval

# Column with the errors of single trials, where they are too few for bars.
TRIALS = "test_errors"


def slices(table: pd.DataFrame) -> Iterator[tuple[tuple[int, int, str], pd.DataFrame]]:
    """Yield each (M, R, reading) of `table` with its rows, the default reading first, then by M and R."""
    for (reading, M, R), rows in with_reading(table).groupby(["reading", "M", "R"]):
        yield (int(M), int(R), str(reading)), rows.reset_index(drop=True)


def with_intervals(table: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """The table with `test_error_low` and `test_error_high`: 95 % intervals of the mean error, by Student's t.

    `TRIALS` lists the errors of trials where they are fewer than `FEWEST_FOR_BARS`. `reported` has a row a trial behind
    its default rows; other rows, single trials and infinite errors get NaN.
    """
    keys = ["algorithm", "reading", "M", "R", "epsilon"]
    found = []
    for key, errors in with_reading(reported).groupby(keys, dropna=False)["test_error"]:
        finite = len(errors) > 1 and bool(np.isfinite(errors).all())
        low, high = mean_interval(errors)[1:] if finite else (np.nan, np.nan)
        # No error lies below 0.
        ends = {"test_error_low": max(low, 0.0) if finite else low, "test_error_high": high}
        few = errors.tolist() if len(errors) < FEWEST_FOR_BARS else []
        found.append(dict(zip(keys, key, strict=True)) | ends | {TRIALS: few})
    if not found:
        return table
    return with_reading(table).merge(pd.DataFrame(found), how="left", on=keys)


def drawn_rows(table: pd.DataFrame, members: bool = False) -> pd.DataFrame:
    """The rows a figure draws: private ones by ε, then non-private ones.

    Where the better of a family, as of the two SPIDERs, is there it stands for their private rows; or the `members` do.
    """
    table = with_reading(table)
    families = {name: (traits(name).better_of or ("", 0))[0] for name in table["algorithm"].unique()}
    reported = {name for name in table.loc[table["private"], "algorithm"].unique() if name in families.values()}
    of = table["algorithm"].map(families).isin(reported)
    left_out = table["algorithm"].isin(reported) if members and of.any() else of & table["private"]
    table = table[~left_out]
    return table.sort_values(["private", "epsilon"], ascending=[False, True], kind="stable").reset_index(drop=True)


def private_rows(table: pd.DataFrame, members: bool = False) -> pd.DataFrame:
    """The private rows of `drawn_rows`."""
    return drawn_rows(table, members).query("private")


def both_noises_of(table: pd.DataFrame) -> pd.DataFrame:
    """`private_rows` of the default reading and of calibrated noise, as `kind`: paper, calibrated."""
    table = with_reading(table)
    found = {name: table[table["reading"] == reading] for name, reading in (("paper", ""), ("calibrated", CALIBRATED))}
    return pd.concat([private_rows(rows).assign(kind=name) for name, rows in found.items()])
