"""What the lines of a figure do not say, as sentences to stand below it."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from silodp.figures.style import label
from silodp.report_numbers import bounded

_NB = "\u00a0"  # keeps "ε = 3" on one line

BARS = "Bars and bands: 5th to 95th percentile over trials."


def diverged(rows: pd.DataFrame) -> str | None:
    """How many trials diverged, of which algorithm and where; None if none did."""
    found = [
        f"{name} {int(of['diverged'].sum())} of {int(of['trials'].sum())}{_where(of)}"
        for name, of in _by_algorithm(rows[rows["diverged"] > 0])
    ]
    return f"Diverged trials: {'; '.join(found)}." if found else None


def beyond_axis(rows: pd.DataFrame, column: str) -> str | None:
    """Which values of `column` are not finite and so are drawn on the upper edge; None if all are finite."""
    infinite = rows[~np.isfinite(rows[column].to_numpy(float))]
    found = [f"{name}{_where(of)}" for name, of in _by_algorithm(infinite)]
    return f"Not finite, drawn on the upper edge: {'; '.join(found)}." if found else None


def over_claim(rows: pd.DataFrame) -> str | None:
    """Which private points deliver a larger ε than they claim; None if all keep their claim."""
    exceeding = rows[rows["private"] & (rows["delivered_epsilon"] > rows["epsilon"])]
    found = []
    for name, of in _by_algorithm(exceeding):
        pairs = zip(of["delivered_epsilon"], of["epsilon"], strict=True)
        found.append(f"{name} " + ", ".join(f"{bounded(delivered)} for {claimed:g}" for delivered, claimed in pairs))
    return f"Delivered ε exceeds the claim: {'; '.join(found)}." if found else None


def _by_algorithm(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for private, algorithm in dict.fromkeys(zip(rows["private"], rows["algorithm"], strict=True)):
        of = rows[(rows["private"] == private) & (rows["algorithm"] == algorithm)]
        yield label(str(algorithm), bool(private), of["reading"].iloc[0]), of


def _where(of: pd.DataFrame) -> str:
    values = of["epsilon"].dropna()
    return f" at ε{_NB}={_NB}{', '.join(f'{value:g}' for value in values)}" if len(values) else ""
