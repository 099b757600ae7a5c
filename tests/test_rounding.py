"""Printed ends are outward, and the same whatever the last bits of a machine."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silodp.rounding import ends, round_outward


@given(st.floats(1e-4, 1e9))
def test_printed_ends_enclose_the_value(value):
    low, high = (float(round_outward(value, up=up).replace(",", "")) for up in (False, True))
    assert low <= value * (1 + 2e-6)
    assert high >= value * (1 - 2e-6)
    assert high <= low * 1.0102


@pytest.mark.parametrize("value", [1.32, 0.999, 10.0, 123.0, 4.24e9])
def test_last_bits_do_not_turn_a_digit(value):
    texts = {round_outward(value * (1 + tiny), up=up) for tiny in (-1e-9, 0, 1e-9) for up in (False, True)}
    assert len(texts) == 1


def test_intervals():
    assert ends(16.096, 16.096) == "[16.0, 16.1]"
    assert ends(0, 0.5) == "[0, 0.500]"
    assert ends(1179.9, 1181.2) == "[1,170, 1,190]"
    assert ends(math.inf, math.inf) == "∞"
