"""Random allocation: laws against enumeration, both ends of Gaussian slots, two zero-out steps against one pair."""

import itertools
import math

import numpy as np
import pytest

from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.shuffling import amplification as allocation
from silodp.privacy.shuffling.amplification import amplification as allocation_epsilon
from silodp.privacy.shuffling.amplification import clones_epsilon, response_epsilon


def bits_with_and_without(slots: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Masses of all sequences of bits, with the record in a uniform slot, and without."""
    sequences = np.array(list(itertools.product([0, 1], repeat=slots)))
    one = np.where(sequences == 1, chance, 1 - chance)
    flipped = np.where(sequences == 1, 1 - chance, chance)
    without = one.prod(1)
    return np.mean([without * flipped[:, slot] / one[:, slot] for slot in range(slots)], axis=0), without


@pytest.mark.parametrize("slots", [1, 3, 7])
@pytest.mark.parametrize("epsilon0", [0.3, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6])
def test_slots_of_randomised_response_are_the_enumerated_divergences(slots, epsilon0, epsilon):
    with_it, without = bits_with_and_without(slots, 1 / (1 + math.exp(epsilon0)))
    law, weight = allocation.response_law(epsilon0, slots), math.exp(epsilon)
    exact = [np.maximum(p - weight * q, 0).sum() for p, q in ((with_it, without), (without, with_it))]
    found = [allocation.removed(law, epsilon), allocation.added(law, epsilon)]
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_gaussian_slots_agree_with_a_published_interval_and_replacing_costs_two_steps():
    """`pld-accounting` 2.0 at σ = 2, m = 100, δ = 1e-6: [.2005, .2100] for leaving out, ≤ .441 by two of its steps."""
    lower, upper = (allocation.gaussian_law(2.0, 100, side) for side in (False, True))
    low = allocation.smallest(lambda e: allocation.removed(lower, e), 1e-6)[0]
    high = allocation.smallest(lambda e: allocation.left_out(upper, e), 1e-6)[1]
    assert 0.2005 < low < high < 0.2100
    assert high - low < 0.002
    assert high < allocation.smallest(lambda e: allocation.replaced(upper, e), 1e-6)[1] < 0.441


def test_one_gaussian_slot_is_the_gaussian_mechanism():
    lower, upper = (allocation.gaussian_law(1.5, 1, side) for side in (False, True))
    low = allocation.smallest(lambda e: allocation.removed(lower, e), 1e-6)[0]
    high = allocation.smallest(lambda e: allocation.left_out(upper, e), 1e-6)[1]
    exact = gaussian_epsilon(1e-6, 1 / 1.5)
    assert low <= exact <= high
    assert high == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(("epsilon0", "slots"), [(0.2, 1000), (2.0, 1000), (4.0, 1000), (4.0, 10_000)])
def test_replacing_has_two_proofs_above_an_explicit_pair(epsilon0, slots):
    lower, upper = response_epsilon(epsilon0, slots, 1e-6), allocation_epsilon(epsilon0, slots, 1e-6)
    law = allocation.response_law(epsilon0, slots)
    steps = allocation.smallest(lambda e: allocation.replaced(law, e), 1e-6)[1]
    assert lower < upper == pytest.approx(min(steps, clones_epsilon(epsilon0, slots, 1e-6)), rel=1e-5)
    # One step is never more than two.
    assert allocation.smallest(lambda e: allocation.left_out(law, e), 1e-6)[1] < steps
