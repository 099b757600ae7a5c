"""Selection by training loss and the tables that report it, on tables small enough to work out by hand."""

import math

import numpy as np
import pandas as pd
import pytest

import small
from silodp.config import Report
from silodp.results import TABLE_COLUMNS
from silodp.training import POINT
from silodp.tuning import RUN, choose, complete, report_rows, select, summarise, table

INF, NAN = math.inf, math.nan


def rows(algorithm, losses, *, epsilon=1.0, stepsizes=None, q=1, M=2, R=3, reading="", errors=None, clip=1.0, **more):
    """Grid rows: `losses[trial][point]`; a point is a step size, its test error ten times its loss unless given."""
    found = []
    for trial, each in enumerate(losses):
        for point, loss in enumerate(each):
            error = 10 * loss if errors is None else errors[trial][point]
            found.append(
                {
                    "experiment": "e",
                    "algorithm": algorithm,
                    "reading": reading,
                    "M": M,
                    "R": R,
                    "trial": trial,
                    "epsilon": epsilon,
                    "stepsize": (stepsizes or [0.1, 0.2, 0.3, 0.4])[point],
                    "clip": clip,
                    "phase_length": q,
                    "K": 5,
                    "train_loss": loss,
                    "test_error": error,
                    "train_error": 0.0,
                    "test_loss": 0.0,
                    "diverged": not math.isfinite(loss),
                    "left_after": -1,
                    "seconds": 2.0,
                    "N": 4,
                    "n": 100,
                    "delta": 1e-4,
                }
                | more
            )
    return pd.DataFrame(found)


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


