"""Paired comparisons: signs, intervals against SciPy's own test, forms without noise, and what cannot be compared."""

import math

import numpy as np
import pandas as pd
import pytest
from planted import trials
from scipy import stats
from small import ROOT

from silodp.jobs.__main__ import main as run_job
from silodp.verdicts.comparisons import (
    CALIBRATED,
    COLUMNS,
    SAME,
    compare,
    headline,
    outcome_of,
    same_algorithm,
)


def reported(errors):
    """One row a trial; errors: (algorithm, ε) → test errors."""
    return pd.DataFrame(trials("e", errors))


A, B = [0.1, 0.2, 0.3, 0.25], [0.3, 0.45, 0.5, 0.5]
PAIR = {("a", 1.0): A, ("b", 1.0): B}


def test_interval_is_the_paired_t_tests_and_names_the_smaller_error():
    (row,) = compare(reported(PAIR), "a", "b").to_dict("records")
    wanted = stats.ttest_rel(A, B).confidence_interval(0.95)
    assert (row["low"], row["high"]) == (pytest.approx(wanted.low), pytest.approx(wanted.high))
    assert row["difference"] == pytest.approx(np.mean(A) - np.mean(B))
    assert (row["better"], row["outcome"], row["trials"]) == ("a", "ahead", 4)
    assert list(row) == COLUMNS


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-0.3, -0.1, "ahead"),
        (0.001, 0.002, "behind"),
        (-0.005, 0.005, "equal within 0.005"),
        (-0.005, 0.0051, "no difference found"),
        (math.nan, math.nan, "no difference found"),
    ],
)
def test_the_four_outcomes_are_told_apart(low, high, outcome):
    assert outcome_of(low, high, 0.005) == outcome
    assert outcome_of(low, high, 0.0) == ("no difference found" if "equal" in outcome else outcome)


def test_order_of_the_two_turns_the_sign_and_order_of_rows_turns_nothing():
    rows = reported(PAIR)
    one, two = compare(rows, "a", "b").iloc[0], compare(rows, "b", "a").iloc[0]
    assert (one["difference"], one["low"]) == (-two["difference"], -two["high"])
    assert one["better"] == two["better"] == "a"
    reordered = rows.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(compare(rows, "a", "b"), compare(reordered, "a", "b"))


def test_a_form_without_noise_stands_against_every_epsilon():
    rows = reported({("a", 1.0): A, ("a", 2.0): B, ("b", math.nan): B, ("b", 2.0): A})
    found = compare(rows, "a", "b:non_private")
    assert found["epsilon"].tolist() == [1.0, 2.0]
    assert found["difference"].tolist() == [pytest.approx(np.mean(A) - np.mean(B)), 0.0]
    assert found["better"].tolist() == ["a", "undecided"]
    both = compare(reported({("a", math.nan): A, ("b", math.nan): B}), "a:non_private", "b:non_private")
    assert math.isnan(both["epsilon"].iloc[0])
    assert both["better"].tolist() == ["a:non_private"]


def test_a_diverged_trial_leaves_the_row_undecided():
    found = compare(reported({("a", 1.0): [0.1, math.inf], ("b", 1.0): [0.2, 0.3]}), "a", "b")
    assert found["better"].tolist() == ["undecided"]
    assert found["first_error"].iloc[0] == math.inf


@pytest.mark.parametrize(
    ("errors", "first", "message"),
    [
        ({("a", 1.0): A, ("b", 2.0): B}, "a", "no pair to compare: must be among a, b"),
        (PAIR, "c", "algorithms: c, b: no pair"),
        (PAIR, "a:non_private", "no pair to compare"),
    ],
)
def test_what_cannot_be_compared_is_refused(errors, first, message):
    with pytest.raises(ValueError, match=message):
        compare(reported(errors), first, "b")


def experiment(name, errors):
    """One row a trial; errors: (algorithm, reading) → test error of the first trial."""
    rows = []
    for (algorithm, reading), error in errors.items():
        rows += trials(name, {(algorithm, 1.0): error + 0.01 * np.arange(3)}, reading)
    return pd.DataFrame(rows)


def test_the_headline_compares_default_rows_where_an_experiment_has_both():
    pairs = {("spider", ""): 0.2, ("minibatch_sgd", ""): 0.1, ("spider", "grid=exp"): 0.2}
    found = headline({"e": experiment("e", pairs), "wbcd_mlp": experiment("wbcd_mlp", pairs)}, {"wbcd": 0.005})
    assert found[["difference", "tolerance"]].to_numpy().tolist() == [
        [pytest.approx(0.1), 0.0],
        [pytest.approx(0.1), 0.005],
    ]
    assert headline({}, {}).empty


