"""The verdict of a claim from decided cells, held against its rules written out by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from silodp.verdicts.claims.claim_file import Decided
from silodp.verdicts.claims.claim_files import load_claims, read_protocol
from silodp.verdicts.decided_claims import MEANS, VERDICTS, cells_of, decided_verdict, mean_rows, power_of

T, MARGIN = 200, 0.01
PAIR = {"first": "spider", "second": "minibatch_sgd"}
GENERATOR = np.random.default_rng(7)


def asked(verdict="at_every", never_worse=False, **keys) -> Decided:
    claim = {"name": "decided", "family": "printed", "pairs": [PAIR | {"never_worse": never_worse}], "verdict": verdict}
    return Decided(**claim | keys)


def cell(difference: float, se: float = 0.001, experiment: str = "wbcd_mlp", epsilon: float = 1.0, **keys) -> dict:
    """A row of decided.csv with draws of exactly that standard error."""
    draws = GENERATOR.normal(size=500)
    draws = difference + se * (draws - draws.mean()) / draws.std(ddof=1)
    half = stats.t.ppf(0.975, T - 1) * se
    row = {"family": "printed", "experiment": experiment, "M": 2, "R": 25, "epsilon": epsilon, "trials": T}
    row |= PAIR | {"margin": MARGIN, "same_mechanism": False, "useless": False}
    row |= {"difference": difference, "low": difference - half, "high": difference + half, "draws": draws}
    return row | keys


def words(cells: list[dict], **claim) -> tuple[str, str]:
    found = decided_verdict("X1", asked(**claim), cells)
    assert found["verdict"] == found[claim.get("verdict", "at_every")]
    return found["on_average"], found["at_every"]


@pytest.mark.parametrize(
    ("differences", "never_worse", "average", "every"),
    [
        ([-0.02, -0.03], False, "confirmed", "confirmed"),
        ([-0.002, -0.004], False, "confirmed", "confirmed"),
        ([-0.03, 0.001], False, "confirmed", "open"),  # ahead in the mean; one cell says nothing
        ([-0.03, 0.005], False, "confirmed", "not reproduced"),
        ([-0.001, 0.001], False, "open", "open"),
        ([0.004, 0.02], False, "not reproduced", "not reproduced"),
        ([0.004, 0.006], True, "confirmed", "confirmed"),  # behind, inside the margin
        ([0.004, 0.011], True, "confirmed", "open"),
        ([0.0, 0.02], True, "open", "not reproduced"),
        ([0.02, 0.03], True, "not reproduced", "not reproduced"),
    ],
)
def test_better_and_never_worse_have_their_words(differences, never_worse, average, every):
    cells = [cell(difference, epsilon=number + 1.0) for number, difference in enumerate(differences)]
    assert words(cells, never_worse=never_worse) == (average, every)
    assert words(cells, never_worse=never_worse, verdict="on_average") == (average, every)


def test_the_verdict_is_the_word_that_is_asked_for_with_its_own_number():
    cells = [cell(-0.03), cell(0.005, epsilon=3.0)]
    every, average = (decided_verdict("X1", asked(verdict), cells) for verdict in ("at_every", "on_average"))
    assert (every["verdict"], every["value"], every["high"]) == ("not reproduced", 0.005, cells[1]["high"])
    assert (average["verdict"], average["value"]) == ("confirmed", pytest.approx(-0.0125))
    assert average["low"] < average["value"] < average["high"] < 0
    assert set(every) == set(VERDICTS)


def test_a_mean_inside_the_margin_is_noted():
    assert "below the margin" in decided_verdict("X1", asked(), [cell(-0.002)])["note"]
    for difference in (-MARGIN, -0.02):
        assert decided_verdict("X1", asked(), [cell(difference)])["note"] == ""


def test_what_a_claim_is_not_about_says_nothing():
    cells = [cell(-0.02), cell(-0.03, epsilon=3.0)]
    claim = asked(least_epsilon=1, most_epsilon=3, data_sets=["wbcd"])
    told = decided_verdict("X1", claim, cells)
    others = [{"family": "calibrated"}, {"second": "local_sgd"}, {"epsilon": 0.75}, {"epsilon": 3.5}]
    far = [cell(0.9, **other) for other in [*others, {"experiment": "mnist_mlp"}]]
    assert decided_verdict("X1", claim, cells + far) == told
    for wrong in far:  # each would be heard if the rule did not leave it out
        heard = wrong | {key: cells[0][key] for key in ("family", "second", "epsilon", "experiment")}
        assert decided_verdict("X1", claim, [*cells, heard]) != told


@pytest.mark.parametrize("mark", ["useless", "same_mechanism"])
def test_marked_cells_are_in_no_mean_and_no_count(mark):
    cells = [cell(-0.02), cell(-0.03, epsilon=3.0)]
    apart = cell(0.9, epsilon=6.0, **{mark: True})
    told, found = (decided_verdict("X1", asked(), some) for some in (cells, [*cells, apart]))
    assert {**found, "note": ""} == told
    assert found["note"] == "counted apart as useless or of one mechanism: 1"
    (mean,) = mean_rows([*cells, apart])
    assert (mean["cells"], mean["apart"], mean["difference"]) == (2, 1, pytest.approx(-0.025))


def test_a_pair_has_its_own_flag_and_may_be_turned():
    """Minibatch SGD is to be better than local SGD, and never worse than SPIDER, whose cells are SPIDER − minibatch."""
    pairs = [{"first": "minibatch_sgd", "second": "local_sgd"}, {"first": "minibatch_sgd", "second": "spider"}]
    claim = asked(pairs=[pairs[0], pairs[1] | {"never_worse": True}])
    better = cell(-0.02, first="minibatch_sgd", second="local_sgd")
    inside, beyond = cell(-0.004), cell(-0.03, epsilon=3.0)
    assert decided_verdict("X1", claim, [better, inside])["verdict"] == "confirmed"
    found = decided_verdict("X1", claim, [better, inside, beyond])
    assert (found["verdict"], found["value"], found["low"]) == ("not reproduced", 0.03, -beyond["high"])
    assert "minibatch_sgd − spider" in found["statistic"]
    level = cell(-0.001, first="minibatch_sgd", second="local_sgd", se=0.01)
    assert decided_verdict("X1", claim, [level, inside])["verdict"] == "open"


def test_nothing_is_confirmed_without_all_data_sets_but_a_contradiction_stands():
    missing = cell(math.nan, experiment="cifar10_cnn", trials=0)
    assert words([cell(-0.02), missing]) == ("open", "open")
    assert words([cell(0.02), missing]) == ("not reproduced", "not reproduced")
    assert decided_verdict("X1", asked(), [cell(-0.02), missing])["note"] == "not run: cifar10"
    assert [(row["lacking"], row["trials"]) for row in mean_rows([missing])] == [(1, 0)]
    alone = decided_verdict("X1", asked(), [missing])
    assert (alone["verdict"], alone["note"], math.isnan(alone["value"])) == ("open", "not run: cifar10", True)


def test_the_mean_of_some_cells_of_a_data_set_speaks_neither_for_nor_against():
    some = [cell(0.02), cell(0.0, epsilon=3.0, trials=0)]
    assert words(some, never_worse=True)[0] == words(some)[0] == "open"
    assert words([*some, cell(0.02, experiment="mnist_mlp")])[0] == "not reproduced"


def test_a_mean_is_over_the_cells_of_one_data_set_and_holm_is_over_data_sets():
    """0.0021 at a standard error of .001 is kept alone (p .018), and by Holm's method not among three."""
    one = [cell(0.0021)]
    others = [cell(-0.02, experiment="mnist_mlp"), cell(-0.02, experiment="cifar10_cnn")]
    assert words(one)[0] == "not reproduced"
    assert words(one + others)[0] == "open"
    cells = [cell(0.01), cell(0.03, epsilon=3.0), *others]
    assert "wbcd, spider − minibatch_sgd +0.0200 [" in decided_verdict("X1", asked(), cells)["statistic"]
    means = mean_rows(cells_of(asked(), cells), "X1")
    assert [row["difference"] for row in means] == pytest.approx([0.02, -0.02, -0.02])
    assert list(means[0]) == MEANS


