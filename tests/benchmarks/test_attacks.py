"""Attacks on models of own data, as the table of benchmarks/PRIVACY.md has them."""

import attacks


def test_last_bits_of_float_noise_rule_out_a_neighbour_until_they_are_rounded():
    before, now = attacks.last_bits(5000)
    assert float(before.rstrip("%")) > 10
    assert now == "0.0%"
