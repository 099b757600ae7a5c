"""Two algorithms compared trial by trial: both see the same silos, split and start in a trial, so trials are pairs."""

import itertools
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from silodp.files import NON_PRIVATE
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.statistics import paired_test

_KEY = ["experiment", "reading", "M", "R"]
CELL = [*_KEY, "epsilon"]
_NUMBERS = ["trials", "first_error", "second_error", "difference", "low", "high", "p", "p_sign_flip"]
COLUMNS = [*CELL, "first", "second", *_NUMBERS, "better", "outcome"]
# What a comparison says of the first algorithm; `outcome_of` has the fifth.
AHEAD, BEHIND, NO_DIFFERENCE, SAME = "ahead", "behind", "no difference found", "same algorithm"
# With phases of one round the first takes the steps of the second: under equal noise they are the same algorithm.
_PHASED, _PLAIN, _EQUAL_NOISE = "fedprox_spider", "minibatch_sgd", 1e-3


def outcome_of(low: float, high: float, tolerance: float) -> str:
    """What an interval of first − second says; one that contains 0 may lie within the tolerance."""
    if high < 0 or low > 0:
        return AHEAD if high < 0 else BEHIND
    return f"equal within {tolerance:g}" if tolerance > 0 and max(-low, high) <= tolerance else NO_DIFFERENCE


def same_algorithm(reported: pd.DataFrame, privacy: pd.DataFrame, first: str, second: str) -> set[tuple]:
    """(experiment, reading, M, R, ε) at which both names stand for the same mechanism.

    Both sample alike, and their noise multipliers and true ε, hence the number of releases, agree within 0.1 %; the
    chosen phases have one round. A better of two algorithms is the one whose trials it has. Step and clip may differ.
    """
    trials = ["trial", "stepsize", "clip", "phase_length", "train_loss", "test_error"]
    plans = privacy.set_index([*CELL, "algorithm"])[["sampling", "noise_multiplier", "delivered_epsilon"]]
    found = set()
    for cell, part in reported[reported["algorithm"].isin([first, second, _PHASED])].groupby(CELL):
        of = {name: rows[trials].to_numpy(float) for name, rows in part.groupby("algorithm")}
        own = {n for n in of if _PHASED in of and np.array_equal(of[n], of[_PHASED])}
        rows = [(*cell, name) for name in (_PHASED, _PLAIN)]
        same_steps = {_PHASED if n in own else n for n in (first, second)} == {_PHASED, _PLAIN}
        if same_steps and _PHASED in of and (of[_PHASED][:, 3] == 1).all() and all(row in plans.index for row in rows):
            (sampling, *ours), (other, *theirs) = plans.loc[rows].to_numpy()
            if sampling == other and np.allclose(np.array(ours, float), np.array(theirs, float), _EQUAL_NOISE, 0):
                found.add(cell)
    return found


