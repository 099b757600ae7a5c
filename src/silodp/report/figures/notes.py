"""What the lines of a figure do not say, as sentences to stand below it."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from silodp.report.figures.style import label
from silodp.report.numbers import bounded

_NB = "\u00a0"  # keeps "ε = 3" on one line

# With fewer trials percentiles are little more than the extremes.
FEWEST_FOR_PERCENTILES = 10
# Of tables made before edges were recorded, where they cannot be told afterwards.
NOT_RECORDED = "not recorded"
INTERVAL = ("test_error_low", "test_error_high")
PERCENTILES = ("test_error_p05", "test_error_p95")


def bars(rows: pd.DataFrame) -> tuple[str, str]:
    """The columns between which bars reach: percentiles, or with few trials the interval of the mean."""
    few = rows["trials"].max() < FEWEST_FOR_PERCENTILES
    return INTERVAL if few and set(INTERVAL) <= set(rows.columns) else PERCENTILES


def trials(rows: pd.DataFrame) -> str:
    """How many trials stand behind a point, and what bars and bands are."""
    counts = sorted(set(rows["trials"].astype(int)))
    count = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    if bars(rows) == INTERVAL:
        what = "95 % intervals of the mean (Student's t)"
    else:
        what = "5th to 95th percentile over trials"
        if counts[-1] < FEWEST_FOR_PERCENTILES:
            what += ", of so few little more than the extremes"
    return f"{count} trials a point. Bars and bands: {what}."


def diverged(rows: pd.DataFrame) -> str | None:
    """How many trials diverged, and of which algorithms; None if none did."""
    some = rows[rows["diverged"] > 0]
    if some.empty:
        return None
    names = ", ".join(dict.fromkeys(name for name, _ in _by_algorithm(some)))
    return f"Hollow: {int(some['diverged'].sum())} of {int(some['trials'].sum())} trials diverged there ({names})."


def beyond_axis(rows: pd.DataFrame, column: str) -> str | None:
    """Which values of `column` are not finite and so are drawn on the upper edge; None if all are finite."""
    infinite = rows[~np.isfinite(rows[column].to_numpy(float))]
    found = [f"{name}{_where(of)}" for name, of in _by_algorithm(infinite)]
    return f"Not finite, drawn on the upper edge: {'; '.join(found)}." if found else None


def zero(rows: pd.DataFrame, edge: str) -> str | None:
    """Which points deliver an ε of 0, drawn on the `edge` named, as logarithmic axes have none; None without any."""
    found = [f"{name}{_where(of)}" for name, of in _by_algorithm(rows[rows["delivered_epsilon"] == 0])]
    return f"Delivered ε = 0 (δ alone covers it), on the {edge} edge: {'; '.join(found)}." if found else None


def over_claim(rows: pd.DataFrame, sign: str = "Ringed") -> str | None:
    """That private points deliver a larger ε than they claim, and the worst of them; None if all keep their claim.

    Args:
        rows: of a results table.
        sign: how the figure marks such points.
    """
    exceeding = rows[rows["private"] & (rows["delivered_epsilon"] > rows["epsilon"])]
    if exceeding.empty:
        return None
    said = f"{sign}: the delivered ε exceeds the claim"
    unbounded = exceeding[~np.isfinite(exceeding["delivered_epsilon"])]
    finite = exceeding[np.isfinite(exceeding["delivered_epsilon"])]
    if len(unbounded):
        said += f"; without any bound for {', '.join(dict.fromkeys(name for name, _ in _by_algorithm(unbounded)))}"
    if len(finite):
        worst = finite.loc[[(finite["delivered_epsilon"] / finite["epsilon"]).idxmax()]]
        ((name, row),) = _by_algorithm(worst)
        said += f"; at worst {bounded(row['delivered_epsilon'].iloc[0])} for {row['epsilon'].iloc[0]:g} ({name})"
    return f"{said}. All values: privacy table."


def at_edge(rows: pd.DataFrame) -> pd.Series:
    """Whether the chosen step size or clip of each row is an end of its grid; False where the table does not say."""
    if "edge" not in rows:
        return pd.Series(False, index=rows.index)
    return ~rows["edge"].fillna("").isin(["", NOT_RECORDED])


def edges(rows: pd.DataFrame) -> str | None:
    """Which chosen points lie at an end of their grid; None if none does."""
    counts = []
    for name, of in _by_algorithm(rows):
        if count := int(at_edge(of).sum()):
            counts.append(f"{name} at {count} of {len(of)}{_NB}ε" if of["private"].all() else name)
    if not counts:
        return None
    what = "Crossed: the chosen step size or clip is an end of its grid, a better one may lie beyond"
    return f"{what}: {', '.join(counts)}."


def _by_algorithm(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for private, algorithm in dict.fromkeys(zip(rows["private"], rows["algorithm"], strict=True)):
        of = rows[(rows["private"] == private) & (rows["algorithm"] == algorithm)]
        yield label(str(algorithm), bool(private), of["reading"].iloc[0]), of


def _where(of: pd.DataFrame) -> str:
    values = of["epsilon"].dropna()
    return f" at ε{_NB}={_NB}{', '.join(f'{value:g}' for value in values)}" if len(values) else ""
