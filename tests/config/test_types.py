"""Values of a run file at the ends of what is allowed: taken there, and refused beyond."""

import math
from math import nextafter

import pytest
from pydantic import TypeAdapter, ValidationError

from silodp.config import types

INFINITE = [math.inf, -math.inf, math.nan]
# What is taken, and what is refused.
CASES = {
    "Finite": ([-1e308, 0.0, 1e308], INFINITE),
    "Positive": ([math.ulp(0.0), 1e308], [0.0, -1.0, *INFINITE]),
    "NonNegative": ([0.0, 1e308], [-math.ulp(0.0), *INFINITE]),
    "Clip": ([1e-30, 1.0, math.inf], [nextafter(1e-30, 0.0), 0.0, -1.0]),
    "Epsilon": ([1e-6, nextafter(10_000.0, 0.0)], [nextafter(1e-6, 0.0), 10_000.0, *INFINITE]),
    "Exponent": ([-300.0, 300.0], [nextafter(-300.0, -301.0), nextafter(300.0, 301.0), *INFINITE]),
    "Count": ([1, 1_000_000], [0, 1_000_001, 1.5]),
    "Name": (["a", "0", "a" * 100, "a.b-c_d"], ["", "a" * 101, ".a", "-a", "a b", "a/b", "ä"]),
    "Title": (["", "a" * 300, "tab\tand\nline", " ~é"], ["a" * 301, "a\x00", "\x1f", "a\rb"]),
    "Device": (["auto", "cpu", "cuda", "cuda:0", "cuda:12"], ["gpu", "cuda:", "cuda:x", "cpu ", ""]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_value_at_its_limit_is_taken_and_beyond_refused(name):
    adapter, (inside, outside) = TypeAdapter(getattr(types, name)), CASES[name]
    for value in inside:
        assert adapter.validate_python(value) == value
    for value in outside:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [("boolean", ["no", "yes"], [[], ["no"], ["no", "no"], ["no", "yes", "?"]]), ("category", ["a", "b", "c"], ["aa"])],
)
def test_values_of_a_column_are_distinct_and_two_of_a_boolean(kind, inside, outside):
    assert types.FileColumn(type=kind, values=inside).values == inside
    for values in outside:
        with pytest.raises(ValidationError, match="must be distinct, and two of a boolean"):
            types.FileColumn(type=kind, values=list(values))