def compare(
    reported: pd.DataFrame,
    first: str,
    second: str,
    tolerance: float = 0.0,
    privacy: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Paired differences of test error, first − second, a row for each reading, (M, R) and ε: `COLUMNS`.

    `reported` has a row a trial (the job `table`). Private algorithms are compared at the same ε, a form
    without noise, as in `local_sgd:non_private`, with every ε. The interval is two-sided, by Student's t; `better` has
    the smaller error where it leaves out 0, else "undecided", as where a trial diverged. p: `PairedTest`.
    With the `privacy` table, whose rows `same_algorithm` reads, `outcome` finds such rows. Raises ValueError for an
    algorithm or form that the table lacks.
    """
    reported = reported.assign(reading=reported["reading"].fillna(""))
    same = set() if privacy is None else same_algorithm(reported, privacy, first, second)
    rows = []
    for key, part in reported.groupby(_KEY, sort=False):
        names = dict(zip(_KEY, key, strict=True)) | {"first": first, "second": second}
        one, other = _paired_errors(part, first, second)
        for epsilon in one.columns:
            numbers = _paired(one[epsilon], other[epsilon], names, tolerance)
            if (*key, epsilon) in same:
                numbers |= {"better": "undecided", "outcome": SAME}
            rows.append(names | {"epsilon": epsilon} | numbers)
    if not rows:
        known = ", ".join(sorted(reported["algorithm"].unique()))
        raise ValueError(f"algorithms: {first}, {second}: no pair to compare: must be among {known}")
    return pd.DataFrame(rows)[COLUMNS].astype({"epsilon": float})


# The pairs of the first figure that a reader meets.
HEADLINE = (("spider", "minibatch_sgd"), ("minibatch_sgd", "local_sgd"))
# The reading with the least noise that certifies the claimed ε, and what stands behind an algorithm's name for it.
CALIBRATED = "noise=calibrated"
# The same where local SGD adds noise at the end of a round, so that its true ε is known from both sides too.
ENDED = f"{CALIBRATED};noise_at=end"
BY_CALIBRATED = f":{CALIBRATED}"


def pairs_of(own: Iterable[str] = ()) -> list[tuple[str, str]]:
    """The pairs of `HEADLINE`, and each of one's `own` algorithms, of plug-ins, against those in them."""
    papers = dict.fromkeys(name for pair in HEADLINE[::-1] for name in pair)
    return [*HEADLINE, *itertools.product(own, papers)]


def headline(
    reported: Mapping[str, pd.DataFrame],
    margins: Mapping[str, float],
    privacy: pd.DataFrame | None = None,
    own: Iterable[str] = (),
) -> pd.DataFrame:
    """The pairs of `pairs_of(own)` compared in every experiment that has both: `COLUMNS` and `tolerance`.

    An experiment that trains both noises compares its pairs under calibrated noise, and each algorithm under it with
    itself under the paper's (`compare_noises`); others compare the default variant. `reported` maps an experiment to a
    row a trial, `margins` a data set to the difference in test error that counts as none (Δ of decided.yaml).
    """
    found = []
    tables = {name: rows.assign(reading=rows["reading"].fillna("").astype(str)) for name, rows in reported.items()}
    for first, second in pairs_of(own):
        for name, rows in tables.items():
            tolerance = margins.get(data_set(name), 0.0)
            for reading in [label for label in (ENDED, CALIBRATED) if (rows["reading"] == label).any()] or [""]:
                with suppress(ValueError):  # the experiment does not have both
                    compared = compare(rows[rows["reading"] == reading], first, second, tolerance, privacy)
                    found.append(compared.assign(tolerance=tolerance))
    for algorithm in dict.fromkeys(name for pair in HEADLINE for name in pair):
        for rows in tables.values():
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


def _paired(first: pd.Series, second: pd.Series, names: Mapping[str, Any], tolerance: float) -> dict[str, Any]:
    both = np.column_stack([first, second])
    found = {"trials": len(both), "first_error": both[:, 0].mean(), "second_error": both[:, 1].mean()}
    test = paired_test(both[:, 0] - both[:, 1] if np.isfinite(both).all() else [np.nan])
    outcome = outcome_of(test.low, test.high, tolerance)
    better = {AHEAD: names["first"], BEHIND: names["second"]}.get(outcome, "undecided")
    numbers = test._asdict()
    return found | {"difference": numbers.pop("value")} | numbers | {"better": better, "outcome": outcome}


def _errors_by_trial(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Test errors of an algorithm or its form without noise: a row a trial, a column an ε.

    `rows` are those of one experiment, reading and (M, R), with a row a trial.
    """
    rows = rows[rows["algorithm"] == name.removesuffix(NON_PRIVATE)]
    rows = rows[rows["epsilon"].isna() == name.endswith(NON_PRIVATE)]
    return rows.pivot(index="trial", columns="epsilon", values="test_error")


def _paired_errors(rows: pd.DataFrame, first: str, second: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of both at every ε that both have, in the trials that both have: of equal shape, no column for no pair.

    A form without noise stands against every ε of the other.
    """
    one, other = (_errors_by_trial(rows, name) for name in (first, second))
    if first.endswith(NON_PRIVATE) != second.endswith(NON_PRIVATE):
        one, other = _against_every(one, other.columns), _against_every(other, one.columns)
    epsilons = one.columns.intersection(other.columns)
    one, other = one[epsilons].align(other[epsilons], join="inner", axis=0)
    return one, other


def _against_every(errors: pd.DataFrame, epsilons: pd.Index) -> pd.DataFrame:
    """Errors without noise once for each ε; those with noise as they are."""
    if not errors.columns.isna().all() or errors.empty:
        return errors
    return pd.DataFrame(dict.fromkeys(epsilons, errors.iloc[:, 0]))
