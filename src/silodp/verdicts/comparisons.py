"""Two algorithms compared trial by trial: both see the same silos, split and start in a trial, so trials are pairs."""

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import pandas as pd
from scipy import stats

from silodp.files import NON_PRIVATE, REPORTED_COLUMNS

COLUMNS = [
    "experiment",
    "reading",
    "M",
    "R",
    "epsilon",
    "first",
    "second",
    "trials",
    "first_error",
    "second_error",
    "difference",
    "low",
    "high",
    "better",
]


def compare(reported: pd.DataFrame, first: str, second: str, confidence: float = 0.95) -> pd.DataFrame:
    """Paired differences of test error between two algorithms, a row for each reading, (M, R) and ε.

    Args:
        reported: one row a trial, as `silodp table --reported` writes them.
        first: algorithm; `local_sgd:non_private` is the form without noise.
        second: the one it is set against. Where both are private they are compared at the same ε; a form without noise
            is set against every ε of the other.
        confidence: of the interval, two-sided, by Student's t on the paired differences.

    Returns:
        `COLUMNS`; `difference` is first − second, `better` is who has the smaller error where the interval leaves out
        0, else "undecided". A trial that diverged makes the difference infinite or NaN, and the row undecided.

    Raises:
        ValueError: an algorithm or form that the table does not have, or a table without the columns.
    """
    missing = [name for name in REPORTED_COLUMNS if name not in reported]
    if missing:
        raise ValueError(f"reported: lacks the columns {', '.join(missing)}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: {confidence}: must lie between 0 and 1")
    reported = reported.assign(reading=reported["reading"].fillna(""))
    rows = []
    for key, part in reported.groupby(["experiment", "reading", "M", "R"], sort=False):
        names = dict(zip(["experiment", "reading", "M", "R"], key, strict=True))
        both = [_errors(part, first), _errors(part, second)]
        if not all(both):
            continue
        # A form without noise has one entry, which stands against every ε of the other.
        epsilons: list[float | None] = [*sorted({e for errors in both for e in errors if e is not None})]
        for epsilon in epsilons or [None]:
            one, two = (errors.get(epsilon, errors.get(None)) for errors in both)
            if one is not None and two is not None:
                rows.append(names | {"epsilon": epsilon} | _paired(first, second, one, two, confidence))
    if not rows:
        known = ", ".join(sorted(reported["algorithm"].unique()))
        raise ValueError(f"algorithms: {first}, {second}: no pair to compare: must be among {known}")
    return pd.DataFrame(rows)[COLUMNS].astype({"epsilon": float})


# The pairs of the first figure that a reader meets.
HEADLINE = (("spider", "minibatch_sgd"), ("minibatch_sgd", "local_sgd"))
# The reading with the least noise that delivers the claimed ε, and what stands behind an algorithm's name for it.
CALIBRATED = "noise=calibrated"
BY_CALIBRATED = f":{CALIBRATED}"


def headline(reported: Mapping[str, pd.DataFrame], tolerances: Mapping[frozenset[str], float]) -> pd.DataFrame:
    """The pairs of `HEADLINE` compared in every experiment that has both, and what calibrated noise changes for each.

    An experiment that trains both noises is there for the comparison at equal certified privacy: its pairs are compared
    under calibrated noise (reading `noise=calibrated`), and each algorithm under it with itself under the paper's noise
    (`minibatch_sgd:noise=calibrated` against `minibatch_sgd`). Of all others the default variant is compared.

    Args:
        reported: experiment → one row a trial, as for `compare`.
        tolerances: pair → difference in test error that a claim about it counts as none.

    Returns:
        `COLUMNS` and `tolerance`; no rows where no experiment has a pair.
    """
    found = []
    tables = {name: rows.assign(reading=rows["reading"].fillna("").astype(str)) for name, rows in reported.items()}
    for first, second in HEADLINE:
        for rows in tables.values():
            reading = CALIBRATED if (rows["reading"] == CALIBRATED).any() else ""
            with suppress(ValueError):  # the experiment does not have both
                paired = compare(rows[rows["reading"] == reading], first, second)
                found.append(paired.assign(tolerance=tolerances.get(frozenset((first, second)), 0.0)))
    for algorithm in dict.fromkeys(name for pair in HEADLINE for name in pair):
        for rows in tables.values():
            with suppress(ValueError):
                found.append(compare_noises(rows, algorithm).assign(tolerance=0.0))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*COLUMNS, "tolerance"])


def compare_noises(reported: pd.DataFrame, algorithm: str) -> pd.DataFrame:
    """An algorithm under calibrated noise set against itself under the paper's, at the same claimed ε.

    Args:
        reported: one row a trial, reading a text.
        algorithm: whose private rows are compared.

    Returns:
        `COLUMNS`, reading `noise=calibrated`; a negative difference is an error that calibrated noise makes smaller.

    Raises:
        ValueError: no rows under one of the noises.
    """
    own = reported[(reported["algorithm"] == algorithm) & reported["epsilon"].notna()]
    calibrated = own[own["reading"] == CALIBRATED].assign(algorithm=algorithm + BY_CALIBRATED)
    both = pd.concat([own[own["reading"] == ""], calibrated]).assign(reading=CALIBRATED)
    return compare(both, algorithm + BY_CALIBRATED, algorithm)


def _errors(rows: pd.DataFrame, name: str) -> Mapping[float | None, pd.Series]:
    """ε → test errors by trial; ε is None for the form without noise."""
    own = rows[rows["algorithm"] == name.removesuffix(NON_PRIVATE)]
    if name.endswith(NON_PRIVATE):
        plain = own[own["epsilon"].isna()]
        return {None: plain.set_index("trial")["test_error"]} if len(plain) else {}
    return {epsilon: part.set_index("trial")["test_error"] for epsilon, part in own.groupby("epsilon")}


def _paired(first: str, second: str, one: pd.Series, two: pd.Series, confidence: float) -> dict:
    both = pd.concat([one, two], axis=1, join="inner").to_numpy()
    found: dict = {"first": first, "second": second, "trials": len(both)}
    found |= {"first_error": both[:, 0].mean(), "second_error": both[:, 1].mean()}
    differences = both[:, 0] - both[:, 1] if np.isfinite(both).all() else np.full(len(both), np.nan)
    mean = float(differences.mean())
    if len(both) < 2 or not np.isfinite(mean):
        return found | {"difference": mean, "low": np.nan, "high": np.nan, "better": "undecided"}
    spread = stats.sem(differences)
    # Equal differences have no spread, and the interval is the point itself.
    low, high = stats.t.interval(confidence, len(both) - 1, mean, spread) if spread > 0 else (mean, mean)
    better = first if high < 0 else second if low > 0 else "undecided"
    return found | {"difference": mean, "low": float(low), "high": float(high), "better": better}
