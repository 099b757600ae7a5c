"""Selection by training loss, on tables small enough to work out by hand."""

import numpy as np
import pandas as pd
import pytest
from gridrows import INF, NAN, experiment, reported, rows, spiders

from silodp.experiments.selection import RUN, choose, select
from silodp.experiments.task import POINT


def chosen_steps(frame, selection):
    found = choose(frame, selection)
    assert list(found.columns) == [*RUN, "trial", *POINT]
    return dict(zip(found["trial"], found["stepsize"], strict=True))


# Selection


def test_pooled_selection_takes_the_smallest_mean_and_per_trial_the_smallest_of_each():
    """Means 2, 1.9, 2.2: the second point; by trial the first, the third, the second."""
    frame = rows("minibatch_sgd", [[1.0, 1.2, 3.0], [3.0, 2.5, 0.6], [2.0, 1.9, 3.0]])
    frame["test_error"] = 0.0
    assert chosen_steps(frame, "pooled") == {0: 0.2, 1: 0.2, 2: 0.2}
    assert chosen_steps(frame, "per_trial") == {0: 0.1, 1: 0.3, 2: 0.2}


def test_selection_never_looks_at_the_test_error():
    frame = rows("minibatch_sgd", [[1.0, 2.0]], errors=[[9.0, 0.0]])
    for selection in ("pooled", "per_trial"):
        assert chosen_steps(frame, selection) == {0: 0.1}


def test_ties_go_to_the_first_point_of_the_grid():
    """The grid's order counts, not the order of the numbers."""
    frame = rows("minibatch_sgd", [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], stepsizes=[0.3, 0.1, 0.2])
    for selection in ("pooled", "per_trial"):
        assert chosen_steps(frame, selection) == {0: 0.3, 1: 0.3}
    shuffled = pd.concat([frame[frame["trial"] == 1], frame[frame["trial"] == 0]])
    assert chosen_steps(shuffled, "pooled") == {0: 0.3, 1: 0.3}


@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_loss_that_is_not_finite_is_never_chosen_over_one_that_is(bad):
    frame = rows("minibatch_sgd", [[bad, 5.0], [0.1, 5.0]])
    assert chosen_steps(frame, "pooled") == {0: 0.2, 1: 0.2}
    assert chosen_steps(frame, "per_trial") == {0: 0.2, 1: 0.1}
    assert chosen_steps(rows("minibatch_sgd", [[5.0, bad], [5.0, 0.1]]), "pooled") == {0: 0.1, 1: 0.1}


def test_a_run_of_which_every_point_diverged_keeps_its_row():
    frame = rows("minibatch_sgd", [[NAN, INF, NAN], [INF, INF, NAN]])
    for selection in ("pooled", "per_trial"):
        assert chosen_steps(frame, selection) == {0: 0.1, 1: 0.1}


def test_a_point_that_diverged_with_a_finite_loss_competes_by_its_loss():
    frame = rows("minibatch_sgd", [[1.0, 3.0]]).assign(diverged=[True, False])
    assert chosen_steps(frame, "pooled") == {0: 0.1}


def test_every_run_and_epsilon_is_chosen_for_by_itself():
    frame = pd.concat(
        [
            rows("minibatch_sgd", [[1, 2], [1, 2]]),
            rows("minibatch_sgd", [[2, 1], [2, 1]], epsilon=8.0),
            rows("minibatch_sgd", [[2, 1], [2, 1]], epsilon=NAN),
            rows("minibatch_sgd", [[2, 1], [2, 1]], M=1),
            rows("minibatch_sgd", [[2, 1], [2, 1]], R=9),
            rows("minibatch_sgd", [[2, 1], [2, 1]], reading="batch=per_eps"),
            rows("local_sgd", [[2, 1], [2, 1]]),
        ],
        ignore_index=True,
    )
    for selection in ("pooled", "per_trial"):
        found = choose(frame, selection)
        assert len(found) == 7 * 2
        assert not found.duplicated([*RUN, "epsilon", "trial"]).any()
        default = found[
            (found["algorithm"] == "minibatch_sgd")
            & (found["epsilon"] == 1)
            & (found["M"] == 2)
            & (found["R"] == 3)
            & (found["reading"] == "")
        ]
        assert default["stepsize"].tolist() == [0.1, 0.1]
        assert found.drop(default.index)["stepsize"].tolist() == [0.2] * 12