def test_every_cell_counts_those_that_support_and_names_the_worst_by_its_distance_in_standard_errors():
    cells = [cell(-0.02), cell(0.004, se=0.01, epsilon=3.0), cell(0.003, se=0.002, epsilon=6.0)]
    text = decided_verdict("X1", asked(), cells)["statistic"]
    assert "at every ε: 1 of 3 cells support; the worst is wbcd_mlp M=2 R=25 ε=6, spider − minibatch_sgd" in text


NOTHING = {"difference": math.nan, "low": math.nan, "high": math.nan, "draws": np.full(500, math.nan)}
SINGLE = {"trials": 1, "difference": 0.9, "low": math.nan, "high": math.nan, "draws": np.full(500, 0.9)}


@pytest.mark.parametrize("nothing", [NOTHING, SINGLE])
def test_a_diverged_or_a_single_trial_neither_confirms_nor_contradicts_nor_hides_a_contradiction(nothing):
    quiet = cell(-0.02, epsilon=3.0) | nothing
    assert words([quiet]) == ("open", "open")
    assert words([cell(-0.02), quiet])[1] == "open"
    assert words([cell(0.02), quiet])[1] == "not reproduced"
    # In another data set the mean contradicts, whatever this one does.
    assert words([cell(0.02, experiment="mnist_mlp"), quiet])[0] == "not reproduced"


