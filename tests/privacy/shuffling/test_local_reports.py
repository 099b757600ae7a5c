"""Amplification bounds: the numerical clones bound against enumeration, its order among the others, the table."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from exact_composition import composed_delta
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.cli import main
from silodp.privacy.shuffling import local_reports as allocation
from silodp.privacy.shuffling.local_reports import (
    BOUNDS,
    allocation_epsilon,
    amplification_table,
    clones_closed_form,
    clones_delta,
    clones_epsilon,
    poisson_subsampled,
    response_delta,
    response_epsilon,
    sampled_delta,
)
from silodp.theory import THEOREMS


def law_of_counts(reports: int, clone: Fraction, keep: Fraction, swap: Fraction) -> dict[tuple[int, int], Fraction]:
    """Law of (clones of kind one, of kind two), the differing report among them, in exact arithmetic."""
    law = {(1, 0): keep, (0, 1): swap, (0, 0): 1 - keep - swap}
    for _ in range(reports - 1):
        grown: dict[tuple[int, int], Fraction] = {}
        for (a, b), mass in law.items():
            for step, chance in (((1, 0), clone / 2), ((0, 1), clone / 2), ((0, 0), 1 - clone)):
                key = (a + step[0], b + step[1])
                grown[key] = grown.get(key, Fraction(0)) + mass * chance
        law = grown
    return law


def divergence(reports: int, clone: Fraction, keep: Fraction, swap: Fraction, weight: Fraction) -> float:
    p, q = law_of_counts(reports, clone, keep, swap), law_of_counts(reports, clone, swap, keep)
    return float(sum((max(p[key] - weight * q[key], Fraction(0)) for key in p), Fraction(0)))


@pytest.mark.parametrize(("ratio", "reports"), [(2, 1), (2, 9), (5, 12), (Fraction(3, 2), 7)])
@pytest.mark.parametrize("weight", [Fraction(1), Fraction(11, 10), Fraction(7, 5)])
def test_numerical_forms_are_the_enumerated_divergence(ratio, reports, weight):
    """e^ε0 = ratio, a rational number, so that everything is exact; with two records a sender too."""
    ratio, epsilon0, epsilon = Fraction(ratio), math.log(ratio), math.log(weight)
    keep = ratio / (ratio + 1)
    for records in (1, 2):
        exact = divergence(reports, 1 / ratio**records, keep, 1 - keep, weight)
        found = [clones_delta(epsilon0, reports, epsilon, records=records, upper=upper) for upper in (False, True)]
        assert found == pytest.approx([exact, exact], rel=1e-8, abs=1e-14)
        assert found[0] <= exact * (1 + 1e-14) <= found[1] * (1 + 1e-13) + 1e-15
    three = divergence(reports, 2 / (ratio + 2), ratio / (ratio + 2), 1 / (ratio + 2), weight)
    assert response_delta(epsilon0, reports, epsilon) == pytest.approx(three, rel=1e-8, abs=1e-14)


def test_the_lower_pair_is_randomised_response_itself():
    """All 3^N reports of four senders enumerated, shuffled into counts."""
    ratio = 3.0
    rows = {symbol: [ratio / 5 if seen == symbol else 1 / 5 for seen in range(3)] for symbol in range(3)}
    counts: list[dict] = [{}, {}]
    for changed in (0, 1):
        for seen in itertools.product(range(3), repeat=4):
            chance = rows[changed][seen[0]] * math.prod(rows[2][report] for report in seen[1:])
            key = tuple(np.bincount(seen, minlength=3))
            counts[changed][key] = counts[changed].get(key, 0.0) + chance
    wanted = sum(max(counts[0][key] - math.exp(0.3) * counts[1][key], 0.0) for key in counts[0])
    assert response_delta(math.log(ratio), 4, 0.3) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 4.0), st.integers(10, 200_000), st.floats(-12.0, -2.0))
def test_bounds_stand_in_their_order(epsilon0, reports, exponent):
    """Explicit pair ≤ numerical clones ≤ closed form, check-ins and earlier bounds; none above ε0 counts."""
    delta = 10**exponent
    lower, upper = response_epsilon(epsilon0, reports, delta), clones_epsilon(epsilon0, reports, delta)
    assert 0 <= lower <= upper <= epsilon0
    checkins = THEOREMS["checkins-5.1"](n=reports, epsilon0=epsilon0, delta=delta).value
    earlier = THEOREMS["checkins-5-earlier"](n=reports, epsilon0=epsilon0, delta=delta).value
    assert lower <= min(checkins, earlier)
    try:
        closed = clones_closed_form(epsilon0, reports, delta)
    except ValueError:
        return
    assert upper <= closed * (1 + 1e-5)


def test_poisson_subsampling():
    assert poisson_subsampled(1.0, 1e-5, 1.0) == pytest.approx((1.0, 1e-5))
    assert poisson_subsampled(1.0, 1e-5, 0.01) == pytest.approx((math.log(1 + 0.01 * (math.e - 1)), 1e-7))
    assert poisson_subsampled(800.0, 0.0, 0.5)[0] == pytest.approx(800 + math.log(0.5))


def test_the_table_has_every_bound_and_says_why_one_is_missing():
    table = amplification_table([0.5, 6.0], [1000], [1e-6])
    assert list(table.bound) == [*BOUNDS, *BOUNDS]
    missing = table[table.epsilon.isna()]
    assert list(missing.bound) == ["clones, closed form"]
    assert "ln" in missing.note.iloc[0] or "at most" in missing.note.iloc[0]
    small = table[table.epsilon0 == 0.5].set_index("bound").epsilon
    assert small["lower bound"] <= small["clones, numerical"] <= small["clones, closed form"]
    large = table[table.epsilon0 == 6.0].set_index("bound")
    assert large.loc["earlier bound", "note"] == "no amplification: above ε0"
    silos = amplification_table([0.1], [1000], [1e-6], records=5)
    assert list(silos.bound) == ["none", "clones, numerical", "clones, closed form"]
    assert silos.epsilon.iloc[1] < silos.epsilon.iloc[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clones_epsilon(0.0, 10, 1e-6), "epsilon0 = 0.0: must lie above 0"),
        (lambda: clones_epsilon(1.0, 0, 1e-6), "reports = 0: must be an integer and at least 1"),
        (lambda: clones_epsilon(1.0, 10, 0.0), "delta = 0.0: must lie strictly"),
        (lambda: clones_epsilon(1.0, 10, 1e-6, records=0), "records = 0: must be an integer and at least 1"),
        (lambda: amplification_table([], [10], [1e-6]), "epsilon0: empty"),
        (lambda: clones_closed_form(1.0, 100, 1e-6), "enough silos"),
        (lambda: clones_closed_form(9.0, 10_000, 1e-6), "limit on a silo's message"),
    ],
)
def test_violated_assumptions_are_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_command_prints_the_table(capsys):
    options = ["epsilon", "--amplification", "--epsilon0", "0.5", "1", "--reports", "1000", "--delta", "1e-6"]
    assert main(options) == 0
    # A heading, and below the rows what is an upper and what a lower bound.
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(amplification_table([0.5, 1.0], [1000], [1e-6])) + 2
    assert lines[-1].startswith("Upper bounds, rounded up")


@pytest.mark.parametrize(("records", "steps", "epsilon"), [(1, 1, 0.5), (1, 3, 1.2), (5, 4, 0.1)])
def test_sampled_steps_compose_as_randomised_response_does(records, steps, epsilon):
    wanted = composed_delta(steps, math.log(1 + math.expm1(0.8) / records), 0.0, epsilon)
    assert sampled_delta(0.8, records, steps, epsilon) == pytest.approx(wanted, rel=1e-8, abs=1e-15)


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
