"""Algorithm 3 of the convex paper: private as a whole, and not C-compositional."""

import math

import numpy as np
import pytest
from randomised_response import (
    message_law,
    response_law,
    round_epsilon,
    transcript_epsilon,
    transcripts,
)
from scipy import stats

from silodp.theory import THEOREMS


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
def test_the_transcript_costs_epsilon0_and_a_round_what_the_theory_says(d, epsilon0):
    theory = THEOREMS["convex-E.1-example"](d=d, epsilon0=epsilon0, C=1.0)
    assert transcript_epsilon(d, epsilon0) == pytest.approx(epsilon0)
    assert transcript_epsilon(d, epsilon0) == pytest.approx(theory.terms["transcript"])
    assert round_epsilon(d, epsilon0) == pytest.approx(theory.terms["round"])


def test_it_is_not_compositional():
    """C = 3, d = 2C² = 18, ε0 = 1: √(Σ ε_r²) = √18·ε_r > 3."""
    assert math.sqrt(18) * round_epsilon(18, 1.0) > 3


def test_as_printed_the_transcript_gives_the_record_away():
    assert transcript_epsilon(3, 1.0, "printed") == math.inf
    assert round_epsilon(3, 1.0, "printed") == math.inf


def test_laws_by_hand():
    """d = 3, e^ε0 = 4: 4/6 for the own symbol, 1/6 for the others."""
    assert response_law(1, 3, math.log(4)).tolist() == pytest.approx([1 / 6, 4 / 6, 1 / 6])
    assert message_law(1, 1, 3, math.log(4)).tolist() == pytest.approx([1 / 6, 4 / 6, 1 / 6, 0])
    assert message_law(1, 0, 3, math.log(4)).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert message_law(1, 0, 3, math.log(4), "printed").tolist() == [0, 0, 0, 1]


def test_runs_follow_the_laws():
    """4,000 silos of each of two records, χ² at level 0.001."""
    records = np.repeat([0, 2], 4000)
    found = transcripts(records, 3, math.log(4), np.random.default_rng(0))
    assert found.shape == (3, 8000)
    for record in (0, 2):
        for r in range(3):
            counts = np.bincount(found[r, records == record], minlength=3)
            assert stats.chisquare(counts, 4000 * message_law(record, r, 3, math.log(4))[:3]).pvalue > 1e-3
    printed = transcripts(records, 3, 1.0, np.random.default_rng(0), "printed")
    assert (printed[1] == 3).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: response_law(3, 3, 1.0), "record = 3: must lie between 0 and d - 1 = 2"),
        (lambda: response_law(0, 1, 1.0), "d = 1: must be at least 2"),
        (lambda: response_law(0, 3, 0.0), "epsilon0 = 0.0: must be positive and finite"),
        (lambda: transcript_epsilon(6, 1.0), "d = 6: at most 5"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
