"""Test errors of two algorithms trial by trial: the table of trials and ε that every comparison starts from.

Without noise ε is NaN, as in the tables; behind an algorithm's name `:non_private` asks for that form.
"""

import pandas as pd

from silodp.files import NON_PRIVATE


def errors_by_trial(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Test errors of an algorithm or its form without noise: a row a trial, a column an ε.

    `rows` are those of one experiment, reading and (M, R), with a row a trial.
    """
    rows = rows[rows["algorithm"] == name.removesuffix(NON_PRIVATE)]
    rows = rows[rows["epsilon"].isna() == name.endswith(NON_PRIVATE)]
    return rows.pivot(index="trial", columns="epsilon", values="test_error")


def paired_errors(rows: pd.DataFrame, first: str, second: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of both at every ε that both have, in the trials that both have: of equal shape, no column for no pair.

    A form without noise stands against every ε of the other.
    """
    one, other = (errors_by_trial(rows, name) for name in (first, second))
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
