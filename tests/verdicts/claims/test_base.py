"""A run file that thins an experiment confirms no claim about all of it; and Holm's method over many comparisons."""

import pytest
from planted import by_part, claim, folder, noisy, trials

from silodp.config.loading import known_experiments
from silodp.verdicts.claims.base import data_set, holm
from silodp.verdicts.claims.delivered import delivered_epsilon
from silodp.verdicts.claims.improvement import price_of_privacy, relative_improvement
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.paired import paired_difference

# Of insurance_linear: M = 10 and 5, eight ε.
EPSILONS = (0.125, 0.25, 0.5, 1, 2, 3, 5, 10)
SETTINGS = ((10, 35), (5, 35))


def errors(epsilons=EPSILONS):
    """MB-SGD ahead of local SGD by .1 and dearer than without noise by 0.5/ε − 0.05."""
    found = {("minibatch_sgd", None): noisy(0.2, 6), ("local_sgd", None): noisy(0.3, 6)}
    for epsilon in epsilons:
        found["minibatch_sgd", epsilon] = noisy(0.15 + 0.5 / epsilon, 6)
        found["local_sgd", epsilon] = noisy(0.25 + 0.5 / epsilon, 6)
    return found


def planted(settings=SETTINGS, epsilons=EPSILONS):
    return [row for M, R in settings for row in trials("insurance_linear", errors(epsilons), M=M, R=R)]


PAIR = {"name": "paired_difference", "pairs": [{"first": "minibatch_sgd", "second": "local_sgd"}]}
PRICE = {"name": "price_of_privacy", "algorithms": ["minibatch_sgd"], "tolerance": 0.1, "small": 0.125, "large": 10}
AVERAGE = sum(100 * (1 - (0.15 + 0.5 / e) / (0.25 + 0.5 / e)) for e in EPSILONS) / len(EPSILONS)
MEAN = {"name": "relative_improvement", "target": "minibatch_sgd", "stated": {"local_sgd": AVERAGE}, "tolerance": 20}
STATISTICS = [(paired_difference, PAIR), (price_of_privacy, PRICE), (relative_improvement, MEAN)]


@pytest.mark.parametrize(("decide", "statistic"), STATISTICS)
def test_a_claim_confirmed_on_all_settings_is_open_on_some_of_them(tmp_path, decide, statistic):
    known = claim(statistic, experiments=["insurance_linear"])
    assert decide(known, folder(tmp_path / "all", planted()))[0].verdict == "confirmed"
    whole = decide(known, folder(tmp_path / "one", planted(SETTINGS[:1])))[0]
    assert whole.verdict == "open"
    assert "needs insurance_linear at (M, R) = (5, 35)" in whole.statistic


@pytest.mark.parametrize(("decide", "statistic"), [STATISTICS[0], STATISTICS[2]])
def test_a_claim_confirmed_on_all_epsilons_is_open_on_some_of_them(tmp_path, decide, statistic):
    known = claim(statistic, experiments=["insurance_linear"])
    whole = decide(known, folder(tmp_path, planted(epsilons=EPSILONS[2:])))[0]
    assert whole.verdict == "open"
    assert "needs insurance_linear at ε = 0.125, 0.25" in whole.statistic


def test_a_refutation_on_some_settings_stands(tmp_path):
    statistic = PAIR | {"pairs": [{"first": "local_sgd", "second": "minibatch_sgd"}]}
    known = claim(statistic, experiments=["insurance_linear"])
    assert paired_difference(known, folder(tmp_path, planted(SETTINGS[:1])))[0].verdict == "refuted"


def test_epsilons_that_a_claim_is_not_about_may_be_left_out(tmp_path):
    known = claim(PAIR | {"most_epsilon": 1.0}, experiments=["insurance_linear"])
    found = by_part(paired_difference(known, folder(tmp_path, planted(epsilons=EPSILONS[:4]))))
    assert found[""].verdict == "confirmed"
    assert "needs" not in found[""].statistic


def test_noise_that_keeps_its_claim_in_one_setting_is_not_confirmed_for_all(tmp_path):
    names = {"experiment": "insurance_linear", "algorithm": "minibatch_sgd", "reading": "", "M": 10, "R": 35}
    rows = [names | {"epsilon": e, "claimed_epsilon": e, "delivered_epsilon": 0.9 * e} for e in EPSILONS]
    statistic = {"name": "delivered_epsilon", "algorithms": ["minibatch_sgd"]}
    known = claim(statistic, experiments=["insurance_linear"])
    other = [row | {"M": 5} for row in rows]
    assert delivered_epsilon(known, folder(tmp_path / "a", planted(), [*rows, *other]))[0].verdict == "confirmed"
    assert delivered_epsilon(known, folder(tmp_path / "b", planted(SETTINGS[:1]), rows))[0].verdict == "open"


def test_holm_steps_down_and_stops():
    assert holm([0.001, 0.02, 0.04], 0.05) == [True, True, True]
    assert holm([0.001, 0.03, 0.04], 0.05) == [True, False, False]
    assert holm([0.02, 0.001, 0.5], 0.05) == [True, True, False]
    assert holm([], 0.05) == []


def test_the_claims_experiments_are_named_after_their_data_sets():
    for name in {name for known in load_claims() for name in [*known.experiments, *known.surrogates]}:
        assert data_set(name) == known_experiments()[name]["dataset"]
