"""Paired claims: each verdict from a data set that was planted for it, Holm's method, readings and what is missing."""

import numpy as np
import pytest
from planted import by_part, claim, folder, noisy, trials
from scipy import stats

from silodp.verdicts.claims.deciding import _same_rows, put_protocol_first
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
    known = claim(statistic or paired(), experiments=list(experiments), **other)
    return by_part(paired_difference(known, folder(tmp_path, reported)))


AHEAD = trials("e", errors((-0.1, -0.1, -0.1)))
# Behind under another reading.
BOTH = AHEAD + trials("e", errors((0.1, 0.1, 0.1)), reading="grid=other")


@pytest.mark.parametrize(
    ("differences", "quantifier", "verdict"),
    [
        ((-0.1, -0.1, -0.1), "each", "confirmed"),
        ((-0.1, -0.1, 0.1), "each", "refuted"),
        ((-0.1, -0.1, 0.0), "each", "open"),
        ((-0.1, -0.1, 0.1), "most", "confirmed"),
        ((-0.1, 0.1, 0.1), "most", "refuted"),
        ((-0.1, 0.0, 0.1), "most", "open"),
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
    assert "support at ε 1, 3; contradict at ε 6; " in detail.statistic
    assert found[""].value == pytest.approx(2 / 3)
    # Direction and size lead, counts follow, raw and corrected.
    size = f"a − b on e {difference.mean():+.4f} [{low:+.4f}, {high:+.4f}], ahead; of 3 comparisons 2 ahead, 1 behind: "
    kept = "2 support, 1 contradict (Holm keeps 1 by the t test; by exact sign flips 1, Holm keeps 1)"
    assert found[""].statistic == size + kept
    assert found[""].tally == "2 ahead, 1 behind, 0 neither (Holm: 2 ahead, 1 behind)"
    # A comparison whose mean is 0 is neither, and none of Holm's.
    planted["a", EPSILONS[0]] = planted["b", EPSILONS[0]] + 0.01 * np.tile([1.0, -1.0], 6)
    planted["a", EPSILONS[1]] = planted["b", EPSILONS[1]] - 0.01 * np.tile([1.0, 0.0, 2.0], 4)
    assert decided(tmp_path / "tally", trials("e", planted))[""].tally.startswith(
        "1 ahead, 1 behind, 1 neither (Holm: 1"
    )


def test_a_data_set_has_one_test_over_the_settings_and_epsilons_of_its_trials(tmp_path):
    """Settings of one data set in two experiments, the second with fewer trials; ε weigh alike whatever the setting."""
    settings = [("mnist_mlp", errors((0.1, 0.2, 0.3)), 2), ("mnist_logistic", errors((0.1, 0.1, 0.1), 9, 8), 7)]
    rows = [row for name, planted, M in settings for row in trials(name, planted, M=M)]
    found = decided(tmp_path, rows, experiments=("mnist_mlp", "mnist_logistic"))["mnist, a − b"]
    each = [planted["a", e][:8] - planted["b", e][:8] for _, planted, _ in settings for e in EPSILONS]
    wanted = stats.ttest_1samp(np.mean(each, axis=0), 0)
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(each), *wanted.confidence_interval()))
    assert f"{wanted.pvalue / 2:.2g} by t, {2.0**-8:.2g} by exact sign flips" in found.statistic


def test_one_test_of_a_data_set_refutes_where_no_comparison_of_many_does(tmp_path):
    """Each ε is .3 standard deviations behind with independent noise: only together they are told from 0."""
    generator = np.random.default_rng(4)
    planted = {}
    for epsilon in range(1, 41):
        planted["b", epsilon] = np.full(10, 0.3)
        planted["a", epsilon] = 0.303 + 0.01 * generator.standard_normal(10)
    found = decided(tmp_path, trials("e", planted))
    assert found[""].verdict == found["e, a − b"].verdict == "refuted"
    assert "Holm keeps 0 by the t test; by exact sign flips" in found[""].statistic
    # Most ε is another claim, which a mean does not decide.
    assert decided(tmp_path / "most", trials("e", planted), paired("most"))[""].verdict == "open"


ALIKE = {"first": "spider", "second": "minibatch_sgd"}


def one_round(tmp_path, noise=1.0, phase=1, own=True, of_rest=-0.1, true=1.0):
    """SPIDER against minibatch SGD at two ε; at ε = 1 SPIDER is FedProx-SPIDER (`own`), whose plan is planted."""
    planted = {("minibatch_sgd", 1.0): noisy(0.3), ("fedprox_spider", 1.0): noisy(0.6, seed=3)}
    planted["spider", 1.0] = planted["fedprox_spider", 1.0] + (0 if own else 1e-9)
    planted["minibatch_sgd", 2.0] = noisy(0.3, seed=1)
    planted["spider", 2.0] = planted["minibatch_sgd", 2.0] + of_rest + noisy(0, spread=0.001, seed=2)
    rows = [row | {"phase_length": phase} for row in trials("e", planted)]
    plan = {"experiment": "e", "M": 2, "R": 5, "epsilon": 1.0, "sampling": "5 of 9", "delivered_epsilon": 0.9}
    plans = [plan | {"algorithm": "minibatch_sgd", "noise_multiplier": 3.0}]
    plans += [plan | {"algorithm": "fedprox_spider", "noise_multiplier": 3.0 * noise, "delivered_epsilon": 0.9 * true}]
    statistic = {"name": "paired_difference", "pairs": [ALIKE]}
    return by_part(paired_difference(claim(statistic, experiments=["e"]), folder(tmp_path, rows, plans)))


