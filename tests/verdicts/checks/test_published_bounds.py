"""Bounds that the published tables hold runs against are what the theorems give today: a constant that moves is seen.

Runs can confirm a bound that is 20 times too large, so no measured value feels a factor of two. The algorithms are
replaced by one that stays at its start: only what theorems and schedules give is compared.
"""

import dataclasses
import importlib
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from small import ROOT

from silodp.federation.streams import Streams
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.checks.base import Context, sweep_rows, table
from silodp.verdicts.checks.stack import NULLS, replace_algorithms

PUBLISHED = ROOT / "results" / "published"
SEED = json.loads((PUBLISHED / "config.json").read_text())["seed"]
# It waits for a risk that is not reached without training.
UNREACHED = {"rounds_to_target"}
# Their problems take a minute: the risk of a sweep's points is left out, for it moves no bound.
LARGE = {"rates_nonconvex", "shuffled_records"}
KEY, NUMBERS = ["theorem", "parameter", "value", "form"], ["lower", "upper", "formula"]


def bounds_without_training(check: str) -> pd.DataFrame:
    """Rows of a check at its smallest, by `KEY`, where w stays at its start."""
    context = Context(Streams(SEED).child("bounds", check), "smoke")
    with replace_algorithms(NULLS[0]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = getattr(importlib.import_module(f"silodp.verdicts.checks.{check}"), check)(context)
    return table(check, rows)


def rows_at_no_risk(sweep, streams):
    return sweep_rows(dataclasses.replace(sweep, sample=lambda _: np.zeros(8)), streams)


@pytest.mark.parametrize("check", sorted(set(CHECKS) - UNREACHED))
def test_bounds_are_those_of_the_published_table(check, monkeypatch):
    if check in LARGE:
        monkeypatch.setattr(f"silodp.verdicts.checks.{check}.sweep_rows", rows_at_no_risk)
    published = pd.read_csv(PUBLISHED / "bounds" / f"{check}.csv", float_precision="round_trip")
    found, wanted = (rows.fillna({"form": ""}) for rows in (bounds_without_training(check), published))
    both = found.merge(wanted, on=KEY, suffixes=("", "_published"))
    if check == "upper_bounds":  # where the hinge loss has other sizes at the published scale
        both = both[~both["parameter"].str.contains("hinge")]
    assert len(both) >= 0.9 * len(found)
    for name in NUMBERS:
        pairs = both[[name, f"{name}_published"]].dropna().to_numpy(float)
        np.testing.assert_allclose(pairs[:, 0], pairs[:, 1], rtol=1e-7, err_msg=name)
    assert both[NUMBERS].notna().any(axis=None)