def test_two_trials_can_contradict():
    assert words([cell(0.02, se=1e-5, trials=2)])[0] == "not reproduced"


def test_a_cell_without_spread_is_what_it_is():
    still = {"draws": np.zeros(500), "difference": 0.0, "low": 0.0, "high": 0.0}
    assert words([cell(0.0) | still]) == ("open", "open")
    assert words([cell(0.02), cell(0.0, epsilon=3.0) | still])[1] == "not reproduced"
    above = {"draws": np.full(500, 0.02), "difference": 0.02, "low": 0.02, "high": 0.02}
    assert words([cell(0.0) | above]) == ("not reproduced", "not reproduced")
    assert words([cell(0.0) | above], never_worse=True) == ("not reproduced", "not reproduced")


def test_an_open_claim_without_power_is_not_testable_and_a_contradicted_one_stays_contradicted():
    def verdict(difference, power, *others):
        return decided_verdict("X1", asked(), [cell(difference), *others], power)

    assert verdict(0.0, 0.79)["verdict"] == "not testable"
    assert verdict(0.0, 0.79)["at_every"] == "open"
    assert "power of confirming is 0.79" in verdict(0.0, 0.79)["note"]
    assert verdict(0.0, 0.8)["verdict"] == verdict(0.0, math.nan)["verdict"] == "open"
    assert verdict(0.02, 0.1)["verdict"] == "not reproduced"
    assert verdict(-0.02, 0.1)["verdict"] == "confirmed"
    missing = cell(math.nan, experiment="cifar10_cnn", trials=0)
    assert verdict(0.0, 0.1, missing)["verdict"] == "open"


def test_the_power_of_a_claim_is_that_of_its_weakest_part():
    table = pd.DataFrame({"claim": ["X1", "X1", "X2", math.nan], "all": [0.9, 0.7, 0.1, 0.0]})
    assert power_of("X1", table) == 0.7
    assert math.isnan(power_of("X3", table))
    assert math.isnan(power_of("X1", None))


