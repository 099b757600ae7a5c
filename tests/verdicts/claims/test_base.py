"""A run file that thins an experiment confirms no claim about all of it; and Holm's method over many comparisons."""

import pytest
from planted import claim, folder

from silodp.config.loading import known_experiments
from silodp.verdicts.claims.base import data_set, holm
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.delivered import delivered_epsilon

# Of insurance_linear: M = 10 and 5, eight ε.
EPSILONS = (0.125, 0.25, 0.5, 1, 2, 3, 5, 10)


def kept(settings=(10, 5), epsilons=EPSILONS):
    """Rows of privacy.csv that keep what they claim."""
    names = {"experiment": "insurance_linear", "algorithm": "minibatch_sgd", "reading": "", "R": 35}
    ends = [{"epsilon": e, "claimed_epsilon": e, "delivered_epsilon": 0.9 * e} for e in epsilons]
    return [names | {"M": M} | end for M in settings for end in ends]


@pytest.mark.parametrize(
    ("rows", "verdict", "note"),
    [
        (kept(), "confirmed", ""),
        (kept(settings=(10,)), "open", "needs insurance_linear at (M, R) = (5, 35)"),
        (kept(epsilons=EPSILONS[2:]), "open", "needs insurance_linear at ε = 0.125, 0.25"),
        ([row | {"experiment": "wbcd_mlp"} for row in kept()], "not testable", "needs insurance_linear"),
    ],
)
def test_a_claim_confirmed_on_all_rows_is_open_on_some_of_them(tmp_path, rows, verdict, note):
    known = claim({"name": "delivered_epsilon", "algorithms": ["minibatch_sgd"]}, experiments=["insurance_linear"])
    (found,) = delivered_epsilon(known, folder(tmp_path, privacy=rows))
    assert (found.verdict, found.note) == (verdict, note)


def test_a_refutation_on_some_settings_stands(tmp_path):
    known = claim({"name": "delivered_epsilon", "algorithms": ["minibatch_sgd"]}, experiments=["insurance_linear"])
    rows = [
        row | {"delivered_lower": 2 * row["epsilon"], "delivered_epsilon": 3 * row["epsilon"]} for row in kept((10,))
    ]
    assert delivered_epsilon(known, folder(tmp_path, privacy=rows))[0].verdict == "refuted"


def test_holm_steps_down_and_stops():
    assert holm([0.001, 0.02, 0.04], 0.05) == [True, True, True]
    assert holm([0.001, 0.03, 0.04], 0.05) == [True, False, False]
    assert holm([0.02, 0.001, 0.5], 0.05) == [True, True, False]
    assert holm([], 0.05) == []
    assert holm([0.025, 0.05], 0.05) == [True, True]


def test_the_claims_experiments_are_named_after_their_data_sets():
    for name in {name for known in load_claims() for name in known.experiments}:
        assert data_set(name) == known_experiments()[name]["dataset"]
