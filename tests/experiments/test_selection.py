"""Selection by training loss, on tables small enough to work out by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from gridrows import INF, NAN, experiment, reported, rows, spiders
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.experiments import selection
from silodp.experiments.selection import RUN, choose, select
from silodp.experiments.task import POINT

LOSSES = st.lists(
    st.lists(st.sampled_from([0.5, 1.0, 1.0, 2.0, NAN, INF]), min_size=4, max_size=4), min_size=1, max_size=3
)


@settings(deadline=None, max_examples=20)
@given(st.lists(LOSSES, min_size=3, max_size=3).filter(lambda runs: len({len(losses) for losses in runs}) == 1))
def test_every_run_and_epsilon_has_its_first_point_of_least_loss(runs):
    """By plain loops, whatever the test error; a loss that is not finite is worse than any that is."""
    names = [{"epsilon": 1.0}, {"epsilon": NAN}, {"epsilon": 1.0, "reading": "batch=per_eps"}]
    order = [0.3, 0.1, 0.4, 0.2]  # the grid's order counts, not the order of the numbers
    grids = [rows("minibatch_sgd", losses, stepsizes=order, **name) for losses, name in zip(runs, names, strict=True)]
    frame = pd.concat(grids, ignore_index=True)
    chosen = {kind: choose(frame, kind) for kind in ("pooled", "per_trial")}
    for losses, name in zip(runs, names, strict=True):
        finite = [[math.inf if math.isnan(loss) else loss for loss in trial] for trial in losses]
        means = [sum(trial[point] for trial in finite) / len(finite) for point in range(4)]
        wanted = {"pooled": [order[means.index(min(means))]] * len(losses)}
        wanted["per_trial"] = [order[trial.index(min(trial))] for trial in finite]
        again = selection.losses(frame)
        again = again[again["reading"] == name.get("reading", "")]
        again = again[again["epsilon"].isna() == math.isnan(name["epsilon"])]
        assert again["train_loss_mean"].tolist() == pytest.approx(means)
        assert again["trials"].tolist() == [len(finite)] * 4
        for kind, table in chosen.items():
            own = table["reading"].eq(name.get("reading", "")) & table["epsilon"].isna().eq(math.isnan(name["epsilon"]))
            assert list(table.columns) == [*RUN, "trial", *POINT]
            assert table[own].sort_values("trial")["stepsize"].tolist() == wanted[kind]


def test_every_selection_that_a_report_asks_for_is_made_once():
    reports = [{"selection": "per_trial"}, {"selection": "per_trial", "evaluation": "same"}, {"selection": "pooled"}]
    found = select(rows("minibatch_sgd", [[1.0, 2.0]]), experiment(reports=reports))
    assert found["selection"].tolist() == ["per_trial", "pooled"]


def test_spider_is_the_form_of_smaller_training_loss():
    one = spiders([[1.0], [1.0]], [[0.5], [2.0]], epsilon=1.0)
    eight = spiders([[5.0], [5.0]], [[4.0], [4.0]], epsilon=8.0)
    frame = pd.concat([one, eight], ignore_index=True)
    found = reported(frame)
    spider = found[found["algorithm"] == "spider"]
    assert spider[spider["epsilon"] == 1]["source"].tolist() == ["fedprox_spider"] * 2
    assert spider[spider["epsilon"] == 8]["source"].tolist() == ["fed_spider"] * 2
    assert spider[spider["epsilon"] == 1]["phase_length"].tolist() == [2, 2]
    assert len(found) == 3 * 4
    each = reported(frame, "per_trial")
    sources = each[(each["algorithm"] == "spider") & (each["epsilon"] == 1)].set_index("trial")["source"]
    assert sources.to_dict() == {0: "fed_spider", 1: "fedprox_spider"}


@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_spider_that_diverged_does_not_win(bad):
    found = reported(spiders([[bad], [1.0]], [[9.0], [9.0]]))
    assert found[found["algorithm"] == "spider"]["source"].tolist() == ["fed_spider"] * 2
    both = reported(spiders([[bad]], [[bad]]))
    assert both[both["algorithm"] == "spider"]["source"].tolist() == ["fedprox_spider"]


def test_spider_is_chosen_by_the_grid_runs_and_reported_on_the_fresh_ones():
    grid = spiders([[1.0], [1.0]], [[2.0], [2.0]])
    fresh = grid.assign(train_loss=np.where(grid["algorithm"] == "fed_spider", 0.1, 7.0), test_error=0.33)
    found = reported(grid, fresh=fresh, evaluation="fresh")
    spider = found[found["algorithm"] == "spider"]
    assert spider["source"].tolist() == ["fedprox_spider"] * 2
    assert spider["train_loss"].tolist() == [7.0, 7.0]
    assert set(found["test_error"]) == {0.33}
