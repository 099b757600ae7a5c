"""Paired claims: each verdict from a data set that was planted for it, Holm's method, readings and what is missing."""

import numpy as np
import pytest
from planted import by_part, claim, folder, noisy, trials
from scipy import stats

from silodp.verdicts.claims.deciding import _same_rows, headed
from silodp.verdicts.claims.paired import paired_difference

EPSILONS = (1.0, 3.0, 6.0)


def errors(differences, seed=1, trials_=12):
    """`a` and `b` at every ε, a − b of the given mean with little spread; one list entry an ε."""
    found = {}
    for place, (epsilon, difference) in enumerate(zip(EPSILONS, differences, strict=True)):
        base = noisy(0.3, trials_, 0.05, seed + place)
        found["b", epsilon] = base
        found["a", epsilon] = base + difference + noisy(0, trials_, 0.005, seed + 50 + place)
    return found


def paired(quantifier="each", tolerance=0.0, **options):
    pairs = [{"first": "a", "second": "b", "tolerance": tolerance}]
    return {"name": "paired_difference", "pairs": pairs, "quantifier": quantifier} | options


def decided(tmp_path, reported, statistic=None, experiments=("e",), **other):
    return by_part(
        paired_difference(
            claim(statistic or paired(), experiments=list(experiments), **other), folder(tmp_path, reported)
        )
    )


@pytest.mark.parametrize(
    ("differences", "quantifier", "verdict"),
    [
        ((-0.1, -0.1, -0.1), "each", "confirmed"),
        ((-0.1, -0.1, 0.1), "each", "refuted"),
        ((-0.1, -0.1, 0.0), "each", "inconclusive"),
        ((-0.1, -0.1, 0.1), "most", "confirmed"),
        ((-0.1, 0.1, 0.1), "most", "refuted"),
        ((-0.1, 0.0, 0.1), "most", "inconclusive"),
    ],
)
def test_each_verdict_from_a_planted_data_set(tmp_path, differences, quantifier, verdict):
    # The deviations of an ε at which nothing is planted must not lean to either side.
    planted = errors(differences)
    for epsilon, difference in zip(EPSILONS, differences, strict=True):
        if difference == 0:
            planted["a", epsilon] = planted["b", epsilon] + 0.01 * np.resize([1, -1], 12)
    found = decided(tmp_path, trials("e", planted), paired(quantifier))
    assert found[""].verdict == verdict
    assert found["e M=2 R=5, a − b"].verdict == verdict


def test_the_numbers_are_the_mean_over_epsilons_with_its_interval_and_the_share_that_supports(tmp_path):
    planted = errors((-0.1, -0.2, 0.1))
    found = decided(tmp_path, trials("e", planted))
    difference = np.mean([planted["a", e] - planted["b", e] for e in EPSILONS], axis=0)
    low, high = stats.t.interval(0.95, 11, difference.mean(), stats.sem(difference))
    detail = found["e M=2 R=5, a − b"]
    assert (detail.value, detail.low, detail.high) == pytest.approx((difference.mean(), low, high))
    assert "support at ε 1, 3; contradict at ε 6; 1 kept by Holm" in detail.statistic
    assert found[""].value == pytest.approx(2 / 3)
    assert "2 support, 1 contradict (1 kept by Holm over all 3)" in found[""].statistic
    # Direction and size beside the count.
    assert f"a − b {difference.mean():+.4f} [{low:+.4f}, {high:+.4f}] in the mean" in found[""].statistic
    assert "clearly smaller at 2 and clearly larger at 1 of 3" in found[""].statistic


def test_within_the_tolerance_is_not_worse_and_surely_worse_is(tmp_path):
    assert decided(tmp_path / "a", trials("e", errors((-0.01, 0.0, 0.0))), paired(tolerance=0.02))[""].verdict == (
        "confirmed"
    )
    planted = trials("e", errors((-0.01, 0.0, 0.015)))
    assert decided(tmp_path / "b", planted, paired(tolerance=0.02))[""].verdict == "refuted"


def test_one_weak_contradiction_among_many_does_not_refute(tmp_path):
    """40 comparisons, one of them 2.5 standard errors on the wrong side: what chance gives about once."""
    deviations = np.resize([1.0, -1.0], 12)
    error = stats.sem(deviations)
    rows = []
    for place in range(40):
        shift = 2.5 * error if place == 0 else -4 * error
        rows += trials("e", {("a", 1.0): 5 + deviations + shift, ("b", 1.0): np.full(12, 5.0)}, M=place + 1)
    found = decided(tmp_path / "many", rows)
    assert found[""].verdict == "inconclusive"
    assert "1 contradict (0 kept by Holm over all 40)" in found[""].statistic
    assert decided(tmp_path / "one", rows[:24])[""].verdict == "refuted"


