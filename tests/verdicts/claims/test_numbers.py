"""Improvement, price, delivered ε, check-ins: planted tables, and the verdict and number that each must have."""

import numpy as np
import pytest
from planted import by_part, claim, folder, noisy, trials
from scipy import stats

from silodp.verdicts.claims import improvement as improvement_of
from silodp.verdicts.claims.delivered import delivered_epsilon
from silodp.verdicts.claims.improvement import price_of_privacy, relative_improvement

IMPROVEMENT = {"name": "relative_improvement", "target": "a", "stated": {"b": 10.0}, "tolerance": 2.0}
PRICE = {"name": "price_of_privacy", "algorithms": ["a"], "small": 1.0, "large": 10.0, "tolerance": 0.02}


def improvement(path, percents, experiments=("e",), spread=0.002):
    """`a` better than `b` by each of the percents, one an ε."""
    rows = []
    for name in ("e", "f")[: len(percents)]:
        planted = {}
        for place, percent in enumerate(percents[name]):
            planted["b", 1.0 + place] = noisy(0.4, spread=spread, seed=place)
            planted["a", 1.0 + place] = noisy(0.4 * (1 - percent / 100), spread=spread, seed=place + 9)
        rows += trials(name, planted)
    return by_part(relative_improvement(claim(IMPROVEMENT, experiments=list(experiments)), folder(path, rows)))


@pytest.mark.parametrize(
    ("percents", "spread", "verdict"),
    [((9, 11), 0.002, "confirmed"), ((1, 2), 0.002, "refuted"), ((9, 11), 0.05, "open")],
)
def test_an_average_is_held_against_what_is_stated(tmp_path, percents, spread, verdict):
    found = improvement(tmp_path, {"e": percents}, spread=spread)
    assert found[""].verdict == found["a − b"].verdict == verdict
    assert found["a − b"].low < found["a − b"].value < found["a − b"].high


def test_the_average_is_over_experiments_and_epsilons_of_means_over_trials(tmp_path):
    found = improvement(tmp_path, {"e": (5, 7), "f": (15,)}, ("e", "f"), spread=1e-9)
    assert found["a − b"].value == pytest.approx((5 + 7 + 15) / 3, abs=1e-4)
    lacking = improvement(tmp_path / "l", {"e": (10,)}, ("e", "f"))
    assert lacking[""].verdict == "open"
    assert "needs f" in lacking[""].statistic
    assert improvement(tmp_path / "n", {"e": (10,)}, ("f",))[""].verdict == "not testable here"


def test_the_bootstrap_covers_the_true_average():
    """Of 30 planted runs with a true improvement of 10 %, the 95 % interval must contain it in most."""
    generator, covered = np.random.default_rng(5), 0
    for run in range(30):
        errors = np.array([0.36, 0.4]) + 0.02 * generator.standard_normal((20, 4, 2))
        _, low, high = improvement_of._interval([errors], str(run))
        covered += low <= 10 <= high
    assert 24 <= covered <= 30


def price(path, small, large, spread=0.005):
    plain = noisy(0.5, spread=0.03)
    planted = {("a", None): plain, ("a", 1.0): plain + noisy(small, spread=spread, seed=2)}
    planted["a", 10.0] = plain + noisy(large, spread=spread, seed=3)
    return by_part(price_of_privacy(claim(PRICE, experiments=["e"]), folder(path, trials("e", planted))))


@pytest.mark.parametrize(
    ("small", "large", "spread", "verdict"),
    [
        (0.5, 0.0, 0.005, "confirmed"),
        (0.5, 0.1, 0.005, "open"),
        (-0.2, 0.0, 0.005, "refuted"),
        (0.5, 0.0, 0.1, "open"),
    ],
)
def test_a_price_is_gone_where_nothing_but_the_tolerance_is_left(tmp_path, small, large, spread, verdict):
    found = price(tmp_path, small, large, spread)
    assert found[""].verdict == verdict
    detail = found["e M=2 R=5, a"]
    assert detail.low <= detail.value <= detail.high


def test_a_price_that_grows_at_one_of_many_settings_contradicts_only_if_holm_keeps_it(tmp_path):
    """One-sided p of the growth is 0.01: below 0.025 alone, above it over eight settings."""
    spread = noisy(0.0, 12, seed=2)
    growth = (spread - spread.mean()) / stats.sem(spread) * 0.01 + 0.01 * stats.t.isf(0.01, 11)
    plain = noisy(0.3, 12)
    fall, rise = ({("a", None): plain, ("a", 1.0): plain + 0.5, ("a", 10.0): plain}, {("a", None): plain})
    rise |= {("a", 1.0): plain, ("a", 10.0): plain + growth}
    for settings, verdict in ((1, "refuted"), (8, "open")):
        rows = trials("e", rise) + [row for M in range(3, 2 + settings) for row in trials("e", fall, M=M)]
        found = by_part(price_of_privacy(claim(PRICE, experiments=["e"]), folder(tmp_path / verdict, rows)))
        assert found["e M=2 R=5, a"].verdict == "refuted"
        assert found[""].verdict == verdict


def private(experiment="e", algorithm="a", claimed=1.0, upper=0.8, lower=0.7, reading=""):
    words = {"accountant": "pld", "adjacency": "replace-one", "sampling": "s", "noise_multiplier": 1.0}
    place = {"experiment": experiment, "algorithm": algorithm, "reading": reading, "M": 2, "R": 5, "epsilon": claimed}
    numbers = {"claimed_epsilon": claimed, "delivered_epsilon": upper, "delivered_lower": lower, "delta": 1e-6}
    return place | numbers | words | {"holds": upper <= claimed}


