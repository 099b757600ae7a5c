"""Ends of ε beyond what a lattice resolves: on their sides of the Gaussian limit, and of laws integrated by hand."""

import math
import re

import dp_accounting as dp
import numpy as np
import pytest
from events import delivered_epsilon, upper_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from small import ROOT

from silodp.privacy.accounting.accountant import drawn_epsilon
from silodp.privacy.accounting.losses import Composition, LossPmf, epsilon_at
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import at_most_once, with_replacement


def replaced(n, K, z, R):
    return dp.SelfComposedDpEvent(dp.SampledWithReplacementDpEvent(n, K, dp.GaussianDpEvent(z)), R)


@pytest.mark.parametrize("power", range(2, 9))
@pytest.mark.parametrize("mu", [0.1, 1.0, 1e4])
def test_both_ends_hold_the_gaussian_limit_at_any_number_of_rounds(power, mu):
    """Draws only add to the limit; below 1e6 rounds they add much."""
    delta, R = 1e-5, 10**power
    limit = gaussian_epsilon(delta, mu)
    z = 0.1 * math.sqrt(R) / mu
    found = delivered_epsilon(replaced(100, 10, z, R), delta)
    assert found.lower <= found.upper
    assert limit <= found.upper
    if z > 100:
        assert found.lower <= limit * (1 + 1e-9)
        assert found.lower > 0.85 * limit
        assert found.upper < 1.25 * limit


def test_few_draws_decide():
    """Lower ends were .0656 and 0: one draw in a million rounds, and noise that hides nothing."""
    assert delivered_epsilon(replaced(10**7, 1, 0.4004, 10**6), 1e-9).lower > 0.88
    found = delivered_epsilon(replaced(100, 10, 5e-5, 25), 1e-5)
    assert 1 / (2 * 5e-5**2) < found.lower <= found.upper < 2.1 * found.lower


@pytest.mark.parametrize("event", [replaced(169_715, 1, 0.951, 184), replaced(1000, 10, 2.0, 200)])
def test_a_smaller_delta_never_has_a_smaller_end(event):
    """The lower end fell from .0102 at 1e-15 to .0039 at 1e-20."""
    ends = np.array([delivered_epsilon(event, 10.0**-power)[:3:2] for power in (1, 3, 6, 9, 12, 15, 17, 20, 25)])
    assert (np.diff(ends, axis=0) >= 0).all()


def test_kinds_that_one_lattice_hardly_resolves_together_lose_no_step():
    """At 0.99·δ the lower end fell from 7.01 to 6.39: rounding sent all mass of the milder kind down a lattice step."""
    milder = replaced(30_139, 19, 17.06011945634866, 91)
    other = dp.SampledWithoutReplacementDpEvent(30_139, 411, dp.GaussianDpEvent(0.5833588089703913))
    event = dp.ComposedDpEvent([milder, dp.SelfComposedDpEvent(other, 40)])
    ends = [delivered_epsilon(event, 1.09051183e-8 * share) for share in (1.0, 0.99, 0.5)]
    assert ends[0].lower < ends[1].lower < ends[2].lower
    assert all(found.upper < 1.02 * found.lower for found in ends)


def test_a_reacting_pair_whose_losses_overflow_says_nothing_and_warns_of_nothing():
    found = delivered_epsilon(replaced(53_193, 5, 4.30687591587821, 122), 1.1354124629748578e-17)
    assert 0 < found.lower <= found.upper


@pytest.mark.parametrize("event", [replaced(2**63, 10, 5.0, 25), replaced(10**30, 10, 5.0, 25)])
def test_numbers_beyond_a_machine_word_get_a_number_without_a_warning(event):
    found = delivered_epsilon(event, 1e-5)
    assert 0 <= found.lower <= found.upper < math.inf


def test_an_upper_end_that_rounding_has_eaten_is_an_error():
    """A millionth of the mass gone, a million times over: the Chernoff bound was below 0, which was printed as 0."""
    losses = LossPmf(0.1, -1, np.array([0.25, 0.5 - 1e-6, 0.25]))
    with pytest.raises(ArithmeticError, match="rounding"):
        epsilon_at(Composition([(losses, 10**6)]), 1e-5, upper=True)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 10**6),
    share=st.floats(0, 2),
    log_z=st.floats(-3, 3),
    log_rounds=st.floats(0, 4),
    power=st.floats(-12.0, -2.0),
)
def test_counted_draws_stay_below_the_lattice(n, share, log_z, log_rounds, power):
    """Beside the lattice, which has a proof of its own."""
    K, z, R, delta = max(int(share * n), 1), 10**log_z, int(10**log_rounds), 10.0**power
    law = with_replacement(n, K, z, 1e-6 * delta / R) if n > 1 else at_most_once(1.0, z / K)
    lattice = upper_epsilon(replaced(n, K, z, R), delta)
    assert drawn_epsilon([(law, R)], delta) <= lattice * (1 + 1e-6) + 1e-9


def test_the_scan_in_the_documentation_is_what_the_accountant_gives():
    text = (ROOT / "docs" / "accounting.md").read_text(encoding="utf-8")
    names, lower, limit, upper = (
        [cell.strip() for cell in re.search(rf"^\| {name} \|(.*)\|$", text, re.MULTILINE)[1].split("|")]
        for name in ("R", "lower end", "limit", "upper end")
    )
    for place, name in enumerate(names):
        R = 10 ** int(name.removeprefix("10").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
        found = delivered_epsilon(replaced(100, 10, math.sqrt(R) / 10, R), 1e-5)
        said = [float(cells[place]) for cells in (lower, limit, upper)]
        assert said == pytest.approx([found.lower, gaussian_epsilon(1e-5, 1.0), found.upper], abs=6e-4)