def levels(share: float, se: float = 0.001) -> list[np.ndarray]:
    """Errors of both sides, value first: the first's are 1 − share of the second's."""
    draws = GENERATOR.normal(size=500)
    spread = np.concatenate([[0.0], se * (draws - draws.mean()) / draws.std(ddof=1)])
    return [np.full(501, 0.2) * (1 - share) + 0.2 * spread, np.full(501, 0.2)]


@pytest.mark.parametrize(
    ("share", "se", "word"),
    [
        (0.0172, 0.001, "confirmed"),
        (0.0360, 0.001, "open"),  # the interval reaches beyond 1.72 + 2
        (0.0450, 0.001, "not reproduced"),
        (-0.0100, 0.001, "not reproduced"),
        (0.0172, 0.050, "open"),
    ],
)
def test_a_stated_improvement_is_held_within_two_points(share, se, word):
    row = cell(0.0, levels=levels(share, se))
    found = decided_verdict("X1", asked("on_average", pairs=[PAIR | {"stated": 1.72}]), [row])
    assert (found["verdict"], found["on_average"], found["at_every"]) == (word, word, "")
    assert found["value"] == pytest.approx(100 * share)
    other = cell(0.0, levels=levels(0.0606), second="local_sgd")
    both = asked("on_average", pairs=[PAIR | {"stated": 1.72}, PAIR | {"second": "local_sgd", "stated": 6.06}])
    assert decided_verdict("X1", both, [row, other])["verdict"] == word
    missing = cell(math.nan, experiment="cifar10_cnn", trials=0)
    # Over some data sets the mean is another number.
    assert decided_verdict("X1", both, [row, other, missing])["verdict"] == "open"


@pytest.mark.parametrize(
    ("stated", "word"), [(23.0, "confirmed"), (27.0, "confirmed"), (22.9, "not reproduced"), (27.1, "not reproduced")]
)
def test_two_points_beside_what_is_stated_are_within_two_points(stated, word):
    row = cell(0.0, levels=[np.full(501, 0.75), np.ones(501)])
    found = decided_verdict("X1", asked("on_average", pairs=[PAIR | {"stated": stated}]), [row])
    assert (found["low"], found["high"], found["verdict"]) == (25.0, 25.0, word)


def test_a_mean_improvement_has_the_interval_of_its_fewest_trials():
    rows = [cell(0.0, levels=levels(0.0172), trials=count) for count in (3, T)]
    halves = []
    for some in (rows, rows[:1] * 2):
        found = decided_verdict("X1", asked("on_average", pairs=[PAIR | {"stated": 1.72}]), some)
        halves.append((found["high"] - found["value"]) / np.std(np.mean([row["levels"][0] for row in some], 0)[1:]))
    assert halves[0] == pytest.approx(halves[1])


def test_an_interval_that_ends_at_zero_supports_never_worse_and_not_better():
    ends = [cell(-0.02), cell(-0.002, epsilon=3.0, high=0.0)]
    assert words(ends)[1] == "open"
    assert words([*ends, cell(0.005, epsilon=6.0, high=MARGIN)], never_worse=True)[1] == "confirmed"


def test_claims_name_families_pairs_and_data_sets_of_the_protocol():
    protocol = read_protocol()
    decided = {claim.id: claim.statistic for claim in load_claims() if isinstance(claim.statistic, Decided)}
    assert set(decided) == {"N1", "N2", "N3", "N4", "C1", "C2", "C3"}
    on_average = {name for name, statistic in decided.items() if statistic.verdict == "on_average"}
    assert on_average == {"N1", "N3"}
    for statistic in decided.values():
        family = protocol["families"][statistic.family]
        pairs = {frozenset(pair) for pair in [*family["pairs"], *family.get("beside", [])]}
        assert {frozenset((pair.first, pair.second)) for pair in statistic.pairs} <= pairs
        assert set(statistic.data_sets) <= set(protocol["data_sets"])
    assert {family["publication"] for family in protocol["families"].values()} == {"published"}
