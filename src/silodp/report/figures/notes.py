"""What the lines of a figure do not say, as sentences to stand below it."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from silodp.privacy.standing import Standing, counts_of, standings
from silodp.report.figures.style import label
from silodp.report.numbers import interval

_NB = "\u00a0"  # keeps "ε = 3" on one line

# With fewer trials percentiles are little more than the extremes.
FEWEST_FOR_PERCENTILES = 10
# With fewer than these an interval says little more than its points.
FEWEST_FOR_BARS = 5
INTERVAL = ("test_error_low", "test_error_high")
PERCENTILES = ("test_error_p05", "test_error_p95")


def bars(rows: pd.DataFrame) -> tuple[str, str]:
    """The columns between which bars reach: percentiles, or with few trials the interval of the mean."""
    few = rows["trials"].max() < FEWEST_FOR_PERCENTILES
    return INTERVAL if few and set(INTERVAL) <= set(rows.columns) else PERCENTILES


def bar_ends(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of the bars (points,), NaN where they are not finite or trials too few for bars."""
    enough = np.isfinite(rows[[*bars(rows)]]) & (rows["trials"].max() >= FEWEST_FOR_BARS)
    low, high = rows[[*bars(rows)]].where(enough).to_numpy(float).T
    return low, high


def trials(rows: pd.DataFrame) -> str:
    """How many trials stand behind a point, and what bars and bands are."""
    counts = sorted(set(rows["trials"].astype(int)))
    what, many = "5th to 95th percentile over trials", " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    if counts[-1] < FEWEST_FOR_BARS:
        return f"{many} trials a point, too few for bars: dots are trials."
    if bars(rows) == INTERVAL:
        what = "95 % intervals of the mean (Student's t)"
    elif counts[-1] < FEWEST_FOR_PERCENTILES:
        what += ", of so few little more than the extremes"
    return f"{many} trials a point. Bars and bands: {what}."


def diverged(rows: pd.DataFrame) -> str | None:
    """How many trials diverged, and of which algorithms; None if none did."""
    some = rows[rows["diverged"] > 0]
    count = f"{int(some['diverged'].sum())} of {int(some['trials'].sum())} trials diverged there"
    names = ", ".join(dict.fromkeys(name for name, _ in _by_algorithm(some)))
    return f"Crossed: {count} ({names})." if len(some) else None


def beyond_axis(rows: pd.DataFrame) -> str | None:
    """Which mean errors are not finite and so are drawn on the upper edge; None if all are finite."""
    where = _named_points(rows[~np.isfinite(rows["test_error_mean"].to_numpy(float))])
    return f"Not finite, drawn on the upper edge: {where}." if where else None


def zero(rows: pd.DataFrame, edge: str) -> str | None:
    """Which points have a true ε of 0, drawn on the `edge` named, as logarithmic axes have none; None without any."""
    where = _named_points(rows[rows["delivered_epsilon"] == 0])
    return f"True ε = 0 (δ alone covers it), on the {edge} edge: {where}." if where else None


def claims_note(rows: pd.DataFrame, whose: str = "Claims") -> str | None:
    """How many claims are kept, violated and not certified, and the row that is surely farthest above its claim."""
    rows = rows[rows["private"]]
    text = f"{whose}: {', '.join(f'{count} {word}' for word, count in counts_of(rows).items() if count)}."
    if len(violated := rows[standings(rows) == Standing.VIOLATED]):
        row = violated.loc[(violated["delivered_lower"] / violated["epsilon"]).idxmax()]
        ends, name = interval(row["delivered_lower"], row["delivered_epsilon"]), label(row["algorithm"])
        text += f" Farthest above: true ε in {ends} for {row['epsilon']:g} ({name})."
    return text if len(rows) else None


def at_edge(rows: pd.DataFrame) -> pd.Series:
    """Whether the chosen step size or clip of each row is an end of its grid; False where the table does not say."""
    edge = rows["edge"] if "edge" in rows else pd.Series("", index=rows.index)
    return edge.fillna("") != ""


def edges(rows: pd.DataFrame) -> str | None:
    """Which chosen points lie at an end of their grid; None if none does."""
    counts = []
    for name, of in _by_algorithm(rows):
        if count := int(at_edge(of).sum()):
            counts.append(f"{name} at {count} of {len(of)}{_NB}ε" if of["private"].all() else name)
    what = "The chosen step size or clip is an end of its grid, a better one may lie beyond"
    return f"{what}: {', '.join(counts)}." if counts else None


def _by_algorithm(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for (private, algorithm), of in rows.groupby(["private", "algorithm"], sort=False):
        yield label(str(algorithm), bool(private), of["reading"].iloc[0]), of


def _named_points(rows: pd.DataFrame) -> str:
    found = []
    for name, of in _by_algorithm(rows):
        values = ", ".join(f"{value:g}" for value in of["epsilon"].dropna())
        found.append(f"{name} at ε{_NB}={_NB}{values}" if values else name)
    return "; ".join(found)
