"""Random allocation: laws against enumeration, and two proofs above an explicit pair."""

import itertools
import math

import numpy as np
import pytest

from silodp.privacy.shuffling import amplification as allocation
from silodp.privacy.shuffling.amplification import allocation_epsilon, clones_epsilon, response_epsilon


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


@pytest.mark.parametrize(("epsilon0", "slots"), [(0.2, 1000), (2.0, 1000), (4.0, 1000), (4.0, 10_000)])
def test_replacing_has_two_proofs_above_an_explicit_pair(epsilon0, slots):
    lower, upper = response_epsilon(epsilon0, slots, 1e-6), allocation_epsilon(epsilon0, slots, 1e-6)
    law = allocation.response_law(epsilon0, slots)
    steps = allocation.smallest(lambda e: allocation.replaced(law, e), 1e-6)[1]
    assert lower < upper == pytest.approx(min(steps, clones_epsilon(epsilon0, slots, 1e-6)), rel=1e-5)
