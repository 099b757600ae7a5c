"""What `silodp init` notices in the columns of a file: identity numbers, leaks, outliers, ids by centre."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from silodp.datasets.own_file import OwnFile, inferred_task
from silodp.datasets.tabular import coded, is_number, numbers

# Different whole numbers, as a share of the records, from which a column numbers them.
_UNIQUE = 0.9
_NAMES = re.compile(
    r"(^|[_\W]|(?<=[a-z])(?=[A-Z]))(?i:id|nr|no|number|zip|(zip|post)[_ ]?code|plz|ssn|mrn|uuid|email|phone)$"
)
# Share of the target that a column by itself may predict.
_LEAK = 0.98
# Most records that a column's tree is grown on.
_SAMPLE = 5000
# Share of the values at an end that bounds may leave out, and how many times as wide they must else be.
_TAIL, _WIDE = 0.005, 3.0


def identities(frame: pd.DataFrame, file: OwnFile) -> dict[str, str]:
    """Columns that number records or persons or name places, with the reason."""
    found = {}
    for name in file.features(frame):
        column = frame[name]
        if _NAMES.search(str(name)):
            found[name] = "its name is that of an identity or a place"
        elif is_number(column) and column.nunique() >= max(_UNIQUE * len(column), 2):
            values = numbers(column)
            if len(values) > 50 and (values[np.isfinite(values)] % 1 == 0).all():
                found[name] = "whole numbers that nearly all differ, as of an identity"
    return found


def leaks(frame: pd.DataFrame, file: OwnFile, names: list[str]) -> Iterator[str]:
    """Columns that predict the target by themselves: by a small tree, on records that it was not grown on."""
    drawn = frame[[file.target, *names]].dropna(subset=[file.target])
    drawn = drawn.sample(min(len(drawn), _SAMPLE), random_state=0)
    half = len(drawn) // 2
    classes = (file.task or inferred_task(drawn[file.target])) == "classification"
    y = coded(drawn[file.target])[0] if classes else numbers(drawn[file.target])
    tree = DecisionTreeClassifier if classes else DecisionTreeRegressor
    often = np.bincount(y[half:]).max() / len(y[half:]) if classes and half else 0.0
    for name in names:
        values = numbers(drawn[name]) if is_number(drawn[name]) else coded(drawn[name])[0]
        x = np.asarray(values, dtype=float)[:, None]
        if half and tree(max_depth=6, min_samples_leaf=3, random_state=0).fit(x[:half], y[:half]).score(
            x[half:], y[half:]
        ) > max(_LEAK, (1 + often) / 2):
            yield name


def outlier(values: np.ndarray) -> tuple[float, float, int] | None:
    """(low, high, how many values lie beyond) of quantiles, where a few values make bounds much wider than these."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [_TAIL, 1 - _TAIL])
    if high <= low or known.max() - known.min() <= _WIDE * (high - low):
        return None
    return float(low), float(high), int(((known < low) | (known > high)).sum())


def restarting(frame: pd.DataFrame, file: OwnFile) -> str:
    """A question where most ids of persons occur in several silos, as where every centre counts from 1."""
    if file.person is None or file.silo is None:
        return ""
    held = frame.groupby(file.person)[file.silo].nunique()
    silos = frame[file.silo].nunique()
    if silos < 2 or (held > 1).mean() < 0.5:
        return ""
    return (
        f"person: {(held > 1).mean():.0%} of the ids in column {file.person!r} occur in several silos: do ids restart "
        "in each? If so, persons of different silos are taken for one: join both columns into one first"
    )
