"""Published tables of bounds are what the checks give today: a constant that moves is seen.

Runs can confirm a bound that is 20 times too large, so no verdict feels a factor of two. Bounds are compared where the
algorithms are replaced by one that stays at its start, measured numbers where a sweep is run at its first value alone.
"""

import dataclasses
import importlib
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from small import ROOT

from silodp.streams import Streams
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.checks.base import Context, row, sweep_rows, table
from silodp.verdicts.checks.rates_nonconvex import _prox_sgd, _spider
from silodp.verdicts.checks.stack import NULLS, replace_algorithms
from silodp.verdicts.checks.upper_bounds import _hinge
from silodp.verdicts.statistics import mean_interval

PUBLISHED = ROOT / "results" / "published"
CONFIG = json.loads((PUBLISHED / "config.json").read_text())
SEED = CONFIG["seed"]
# It waits for a risk that is not reached without training.
UNREACHED = {"rounds_to_target"}
# Their problems take a minute: the risk of a sweep's points is left out, for it moves no bound.
LARGE = {"rates_nonconvex", "shuffled_records"}
# No run stands behind the others.
TRAINED = set(CHECKS) - {"figure_3", "table_1"}
# What these go over is cut to what takes seconds.
CUT = {"rounds_to_target": ["BETAS"], "upper_bounds": ["EPSILONS"], "trust_models": ["SILOS"]}
CUT |= {"participation": ["CASES", "SILOS"]}
# Measured for five seconds and more.
LONG = {"rates_convex", "rates_nonconvex", "svrg_against_sgd", "upper_bounds"}
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
    both = found.merge(wanted, on=KEY, suffixes=("", "_published"), validate="one_to_one")
    assert len(both) == len(found) == len(wanted)
    if check == "upper_bounds":  # where the hinge loss has other sizes at the published scale
        both = both[~both["parameter"].str.contains("hinge")]
    for name in NUMBERS:
        pairs = both[[name, f"{name}_published"]].dropna().to_numpy(float)
        np.testing.assert_allclose(pairs[:, 0], pairs[:, 1], rtol=1e-7, err_msg=name)
    assert both[NUMBERS].notna().any(axis=None)


def first_row(sweep, streams):
    name, value = f"{sweep.axis} ({sweep.regime})", sweep.values[0]
    return [row(sweep.theorem, name, float(value), mean_interval(sweep.sample(value)), None, form=sweep.form)]


PARTS = [
    pytest.param(check, CUT.get(check, []), marks=[pytest.mark.slow] * (check in LONG))
    for check in CHECKS
    if check in TRAINED
]
WHOLE = pytest.param("participation", [], marks=pytest.mark.slow)


@pytest.mark.parametrize(("check", "cut"), [*PARTS, WHOLE])
def test_measured_numbers_are_those_of_the_published_table(check, cut, monkeypatch):
    module = importlib.import_module(f"silodp.verdicts.checks.{check}")
    for name in cut:
        values = getattr(module, name)
        monkeypatch.setattr(module, name, {} if isinstance(values, dict) else values[:1])
    monkeypatch.setattr(module, "_hinge", lambda _: [], raising=False)  # half a minute
    monkeypatch.setattr(module, "sweep_rows", first_row, raising=False)
    context = Context(Streams(SEED).child("bounds", check), CONFIG["bounds"]["scale"])
    found = table(check, getattr(module, check)(context)).fillna({"form": ""})
    found = found[~found["parameter"].str.startswith("printed")]  # made from a slope
    assert_measured_as_published(check, found)


def assert_measured_as_published(check, found):
    published = pd.read_csv(PUBLISHED / "bounds" / f"{check}.csv", float_precision="round_trip").fillna({"form": ""})
    both = found.merge(published, on=KEY, suffixes=("", "_published"))
    assert len(both) == len(found)
    for name in ("measured", "measured_low", "measured_high"):
        np.testing.assert_allclose(both[name], both[f"{name}_published"], rtol=1e-7, err_msg=name)
    assert both["measured"].notna().any()


@pytest.mark.parametrize("sweeps", [_prox_sgd, _spider])
def test_risks_with_a_penalty_are_those_of_the_published_table(sweeps):
    context = Context(Streams(SEED).child("bounds", "rates_nonconvex"), CONFIG["bounds"]["scale"])
    sweep = next(sweep for sweep in sweeps(context) if "l1" in sweep.regime)
    assert_measured_as_published("rates_nonconvex", table("rates_nonconvex", first_row(sweep, context.streams)))


def test_the_hinge_loss_has_its_published_bound_at_the_published_sizes():
    context = Context(Streams(SEED).child("bounds", "upper_bounds", "_hinge"), CONFIG["bounds"]["scale"])
    with replace_algorithms(NULLS[0]):
        (found,) = _hinge(context)
    (wanted,) = (
        pd.read_csv(PUBLISHED / "bounds" / "upper_bounds.csv").query("theorem == 'convex-2.2'").to_dict("records")
    )
    assert found["upper"] == pytest.approx(wanted["upper"], rel=1e-12)
    assert wanted["null"].startswith(f"w_0 {found['measured']:.3g} passes;")
