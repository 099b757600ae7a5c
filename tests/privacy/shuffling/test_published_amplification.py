"""The published tables of amplification are what their bounds give today."""

import pandas as pd
import pytest
from published import STEPS
from small import ROOT

from silodp.experiments.checkins.protocols import PROTOCOLS
from silodp.jobs import checkins, checkins_figure_2
from silodp.jobs.__main__ import main as run_job

PUBLISHED = ROOT / "results" / "published"


@pytest.mark.parametrize("step", STEPS)
def test_rows_of_figure_2_are_those_of_the_published_table(step, tmp_path, monkeypatch):
    asked = checkins_figure_2.EPSILON0[::step]
    monkeypatch.setattr(checkins_figure_2, "EPSILON0", asked)
    assert run_job(["checkins_figure_2", f"output={tmp_path / 'made.csv'}"]) == 0
    published = pd.read_csv(PUBLISHED / "checkins" / "figure_2.csv")
    wanted = published[published["epsilon0"].isin(asked)].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "made.csv"), wanted, rtol=1e-7)


def test_axes_are_those_of_the_published_tables():
    figure, trained = (pd.read_csv(PUBLISHED / f"checkins/{name}.csv") for name in ("figure_2", "mnist_logistic"))
    assert tuple(figure["epsilon0"].unique()) == checkins_figure_2.EPSILON0
    assert tuple(figure["reports"].unique()) == checkins_figure_2.CLIENTS
    assert tuple(trained["epsilon"].dropna().unique()) == checkins.EPSILONS
    slots = trained[trained["protocol"].isin(PROTOCOLS)].groupby("protocol")["slots"].agg(set).to_dict()
    assert {name: {shape.slots(60_000) for shape in of.shapes} for name, of in PROTOCOLS.items()} == slots
    assert {*figure["delta"], *trained["delta"].dropna()} == {checkins.DELTA, checkins_figure_2.DELTA}