def test_clip_and_phase_length_are_chosen_with_the_step_size():
    frame = pd.concat(
        [
            rows("fedprox_spider", [[4.0], [4.0]], q=1, clip=1.0),
            rows("fedprox_spider", [[3.0], [3.0]], q=2, clip=1.0),
            rows("fedprox_spider", [[2.0], [5.0]], q=2, clip=INF),
        ],
        ignore_index=True,
    )
    pooled, each = choose(frame, "pooled"), choose(frame, "per_trial")
    assert pooled[["clip", "phase_length"]].to_numpy().tolist() == [[1.0, 2], [1.0, 2]]
    assert each[["clip", "phase_length"]].to_numpy().tolist() == [[INF, 2], [1.0, 2]]


def test_an_unknown_selection_is_refused():
    with pytest.raises(ValueError, match="selection = 'best': must be pooled or per_trial"):
        choose(rows("minibatch_sgd", [[1.0]]), "best")


def test_every_selection_that_a_report_asks_for_is_made_once():
    reports = [{"selection": "per_trial"}, {"selection": "per_trial", "evaluation": "same"}, {"selection": "pooled"}]
    found = select(rows("minibatch_sgd", [[1.0, 2.0]]), experiment(reports=reports))
    assert found["selection"].tolist() == ["per_trial", "pooled"]


# Best of two


def test_spider_is_the_one_of_smaller_training_loss_for_each_epsilon():
    frame = pd.concat(
        [spiders([[1.0], [1.0]], [[0.5], [2.0]], epsilon=1.0), spiders([[5.0], [5.0]], [[4.0], [4.0]], epsilon=8.0)],
        ignore_index=True,
    )
    found = reported(frame)
    spider = found[found["algorithm"] == "spider"]
    assert spider[spider["epsilon"] == 1]["source"].tolist() == ["fedprox_spider"] * 2
    assert spider[spider["epsilon"] == 8]["source"].tolist() == ["fed_spider"] * 2
    assert spider[spider["epsilon"] == 1]["phase_length"].tolist() == [2, 2]
    assert len(found) == 3 * 4
    each = reported(frame, "per_trial")
    sources = each[(each["algorithm"] == "spider") & (each["epsilon"] == 1)].set_index("trial")["source"]
    assert sources.to_dict() == {0: "fed_spider", 1: "fedprox_spider"}


def test_spider_by_training_loss_even_where_the_test_error_says_otherwise():
    frame = spiders([[1.0]], [[2.0]])
    frame["test_error"] = np.where(frame["algorithm"] == "fed_spider", 0.0, 0.9)
    found = reported(frame)
    assert found[found["algorithm"] == "spider"]["test_error"].tolist() == [0.9]


def test_a_tie_of_the_spiders_goes_to_fedprox_spider():
    found = reported(spiders([[1.0]], [[1.0]]))
    assert found[found["algorithm"] == "spider"]["source"].tolist() == ["fedprox_spider"]


@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_spider_that_diverged_does_not_win(bad):
    found = reported(spiders([[bad], [1.0]], [[9.0], [9.0]]))
    assert found[found["algorithm"] == "spider"]["source"].tolist() == ["fed_spider"] * 2
    both = reported(spiders([[bad]], [[bad]]))
    assert both[both["algorithm"] == "spider"]["source"].tolist() == ["fedprox_spider"]


def test_there_is_no_spider_where_one_of_the_two_was_not_run():
    found = reported(rows("fedprox_spider", [[1.0]]))
    assert found["algorithm"].tolist() == ["fedprox_spider"]


def test_the_baselines_of_the_spiders_have_their_best_of_two():
    frame = pd.concat(
        [spiders([[1.0]], [[2.0]], epsilon=1.0), spiders([[3.0]], [[2.0]], epsilon=NAN)], ignore_index=True
    )
    found = reported(frame)
    spider = found[found["algorithm"] == "spider"].set_index("epsilon")["source"]
    assert spider.loc[1.0] == "fedprox_spider"
    assert spider[spider.index.isna()].tolist() == ["fed_spider"]


def test_spider_is_chosen_by_the_grid_runs_and_reported_on_the_fresh_ones():
    grid = spiders([[1.0], [1.0]], [[2.0], [2.0]])
    fresh = grid.assign(train_loss=np.where(grid["algorithm"] == "fed_spider", 0.1, 7.0), test_error=0.33)
    found = reported(grid, fresh=fresh, evaluation="fresh")
    spider = found[found["algorithm"] == "spider"]
    assert spider["source"].tolist() == ["fedprox_spider"] * 2
    assert spider["train_loss"].tolist() == [7.0, 7.0]
    assert set(found["test_error"]) == {0.33}