def experiment(**changes):
    changes.setdefault("reports", [{"selection": "pooled", "evaluation": "same"}])
    changes.setdefault(
        "algorithms", {name: {} for name in ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider")}
    )
    return small.experiment(**changes)


def test_every_selection_that_a_report_asks_for_is_made_once():
    reports = [{"selection": "per_trial"}, {"selection": "per_trial", "evaluation": "same"}, {"selection": "pooled"}]
    found = select(rows("minibatch_sgd", [[1.0, 2.0]]), experiment(reports=reports))
    assert found["selection"].tolist() == ["per_trial", "pooled"]


# Best of two


def spiders(prox, fed, **more):
    return pd.concat(
        [rows("fedprox_spider", prox, q=2, **more), rows("fed_spider", fed, clip=3.0, **more)], ignore_index=True
    )


def reported(frame, selection="pooled", fresh=None, evaluation="same"):
    chosen = choose(frame, selection).assign(selection=selection)
    return report_rows(frame, fresh, chosen, selection, evaluation)


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


# Reports


def test_same_reports_the_runs_that_chose_and_fresh_the_new_ones():
    grid = rows("minibatch_sgd", [[1.0, 2.0], [3.0, 2.5]])
    fresh = rows("minibatch_sgd", [[1.5, 9.0], [3.5, 8.0]])
    found = reported(grid, fresh=fresh, evaluation="same")
    assert found["train_loss"].tolist() == [1.0, 3.0]
    found = reported(grid, fresh=fresh, evaluation="fresh")
    assert found["train_loss"].tolist() == [1.5, 3.5]
    assert found["stepsize"].tolist() == [0.1, 0.1]
    found = reported(grid, "per_trial", fresh=fresh, evaluation="fresh")
    assert found["train_loss"].tolist() == [1.5, 8.0]


def test_fresh_runs_that_are_asked_for_must_be_there():
    with pytest.raises(ValueError, match="evaluation = 'fresh': no fresh runs were given"):
        reported(rows("minibatch_sgd", [[1.0]]), evaluation="fresh")


def delivered(row):
    """A delivered ε that says whose it is."""
    return {"fedprox_spider": 1.0, "fed_spider": 2.0}.get(row["source"], 3.0) + 0.1 * row["phase_length"]


def test_summaries_by_hand():
    """Errors 0.1 … 0.5: mean 0.3, percentiles 5 and 95 at 0.12 and 0.48."""
    frame = rows("minibatch_sgd", [[1.0], [2.0], [3.0], [4.0], [5.0]], errors=[[0.1], [0.2], [0.3], [0.4], [0.5]])
    frame["seconds"] = [1.0, 2.0, 3.0, 4.0, 5.0]
    (row,) = summarise(reported(frame), delivered).to_dict("records")
    assert row["trials"] == 5
    assert row["diverged"] == 0
    assert row["train_loss_mean"] == pytest.approx(3.0)
    assert row["test_error_mean"] == pytest.approx(0.3)
    assert row["test_error_p05"] == pytest.approx(0.12)
    assert row["test_error_p95"] == pytest.approx(0.48)
    assert row["seconds"] == pytest.approx(3.0)
    assert (row["N"], row["n"], row["K"], row["delta"]) == (4, 100, 5, 1e-4)
    assert (row["stepsize"], row["clip"], row["phase_length"]) == (0.1, 1.0, 1)
    assert row["private"]
    assert row["delivered_epsilon"] == pytest.approx(3.1)


def test_a_baseline_has_no_delivered_epsilon():
    (row,) = summarise(reported(rows("minibatch_sgd", [[1.0]], epsilon=NAN)), delivered).to_dict("records")
    assert not row["private"]
    assert math.isnan(row["epsilon"])
    assert math.isnan(row["delivered_epsilon"])


@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_diverged_trial_stays_in_the_means(bad):
    frame = rows("minibatch_sgd", [[1.0], [bad], [3.0]], errors=[[0.1], [1.0], [0.2]])
    (row,) = summarise(reported(frame), delivered).to_dict("records")
    assert (row["trials"], row["diverged"]) == (3, 1)
    assert row["test_error_mean"] == pytest.approx(1.3 / 3)
    assert row["train_loss_mean"] == INF, "a loss that is no number must not vanish from the mean"


def test_a_diverged_regression_has_an_infinite_error():
    frame = rows("minibatch_sgd", [[1.0]] * 21, errors=[[0.5]] * 20 + [[INF]])
    (row,) = summarise(reported(frame), delivered).to_dict("records")
    assert row["test_error_mean"] == INF
    assert row["test_error_p05"] == 0.5
    assert row["test_error_p95"] == 0.5
    frame = rows("minibatch_sgd", [[1.0]] * 3, errors=[[INF]] * 3)
    (row,) = summarise(reported(frame), delivered).to_dict("records")
    assert (row["test_error_p05"], row["test_error_p95"]) == (INF, INF)


def test_what_trials_chose_differently_has_no_single_value():
    frame = pd.concat(
        [
            rows("fedprox_spider", [[1.0], [9.0]], q=1, K=5),
            rows("fedprox_spider", [[9.0], [1.0]], q=4, K=8),
        ],
        ignore_index=True,
    )
    (row,) = summarise(reported(frame, "per_trial"), delivered).to_dict("records")
    assert row["stepsize"] == 0.1
    assert math.isnan(row["phase_length"])
    assert math.isnan(row["K"]), "K goes with the phase length"
    assert row["delivered_epsilon"] == pytest.approx(1.4), "the largest of what the trials deliver holds for the row"


def test_a_spider_row_delivers_what_its_source_does():
    frame = spiders([[1.0], [3.0]], [[2.0], [2.0]])
    found = summarise(reported(frame, "per_trial"), delivered).set_index("algorithm")["delivered_epsilon"]
    assert found.to_dict() == pytest.approx({"fedprox_spider": 1.2, "fed_spider": 2.1, "spider": 2.1})
    found = summarise(reported(frame), delivered).set_index("algorithm")["delivered_epsilon"]
    assert found.to_dict() == pytest.approx({"fedprox_spider": 1.2, "fed_spider": 2.1, "spider": 1.2})


# Tables


def full(**changes):
    """A grid of every algorithm at two ε and without noise, and fresh runs of it."""
    generator = np.random.default_rng(0)
    parts = []
    for algorithm in ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider"):
        for epsilon in (8.0, NAN, 1.0):
            for M in (2, 1):
                for reading in changes.get("readings", [""]):
                    losses = generator.random((3, 4)).tolist()
                    parts.append(rows(algorithm, losses, epsilon=epsilon, M=M, reading=reading))
    grid = pd.concat(parts, ignore_index=True)
    return grid, grid.assign(train_loss=grid["train_loss"] + 1, test_error=0.5)


def test_a_table_has_its_columns_and_one_row_for_each_key():
    grid, fresh = full()
    config = experiment(
        settings=[{"M": 2, "R": 3}, {"M": 1, "R": 3}],
        reports=[
            {"selection": "pooled", "evaluation": "fresh"},
            {"selection": "pooled", "evaluation": "same"},
            {"selection": "per_trial", "evaluation": "fresh"},
        ],
    )
    found = table(grid, fresh, select(grid, config), config, delivered)
    assert list(found.columns) == TABLE_COLUMNS
    assert not found.duplicated(["algorithm", "M", "R", "epsilon", "reading"]).any()
    assert set(found["reading"]) == {"", "evaluation=same", "selection=per_trial"}
    assert len(found) == 3 * 2 * (4 * 3 + 3)
    assert set(found["algorithm"]) == {"minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider", "spider"}
    first = found[found["reading"] == ""]
    assert set(first["selection"]) == {"pooled"}
    assert set(first["evaluation"]) == {"fresh"}
    assert (first["test_error_mean"] == 0.5).all()
    assert (found[found["reading"] == "evaluation=same"]["test_error_mean"] != 0.5).all()
    assert set(found[found["reading"] == "selection=per_trial"]["selection"]) == {"per_trial"}
    assert (found["private"] == found["epsilon"].notna()).all()
    # Settings, then algorithms in the config's order with spider last, then ε upwards and the baseline.
    assert first["M"].tolist() == sorted(first["M"])
    one = first[first["M"] == 1]
    assert list(dict.fromkeys(one["algorithm"])) == [*config.algorithms, "spider"]
    assert one["epsilon"].fillna(-1).tolist() == [1.0, 8.0, -1] * 5


def test_a_reports_reading_is_added_to_the_runs():
    grid, fresh = full(readings=["", "batch=per_eps"])
    reports = [{"selection": "pooled", "evaluation": "fresh"}, {"selection": "per_trial", "evaluation": "same"}]
    config = experiment(alternatives=[{"batch": "per_eps"}], reports=reports)
    found = table(grid, fresh, select(grid, config), config, delivered)
    assert set(found["reading"]) == {
        "",
        "batch=per_eps",
        "selection=per_trial;evaluation=same",
        "batch=per_eps;selection=per_trial;evaluation=same",
    }
    assert not found.duplicated(["algorithm", "M", "R", "epsilon", "reading"]).any()


def test_the_table_reads_back_as_it_was(tmp_path):
    from silodp.results import write_csv

    grid, fresh = full()
    config = experiment()
    found = table(grid, fresh, select(grid, config), config, delivered)
    write_csv(found, tmp_path / "table.csv")
    back = pd.read_csv(tmp_path / "table.csv", float_precision="round_trip")
    back["reading"] = back["reading"].fillna("")
    pd.testing.assert_frame_equal(back, found.astype(back.dtypes), check_exact=True)
    text = (tmp_path / "table.csv").read_text().splitlines()
    assert text[0] == ",".join(TABLE_COLUMNS)
    baseline = next(line for line in text if ",False," in line).split(",")
    assert baseline[TABLE_COLUMNS.index("epsilon")] == ""


def test_readings_that_say_nothing_to_an_algorithm_are_shown_with_the_defaults_runs():
    config = experiment(alternatives=[{"spider_q1_noise": "minibatch"}, {"batch": "per_eps"}])
    labels = ["", "spider_q1_noise=minibatch", "batch=per_eps"]
    parts = [
        rows(algorithm, [[1.0, 2.0]], reading=label)
        for algorithm in config.algorithms
        for label in labels
        if config.trained_as(algorithm, label) == label
    ]
    trained = {(part["algorithm"][0], part["reading"][0]) for part in parts}
    assert ("fedprox_spider", "spider_q1_noise=minibatch") in trained
    assert ("minibatch_sgd", "spider_q1_noise=minibatch") not in trained
    assert ("fed_spider", "spider_q1_noise=minibatch") not in trained
    found = complete(pd.concat(parts, ignore_index=True), config)
    keys = found[["algorithm", "reading"]].drop_duplicates()
    assert {tuple(key) for key in keys.to_numpy()} == {(a, r) for a in config.algorithms for r in labels}
    assert not found.duplicated([*RUN, "trial", *POINT]).any()
    whole = table(found, None, select(pd.concat(parts, ignore_index=True), config), config, delivered)
    assert len(whole) == 3 * 5


def test_whole_numbers_stay_whole_where_trials_chose_differently(tmp_path):
    """A table of trials that disagree on q has an empty cell, and no 5.0 in the others."""
    from silodp.results import write_csv

    grid = pd.concat(
        [
            rows("fedprox_spider", [[1.0], [9.0]], q=1, K=5),
            rows("fedprox_spider", [[9.0], [1.0]], q=4, K=8),
            rows("minibatch_sgd", [[1.0], [1.0]], K=5),
        ],
        ignore_index=True,
    )
    config = experiment(reports=[{"selection": "per_trial", "evaluation": "same"}])
    write_csv(table(grid, None, select(grid, config), config, delivered), tmp_path / "table.csv")
    back = pd.read_csv(tmp_path / "table.csv", dtype=str, keep_default_na=False).set_index("algorithm")
    assert back["K"].to_dict() == {"fedprox_spider": "", "minibatch_sgd": "5"}
    assert back["phase_length"].to_dict() == {"fedprox_spider": "", "minibatch_sgd": "1"}


def test_the_default_report_is_the_first():
    assert Report().selection == "pooled"
    assert Report().evaluation == "fresh"
