"""Numbers as the page and the figures show them."""

import pytest

from silodp.report import numbers


@pytest.mark.parametrize(
    ("value", "exact", "measured", "bounded"),
    [
        (0.5, "0.5", "0.500", "0.500"),
        (10000.0, "10000", "10000", "10000"),
        (1234.56, "1235", "1235", "1235"),
        (0.12345, "0.1234", "0.123", "0.124"),  # half to even at the 4th digit
        (1.0001, "1", "1.00", "1.01"),
        (9.9999, "10", "10.0", "10.0"),
        (1.2345e-5, "1.234×10⁻⁵", "1.23×10⁻⁵", "1.24×10⁻⁵"),
        (2.5e9, "2.5×10⁹", "2.5×10⁹", "2.5×10⁹"),
        (-0.25, "−0.25", "−0.250", "−0.250"),
        (0.0, "0", "0", "0"),
        (float("inf"), "∞", "∞", "∞"),
        (float("nan"), "–", "–", "–"),
    ],
)
def test_parameters_measurements_and_upper_bounds(value, exact, measured, bounded):
    assert (numbers.exact(value), numbers.measured(value), numbers.bounded(value)) == (exact, measured, bounded)


def test_ticks_and_slopes():
    assert [numbers.tick_text(value) for value in (0.02, 5000.0, 1e6, 5e-4, 0.0)] == [
        "0.02",
        "5000",
        "10⁶",
        "5×10⁻⁴",
        "0",
    ]
    assert [numbers.count(value) for value in (0.5, 2000.0, 16384.0, 1.6e6)] == ["0.5", "2,000", "16.4k", "1.6M"]
    assert numbers.slope_text(-0.5) == "−0.5"