def test_experiments_with_both_noises_are_compared_at_the_claimed_epsilon():
    """Under calibrated noise, each algorithm with itself under the paper's beside; never in the headline's figures."""
    paper = {("minibatch_sgd", ""): 0.3, ("local_sgd", ""): 0.1}
    calibrated = {("minibatch_sgd", CALIBRATED): 0.2, ("local_sgd", CALIBRATED): 0.4}
    found = headline({"e": experiment("e", paper | calibrated), "alone": experiment("alone", paper)}, {})
    keys = ["experiment", "reading", "first", "second"]
    assert found.set_index(keys)["difference"].to_dict() == {
        ("e", CALIBRATED, "minibatch_sgd", "local_sgd"): pytest.approx(-0.2),
        ("alone", "", "minibatch_sgd", "local_sgd"): pytest.approx(0.2),
        ("e", CALIBRATED, f"minibatch_sgd:{CALIBRATED}", "minibatch_sgd"): pytest.approx(-0.1),
        ("e", CALIBRATED, f"local_sgd:{CALIBRATED}", "local_sgd"): pytest.approx(0.3),
    }


def test_the_command_finds_comparisons_of_an_algorithm_with_itself(tmp_path):
    """Of the published certified MNIST runs: FedProx-SPIDER is minibatch SGD under calibrated noise, at every point."""
    published = ROOT / "results" / "published"
    reported = published / "reported" / "mnist_mlp_certified.csv"
    for options, outcomes in (([], {"no difference found"}), ([f"privacy={published}/privacy.csv"], {SAME})):
        assert run_job(["comparisons", f"reported={reported}", *options, f"output={tmp_path / 'c.csv'}"]) == 0
        found = pd.read_csv(tmp_path / "c.csv").query("first == 'spider' and second == 'minibatch_sgd'")
        assert len(found) == 20
        assert outcomes <= set(found["outcome"])
        assert (SAME in set(found["outcome"])) == (outcomes == {SAME} == set(found["outcome"]))


def test_where_fedprox_spider_is_missing_it_is_not_minibatch_sgd():
    row = {"experiment": "e", "reading": "", "M": 2, "R": 25, "epsilon": 1.0, "algorithm": "minibatch_sgd"}
    run = {"trial": 0, "stepsize": 1.0, "clip": 1.0, "phase_length": 1, "train_loss": 0.1, "test_error": 0.2}
    plan = {"sampling": "5 of 9", "noise_multiplier": 3.0, "delivered_epsilon": 0.9}
    reported, privacy = pd.DataFrame([row | run]), pd.DataFrame([row | plan])
    assert same_algorithm(reported, privacy, "fedprox_spider", "minibatch_sgd") == set()


def one_round(noise=1.0, phase=1, own=True, true=1.0):
    """Trials and plans at ε = 1 and 3 of minibatch SGD and FedProx-SPIDER, whose trials SPIDER's are where `own`."""
    errors = {
        (name, e): np.arange(4) + place
        for place, name in enumerate(("fedprox_spider", "minibatch_sgd"))
        for e in (1, 3)
    }
    errors |= {("spider", e): errors["fedprox_spider", e] + (not own) for e in (1, 3)}
    rows = pd.DataFrame(trials("e", errors)).assign(phase_length=1, stepsize=1.0, clip=1.0)
    rows.loc[(rows["algorithm"] != "minibatch_sgd") & (rows["epsilon"] == 1), "phase_length"] = phase
    place = {"experiment": "e", "reading": "", "M": 2, "R": 5, "sampling": "5 of 9"}
    plans = [
        place | {"epsilon": e, "algorithm": name, "noise_multiplier": sigma * e, "delivered_epsilon": delivered * e}
        for name, sigma, delivered in (("minibatch_sgd", 1.0, 1.0), ("fedprox_spider", noise, true))
        for e in (1.0, 3.0)
    ]
    return rows, pd.DataFrame(plans)


def test_an_algorithm_under_another_name_is_found_and_is_no_lead():
    rows, plans = one_round(noise=1.0008)
    for first in ("spider", "fedprox_spider"):
        assert same_algorithm(rows, plans, first, "minibatch_sgd") == {("e", "", 2, 5, 1.0), ("e", "", 2, 5, 3.0)}
    assert set(compare(rows, "spider", "minibatch_sgd", privacy=plans)["outcome"]) == {SAME}
    assert SAME not in set(compare(rows, "spider", "minibatch_sgd")["outcome"])


@pytest.mark.parametrize("other", [{"noise": 1.002}, {"phase": 2}, {"own": False}, {"true": 1.4}])
def test_other_noise_longer_phases_or_more_releases_are_another_algorithm(other):
    found = same_algorithm(*one_round(**other), "spider", "minibatch_sgd")
    assert ("e", "", 2, 5, 1.0) not in found