@pytest.mark.parametrize("of_rest", [-0.1, 0.1])
def test_an_algorithm_against_itself_is_said_and_counts_for_nothing(tmp_path, of_rest):
    """SPIDER's error is twice as large at ε = 1, where it is minibatch SGD: the other ε alone decides, and confirms
    nothing about every ε."""
    found = one_round(tmp_path, of_rest=of_rest, noise=1.0008)
    part = found["e M=2 R=5, spider − minibatch_sgd"]
    assert found[""].verdict == part.verdict == ("refuted" if of_rest > 0 else "open")
    assert "same algorithm at ε 1" in part.statistic
    assert "of 2 comparisons" in found[""].statistic
    assert "1 same algorithm" in found[""].statistic
    assert found["e, spider − minibatch_sgd"].value == pytest.approx(of_rest, abs=0.01)


@pytest.mark.parametrize("other", [{"noise": 1.002}, {"phase": 2}, {"own": False}, {"true": 1.4}])
def test_other_noise_longer_phases_or_more_releases_are_another_algorithm(tmp_path, other):
    found = one_round(tmp_path, **other)
    assert found[""].verdict == "refuted"
    assert "same algorithm" not in found[""].statistic


def test_nothing_but_an_algorithm_against_itself_is_not_testable(tmp_path):
    run = folder(tmp_path, [])
    one_round(tmp_path)
    kept = claim({"name": "paired_difference", "pairs": [ALIKE], "most_epsilon": 1.5}, experiments=["e"])
    assert paired_difference(kept, run)[0].verdict == "not testable here"


@pytest.mark.parametrize(("largest", "verdict"), [(0.0, "confirmed"), (0.015, "refuted")])
def test_within_the_tolerance_is_not_worse_and_surely_worse_is(tmp_path, largest, verdict):
    found = decided(tmp_path, trials("e", errors((-0.01, 0.0, largest))), paired(tolerance=0.02))
    assert found[""].verdict == verdict


def test_one_weak_contradiction_among_many_does_not_refute(tmp_path):
    """40 comparisons, one of them 2.5 standard errors on the wrong side: what chance gives about once."""
    deviations = np.resize([1.0, -1.0], 12)
    error = stats.sem(deviations)
    rows = []
    for place in range(40):
        shift = 2.5 * error if place == 0 else -4 * error
        rows += trials("e", {("a", 1.0): 5 + deviations + shift, ("b", 1.0): np.full(12, 5.0)}, M=place + 1)
    found = decided(tmp_path / "many", rows)
    assert found[""].verdict == "open"
    assert "1 contradict (Holm keeps 0 by the t test; by exact sign flips 1, Holm keeps 0)" in found[""].statistic
    assert decided(tmp_path / "one", rows[:24])[""].verdict == "refuted"


def test_readings_and_surrogates_have_verdicts_of_their_own_and_do_not_decide(tmp_path):
    found = decided(tmp_path, BOTH + trials("small", errors((0.1, 0.1, 0.1))), surrogates=["small"])
    assert found[""].verdict == "confirmed"
    assert found["[grid=other]"].verdict == "refuted"
    assert found["e M=2 R=5, a − b, [grid=other]"].verdict == "refuted"
    assert found["surrogates"].verdict == "refuted"


def test_a_missing_experiment_is_named_and_keeps_a_claim_from_being_confirmed(tmp_path):
    found = decided(tmp_path, AHEAD, experiments=("e", "gone"))
    assert found[""].verdict == "open"
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
    assert found[""].verdict == "open"
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
    known = claim(paired(), experiments=["e"], protocol=protocol, variants=variants)
    run = folder(tmp_path, BOTH)
    found = put_protocol_first(known, paired_difference(known, run), _same_rows(known, run))
    assert (found[0].row_name, found[0].verdict) == ("", head)
    if head == "depends on the variant":
        assert "confirmed under default" in found[0].statistic
        assert "refuted under grid=other" in found[0].statistic
        assert {finding.row_name: finding.verdict for finding in found}["[default]"] == "confirmed"


def test_where_an_experiment_lacks_the_papers_protocol_its_default_stands_in_the_headline(tmp_path):
    """The protocol is behind on `e`; `f`, ahead, was run under the default alone. Each comparison counts once."""
    known = claim(paired(), experiments=["e", "f"], protocol="grid=other")
    run = folder(tmp_path, BOTH + trials("f", errors((-0.1, -0.1, -0.1))))
    head, *others = put_protocol_first(known, paired_difference(known, run), _same_rows(known, run))
    assert (head.row_name, head.verdict, head.value) == ("", "refuted", 0.5)
    assert "of 6 comparisons 3 ahead, 3 behind" in head.statistic
    parts = [row.row_name for row in others]
    assert len(set(parts)) == len(parts) == 8


def test_most_of_many_weak_advantages_are_corrected_for(tmp_path):
    """Four of seven ε at 2.6 standard errors: each alone is below 0, but one of four may be so by chance."""
    deviations = np.resize([1.0, -1.0], 12)
    shifts = [-2.6 * stats.sem(deviations)] * 4 + [0.0] * 3
    planted = {("b", float(e)): np.full(12, 5.0) for e in range(7)}
    planted |= {("a", float(e)): 5 + deviations + shift for e, shift in enumerate(shifts)}
    found = decided(tmp_path, trials("e", planted), paired("most"))[""]
    assert found.verdict == "open"
    assert "of 7 comparisons 4 ahead, 3 no difference found: 4 support, 3 open" in found.statistic
    clear = planted | {("a", float(e)): 5 + deviations - 5 * stats.sem(deviations) for e in range(4)}
    assert decided(tmp_path / "clear", trials("e", clear), paired("most"))[""].verdict == "confirmed"
