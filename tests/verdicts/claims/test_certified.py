"""Claims decided again at exactly the claimed ε: one rule under calibrated noise, beside the claim's own verdict."""

import pytest
from paired import claims, run

from silodp.config.errors import ConfigError
from silodp.verdicts.claims import decide
from silodp.verdicts.claims.certified import turns
from silodp.verdicts.claims.loading import load_claims

AT_ONE = (
    "{name: paired_difference, least_epsilon: 1, most_epsilon: 1, pairs: [{first: minibatch_sgd, second: local_sgd}]}"
)
BOTH = {"": (0.3, 0.2), "noise=calibrated": (0.2, 0.3)}
WHOLE = {"mnist_mlp_certified": ((25, 25), (12, 50), (12, 25), (25, 50))}


def certified(tmp_path, experiments, statistic=AT_ONE):
    """The claim at ε = 1, decided again at exactly the claimed ε in `experiments`."""
    return claims(tmp_path, f"certified: {{experiments: {experiments}}}", statistic)


def test_calibrated_noise_turns_a_verdict_and_leaves_the_headline_alone(tmp_path):
    known = certified(tmp_path, "{wbcd_mlp: [wbcd_certified], mnist_mlp: [mnist_mlp_certified]}")
    paper = {"": (0.3, 0.2)}
    tables = {"wbcd_mlp": paper, "mnist_mlp": paper, "wbcd_certified": BOTH, "mnist_mlp_certified": BOTH}
    folder = run(tmp_path, tables, WHOLE)
    found = decide(known, folder)
    own = found[~found["claim"].str.contains(": ")]
    assert own["verdict"].tolist() == ["refuted"]
    decided = dict(zip(found["claim"], found["verdict"], strict=True))
    assert decided["X1: [at exactly the claimed ε: noise=calibrated]"] == "confirmed"
    assert decided["X1: [the same rows with the paper's noise: default]"] == "refuted"
    part = "X1: wbcd_certified M=2 R=25, minibatch_sgd − local_sgd, [at exactly the claimed ε: noise=calibrated]"
    assert decided[part] == "confirmed"
    (one,) = turns(found)
    assert (one.claim, one.reading, one.headline, one.paper, one.at_claim, one.turns) == (
        "X1", "noise=calibrated", "refuted", "refuted", "confirmed", True,
    )  # fmt: skip
    assert one.why == ("0% → 100% of the parts support; minibatch_sgd − local_sgd +0.0985 → -0.1015 in the mean")


def test_without_one_of_the_papers_experiments_nothing_is_confirmed(tmp_path):
    known = certified(tmp_path, "{wbcd_mlp: [wbcd_certified], mnist_mlp: []}")
    found = decide(known, run(tmp_path, {"wbcd_certified": BOTH}))
    row = found.set_index("claim").loc["X1: [at exactly the claimed ε: noise=calibrated]"]
    assert row["verdict"] == "inconclusive"
    assert row["statistic"].endswith("; without mnist_mlp")
    assert found["verdict"].iloc[0] == "not testable here"


@pytest.mark.parametrize(
    ("settings", "most", "lacks"),
    [
        ({"mnist_mlp_certified": WHOLE["mnist_mlp_certified"][:3]}, 1, "; without mnist_mlp at (M, R) = (25, 50)"),
        (WHOLE, 1.5, "; without wbcd_mlp at ε = 1.5, mnist_mlp at ε = 1.5"),
    ],
)
def test_without_one_of_its_settings_or_privacy_levels_nothing_is_confirmed(tmp_path, settings, most, lacks):
    experiments = "{wbcd_mlp: [wbcd_certified], mnist_mlp: [mnist_mlp_certified]}"
    known = certified(tmp_path, experiments, AT_ONE.replace("most_epsilon: 1", f"most_epsilon: {most}"))
    folder = run(tmp_path, {"wbcd_certified": BOTH, "mnist_mlp_certified": BOTH}, settings)
    row = decide(known, folder).set_index("claim").loc["X1: [at exactly the claimed ε: noise=calibrated]"]
    assert row["verdict"] == "inconclusive"
    assert row["statistic"].endswith(lacks)


def test_a_run_without_them_has_no_such_rows(tmp_path):
    known = certified(tmp_path, "{wbcd_mlp: [wbcd_certified], mnist_mlp: []}")
    found = decide(known, run(tmp_path, {"wbcd_mlp": {"": (0.3, 0.2)}}))
    assert not found["claim"].str.contains("exactly").any()
    assert turns(found) == []


@pytest.mark.parametrize(
    ("experiments", "said"),
    [("{digits_mlp: [wbcd_certified]}", "must be one of wbcd_mlp, mnist_mlp"), ("{wbcd_mlp: [x]}", "must be one of ")],
)
def test_names_are_checked(tmp_path, experiments, said):
    with pytest.raises(ConfigError, match=said):
        certified(tmp_path, experiments)


def test_the_papers_claims_about_experiments_are_decided_again():
    found = {claim.id: claim.certified for claim in load_claims() if claim.certified}
    assert list(found) == ["C1", "C2", "C3", "N1", "N2", "N3", "N4"]
    for claim in load_claims():
        if claim.certified:
            assert set(claim.certified.experiments) <= set(claim.experiments)
            assert next(iter(claim.certified.readings)) == "noise=calibrated"
