"""The two verdicts of a claim from decided cells, held against their rules written out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from silodp.verdicts.decided_claims import decided_verdicts

T, MARGIN = 200, 0.01
CLAIM = {"family": "printed", "pairs": [["spider", "minibatch_sgd"]]}
GENERATOR = np.random.default_rng(7)


def cell(difference: float, se: float = 0.001, experiment: str = "wbcd_mlp", epsilon: float = 1.0, **keys) -> dict:
    """A row of decided.csv with draws of exactly that standard error."""
    draws = GENERATOR.normal(size=500)
    draws = difference + se * (draws - draws.mean()) / draws.std(ddof=1)
    half = stats.t.ppf(0.975, T - 1) * se
    row = {"family": "printed", "experiment": experiment, "M": 2, "R": 25, "epsilon": epsilon, "trials": T}
    row |= {"first": "spider", "second": "minibatch_sgd", "margin": MARGIN, "same_mechanism": False}
    row |= {"difference": difference, "low": difference - half, "high": difference + half, "draws": draws}
    return row | keys


def words(cells: list[dict], **claim) -> tuple[str, str]:
    found = decided_verdicts(CLAIM | claim, cells)
    return tuple(found[key].partition(" (")[0].partition(";")[0] for key in ("on_average", "at_every"))


@pytest.mark.parametrize(
    ("differences", "never_worse", "average", "every"),
    [
        ([-0.02, -0.03], False, "confirmed", "confirmed"),
        ([-0.002, -0.004], False, "confirmed, below the margin", "confirmed"),
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


def test_what_a_claim_is_not_about_says_nothing():
    cells = [cell(-0.02), cell(-0.03, epsilon=3.0)]
    told = decided_verdicts(CLAIM | {"epsilons": [1, 3], "data_sets": ["wbcd"]}, cells)
    others = [
        {"family": "calibrated"},
        {"second": "local_sgd"},
        {"same_mechanism": True},
        {"epsilon": 0.75},
        {"epsilon": 3.5},
        {"experiment": "mnist_mlp"},
    ]
    far = [cell(0.9, **other) for other in others]
    assert decided_verdicts(CLAIM | {"epsilons": [1, 3], "data_sets": ["wbcd"]}, cells + far) == told
    for wrong in far[:3]:  # each would be heard if the rule did not leave it out
        heard = wrong | {key: cells[0][key] for key in ("family", "second", "same_mechanism")}
        assert decided_verdicts(CLAIM, [*cells, heard]) != told


def test_nothing_is_confirmed_without_all_data_sets_but_a_contradiction_stands():
    missing = cell(math.nan, experiment="cifar10_cnn", trials=0)
    assert words([cell(-0.02), missing]) == ("open", "open")
    assert words([cell(0.02), missing]) == ("not reproduced", "not reproduced")
    assert "needs all of cifar10" in decided_verdicts(CLAIM, [cell(-0.02), missing])["on_average"]
    assert words([missing]) == ("open", "")


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
    text = decided_verdicts(CLAIM, [cell(0.01), cell(0.03, epsilon=3.0), *others])["on_average"]
    assert "wbcd, spider − minibatch_sgd: +0.0200 [" in text
    assert "mnist, spider − minibatch_sgd: -0.0200 [" in text


def test_every_cell_counts_those_that_support_and_names_the_worst_by_its_distance_in_standard_errors():
    cells = [cell(-0.02), cell(0.004, se=0.01, epsilon=3.0), cell(0.003, se=0.002, epsilon=6.0)]
    text = decided_verdicts(CLAIM, cells)["at_every"]
    assert text.startswith("open (1 of 3 cells support; the worst is wbcd_mlp M=2 R=25 ε=6, ")


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
    found = decided_verdicts(CLAIM | {"stated": [1.72]}, [row])
    assert found["on_average"].startswith(f"{word} (over minibatch_sgd {100 * share:+.2f} % [")
    assert found["at_every"] == ""
    other = cell(0.0, levels=levels(0.0606), second="local_sgd")
    both = CLAIM | {"pairs": [*CLAIM["pairs"], ["spider", "local_sgd"]], "stated": [1.72, 6.06]}
    assert decided_verdicts(both, [row, other])["on_average"].startswith(word)


def test_a_stated_improvement_of_all_data_sets_is_another_number_over_some():
    missing = cell(math.nan, experiment="cifar10_cnn", trials=0)
    row = cell(0.0, levels=levels(0.0450))
    assert decided_verdicts(CLAIM | {"stated": [1.72]}, [row, missing])["on_average"].startswith("open (over")


def test_an_interval_that_ends_at_zero_supports_never_worse_and_not_better():
    ends = [cell(-0.02), cell(-0.002, epsilon=3.0, high=0.0)]
    assert words(ends)[1] == "open"
    assert words([*ends, cell(0.005, epsilon=6.0, high=MARGIN)], never_worse=True)[1] == "confirmed"