def delivered(path, rows, statistic=None, **files):
    statistic = statistic or {"name": "delivered_epsilon", "algorithms": ["a"]}
    return by_part(delivered_epsilon(claim(statistic, experiments=["e"]), folder(path, privacy=rows, **files)))


@pytest.mark.parametrize(
    ("upper", "lower", "verdict"), [(2.9, 2.8, "confirmed"), (3.2, 3.1, "refuted"), (3.2, 2.8, "open")]
)
def test_a_claimed_epsilon_is_refuted_only_from_below(tmp_path, upper, lower, verdict):
    found = delivered(tmp_path, [private(), private(claimed=3.0, upper=upper, lower=lower)])
    assert found[""].verdict == verdict
    # The number of a kept claim is its slack; else it is the lower end.
    assert found["e a"].value == pytest.approx(upper / 3 if verdict == "confirmed" else lower / 3)
    assert found[""].value == found["e a"].value
    assert found["e a"].high == pytest.approx(max(0.8, upper / 3))
    word = {"refuted": "violated", "open": "not certified", "confirmed": "kept"}[verdict]
    assert f"; {word}" in found["e a"].statistic
    assert f"[{lower / 3:.3g}, {upper / 3:.3g}] at ε = 3" in found["e a"].statistic


def test_a_claim_may_be_exceeded_by_its_tolerance_and_no_more(tmp_path):
    statistic = {"name": "delivered_epsilon", "algorithms": ["a"], "tolerance": 0.1}
    for upper, verdict in ((1.09, "confirmed"), (1.11, "open")):
        assert delivered(tmp_path / verdict, [private(upper=upper, lower=0.5)], statistic)[""].verdict == verdict


def test_without_a_lower_end_nothing_is_refuted(tmp_path):
    rows = [private(upper=5.0, lower=np.nan), private(upper=np.inf, lower=np.nan, reading="clip_rule=max_norm")]
    found = delivered(tmp_path, rows)
    assert found[""].verdict == "open"
    assert "over 1 rows: [0, 5] at ε = 1; not certified at ε = 1" in found["e a"].statistic
    assert (found["[clip_rule=max_norm]"].value, found["[clip_rule=max_norm]"].high) == (0, np.inf)
    assert delivered(tmp_path / "none", [])[""].verdict == "not testable here"


def test_formulas_decide_where_the_experiments_have_another_noise(tmp_path):
    formulas = {"formula": ["f"], "claimed_epsilon": [1.0], "delivered_epsilon": [0.1], "holds": [True]}
    statistic = {"name": "delivered_epsilon", "algorithms": ["a"], "formulas": ["f"], "reading": "noise=other"}
    found = delivered(tmp_path, [private(upper=5.0, lower=4.0)], statistic, formulas=formulas)
    assert found[""].verdict == found["f"].verdict == "confirmed"
    assert found[""].value == pytest.approx(0.1)
    assert found["[noise=other]"].verdict == found["e a, [noise=other]"].verdict == "refuted"


def test_a_formula_beside_has_a_row_of_its_own_and_does_not_decide(tmp_path):
    formulas = {"formula": ["f", "g"], "claimed_epsilon": [1.0, 1.0], "delivered_epsilon": [0.1, 1.7], "holds": [1, 0]}
    statistic = {"name": "delivered_epsilon", "formulas": ["f"], "beside": ["g"]}
    found = delivered(tmp_path, [private()], statistic, formulas=formulas)
    verdicts = {"": "confirmed", "[g]": "open", "f": "confirmed"}
    assert {part: finding.verdict for part, finding in found.items()} == verdicts


def test_an_algorithm_is_no_improvement_over_itself(tmp_path):
    """At ε = 1 the target is minibatch SGD by another name, with other luck: only ε = 2 is in the average."""
    planted = {(name, 1.0): noisy(0.4, seed=place) for place, name in enumerate(("minibatch_sgd", "fedprox_spider"))}
    planted |= {("minibatch_sgd", 2.0): noisy(0.4, seed=3), ("fedprox_spider", 2.0): noisy(0.2, seed=4)}
    rows = [row | {"phase_length": 1} for row in trials("e", planted)]
    plans = [private(algorithm=name) for name in ("minibatch_sgd", "fedprox_spider")]
    statistic = IMPROVEMENT | {"target": "fedprox_spider", "stated": {"minibatch_sgd": 50.0}}
    known = claim(statistic, experiments=["e"])
    pair = "fedprox_spider − minibatch_sgd"
    found = by_part(relative_improvement(known, folder(tmp_path / "same", rows, plans)))[pair]
    assert (found.value, found.verdict) == (pytest.approx(50, abs=2), "open")
    assert "over 1 (setting, ε) of e; at 1 more they are the same algorithm" in found.statistic
    # Another experiment, in which they are the same algorithm at every ε, is not missing.
    alone = [row | {"experiment": "f"} for row in rows if row["epsilon"] == 1]
    two = folder(tmp_path / "two", rows + alone, plans + [plan | {"experiment": "f"} for plan in plans])
    whole, *_ = relative_improvement(claim(statistic, experiments=["e", "f"]), two)
    assert "needs f" not in whole.statistic
    plans[1]["noise_multiplier"] = 1.4
    other = by_part(relative_improvement(known, folder(tmp_path / "other", rows, plans)))[pair]
    assert other.value == pytest.approx(25, abs=2)
