"""Two algorithms compared trial by trial: both see the same silos, split and start in a trial, so trials are pairs."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from silodp.files import NON_PRIVATE, REPORTED_COLUMNS

_KEY = ["experiment", "reading", "M", "R"]
_NUMBERS = ["trials", "first_error", "second_error", "difference", "low", "high", "better"]
COLUMNS = [*_KEY, "epsilon", "first", "second", *_NUMBERS]


def compare(reported: pd.DataFrame, first: str, second: str, confidence: float = 0.95) -> pd.DataFrame:
    """Paired differences of test error, first − second, a row for each reading, (M, R) and ε: `COLUMNS`.

    `reported` has a row a trial (`silodp table --reported`). Private algorithms are compared at the same ε, a form
    without noise, as in `local_sgd:non_private`, with every ε. The interval is two-sided, by Student's t; `better` has
    the smaller error where it leaves out 0, else "undecided", as where a trial diverged. Raises ValueError for an
    algorithm, form or column that the table lacks.
    """
    missing = [name for name in REPORTED_COLUMNS if name not in reported]
    if missing:
        raise ValueError(f"reported: lacks the columns {', '.join(missing)}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: {confidence}: must lie between 0 and 1")
    reported = reported.assign(reading=reported["reading"].fillna(""))
    rows = []
    for key, part in reported.groupby(_KEY, sort=False):
        names = dict(zip(_KEY, key, strict=True)) | {"first": first, "second": second}
        both = [_errors(part, first), _errors(part, second)]
        if not all(both):
            continue
        # A form without noise has one entry, which stands against every ε of the other.
        epsilons: list[float | None] = [*sorted({e for errors in both for e in errors if e is not None})]
        for epsilon in epsilons or [None]:
            errors = [errors.get(epsilon, errors.get(None)) for errors in both]
            if errors[0] is not None and errors[1] is not None:
                rows.append(names | {"epsilon": epsilon} | _paired(errors, names, confidence))
    if not rows:
        known = ", ".join(sorted(reported["algorithm"].unique()))
        raise ValueError(f"algorithms: {first}, {second}: no pair to compare: must be among {known}")
    return pd.DataFrame(rows)[COLUMNS].astype({"epsilon": float})


# The pairs of the first figure that a reader meets.
HEADLINE = (("spider", "minibatch_sgd"), ("minibatch_sgd", "local_sgd"))
# The reading with the least noise that certifies the claimed ε, and what stands behind an algorithm's name for it.
CALIBRATED = "noise=calibrated"
BY_CALIBRATED = f":{CALIBRATED}"


def headline(reported: Mapping[str, pd.DataFrame], tolerances: Mapping[frozenset[str], float]) -> pd.DataFrame:
    """The pairs of `HEADLINE` compared in every experiment that has both: `COLUMNS` and `tolerance`.

    An experiment that trains both noises compares its pairs under calibrated noise, and each algorithm under it with
    itself under the paper's (`compare_noises`); others compare the default variant. `reported` maps an experiment to a
    row a trial, `tolerances` a pair to the difference in test error that a claim about it counts as none.
    """
    found = []
    tables = [rows.assign(reading=rows["reading"].fillna("").astype(str)) for rows in reported.values()]
    for first, second in HEADLINE:
        tolerance = tolerances.get(frozenset((first, second)), 0.0)
        for rows in tables:
            reading = CALIBRATED if (rows["reading"] == CALIBRATED).any() else ""
            with suppress(ValueError):  # the experiment does not have both
                found.append(compare(rows[rows["reading"] == reading], first, second).assign(tolerance=tolerance))
    for algorithm in dict.fromkeys(name for pair in HEADLINE for name in pair):
        for rows in tables:
            with suppress(ValueError):
                found.append(compare_noises(rows, algorithm).assign(tolerance=0.0))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*COLUMNS, "tolerance"])


def compare_noises(reported: pd.DataFrame, algorithm: str) -> pd.DataFrame:
    """An algorithm's private rows under calibrated noise minus those under the paper's, at the same claimed ε.

    `COLUMNS`; a negative difference is a smaller error. Raises ValueError without rows under one of the noises.
    """
    rows = reported[(reported["algorithm"] == algorithm) & reported["epsilon"].notna()]
    calibrated = rows[rows["reading"] == CALIBRATED].assign(algorithm=algorithm + BY_CALIBRATED)
    both = pd.concat([rows[rows["reading"] == ""], calibrated]).assign(reading=CALIBRATED)
    return compare(both, algorithm + BY_CALIBRATED, algorithm)


def _errors(rows: pd.DataFrame, name: str) -> Mapping[float | None, pd.Series]:
    """ε → test errors by trial; ε is None for the form without noise."""
    rows = rows[rows["algorithm"] == name.removesuffix(NON_PRIVATE)].set_index("trial")
    if name.endswith(NON_PRIVATE):
        plain = rows[rows["epsilon"].isna()]
        return {None: plain["test_error"]} if len(plain) else {}
    return {epsilon: part["test_error"] for epsilon, part in rows.groupby("epsilon")}


def _paired(errors: list, names: Mapping[str, Any], confidence: float) -> dict[str, Any]:
    both = pd.concat(errors, axis=1, join="inner").to_numpy()
    found = {"trials": len(both), "first_error": both[:, 0].mean(), "second_error": both[:, 1].mean()}
    differences = both[:, 0] - both[:, 1] if np.isfinite(both).all() else np.full(len(both), np.nan)
    mean = float(differences.mean())
    if len(both) < 2 or not np.isfinite(mean):
        return found | {"difference": mean, "low": np.nan, "high": np.nan, "better": "undecided"}
    spread = stats.sem(differences)
    # Equal differences have no spread, and the interval is the point itself.
    low, high = stats.t.interval(confidence, len(both) - 1, mean, spread) if spread > 0 else (mean, mean)
    better = names["first"] if high < 0 else names["second"] if low > 0 else "undecided"
    return found | {"difference": mean, "low": float(low), "high": float(high), "better": better}
