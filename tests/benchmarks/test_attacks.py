"""Attacks on models of own data, as the table of benchmarks/PRIVACY.md has them."""

import attacks


def test_last_bits_of_float_noise_rule_out_a_neighbour_until_they_are_rounded():
    before, now = attacks.last_bits(5000)
    assert float(before.rstrip("%")) > 10
    assert now == "0.0%"


def test_a_silo_answers_a_slot_once_and_stops_a_plug_in_that_lies():
    assert attacks.asked_again() == "the constant fault"
    *_, outcomes = attacks.liars()
    assert outcomes == ["trains", "stopped"] * 2


def test_a_study_of_own_data_shares_no_draw_of_a_shuffled_sum(tmp_path):
    before, now = attacks.shuffled(tmp_path)
    assert not before.startswith("0")
    assert now.startswith("0")