def test_readings_and_surrogates_have_verdicts_of_their_own_and_do_not_decide(tmp_path):
    rows = trials("e", errors((-0.1, -0.1, -0.1))) + trials("e", errors((0.1, 0.1, 0.1)), reading="grid=other")
    rows += trials("small", errors((0.1, 0.1, 0.1)))
    found = decided(tmp_path, rows, surrogates=["small"])
    assert found[""].verdict == "confirmed"
    assert found["[grid=other]"].verdict == "refuted"
    assert found["e M=2 R=5, a − b, [grid=other]"].verdict == "refuted"
    assert found["surrogates"].verdict == "refuted"


def test_a_missing_experiment_is_named_and_keeps_a_claim_from_being_confirmed(tmp_path):
    found = decided(tmp_path, trials("e", errors((-0.1, -0.1, -0.1))), experiments=("e", "gone"))
    assert found[""].verdict == "inconclusive"
    assert "needs gone" in found[""].statistic
    assert found["gone"].verdict == "not testable here"
    refuted = decided(tmp_path / "no", trials("e", errors((0.1, -0.1, -0.1))), experiments=("e", "gone"))
    assert refuted[""].verdict == "refuted"
    nothing = decided(tmp_path / "none", trials("other", errors((0, 0, 0))))
    assert (nothing[""].verdict, list(nothing)) == ("not testable here", [""])
    assert "needs e" in nothing[""].statistic


def test_only_the_epsilons_of_the_claim_count(tmp_path):
    rows = trials("e", errors((0.1, -0.1, 0.1)))
    assert decided(tmp_path, rows, paired(least_epsilon=2, most_epsilon=5))[""].verdict == "confirmed"


def test_a_form_without_noise_stands_against_every_epsilon(tmp_path):
    planted = errors((-0.1, -0.1, -0.1))
    rows = trials("e", {key: values for key, values in planted.items() if key[0] == "a"} | {("b", None): noisy(0.6)})
    statistic = paired() | {"pairs": [{"first": "a", "second": "b:non_private"}]}
    assert decided(tmp_path, rows, statistic)[""].verdict == "confirmed"


def test_a_diverged_trial_leaves_the_comparison_open(tmp_path):
    planted = errors((-0.1, -0.1, -0.1))
    planted["b", 3.0][4] = np.inf
    found = decided(tmp_path, trials("e", planted))
    assert found[""].verdict == "inconclusive"
    assert np.isnan(found["e M=2 R=5, a − b"].value)


@pytest.mark.parametrize(
    ("protocol", "variants", "head"),
    [
        ("", [], "confirmed"),
        ("grid=other", [], "refuted"),
        ("grid=other", [""], "depends on the variant"),
        ("", ["grid=other"], "depends on the variant"),
        ("grid=gone", [""], "not testable here"),
    ],
)
def test_the_headline_is_the_papers_own_protocol_and_names_fair_variants(tmp_path, protocol, variants, head):
    rows = trials("e", errors((-0.1, -0.1, -0.1))) + trials("e", errors((0.1, 0.1, 0.1)), reading="grid=other")
    known = claim(paired(), experiments=["e"], protocol=protocol, variants=variants)
    run = folder(tmp_path, rows)
    found = headed(known, paired_difference(known, run), _same_rows(known, run))
    assert (found[0].part, found[0].verdict) == ("", head)
    if head == "depends on the variant":
        assert "confirmed under default" in found[0].statistic
        assert "refuted under grid=other" in found[0].statistic
        assert {finding.part: finding.verdict for finding in found}["[default]"] == "confirmed"


def test_where_an_experiment_lacks_the_papers_protocol_its_default_stands_in_the_headline(tmp_path):
    """The protocol is behind on `e`; `f`, ahead, was run under the default alone. Each comparison counts once."""
    rows = trials("e", errors((-0.1, -0.1, -0.1))) + trials("e", errors((0.1, 0.1, 0.1)), reading="grid=other")
    rows += trials("f", errors((-0.1, -0.1, -0.1)))
    known = claim(paired(), experiments=["e", "f"], protocol="grid=other")
    run = folder(tmp_path, rows)
    head, *others = headed(known, paired_difference(known, run), _same_rows(known, run))
    assert (head.part, head.verdict, head.value) == ("", "refuted", 0.5)
    assert head.statistic.startswith("share of 6 paired comparisons")
    parts = [row.part for row in others]
    assert len(set(parts)) == len(parts) == 5
