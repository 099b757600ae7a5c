"""Expressions of mechanism files are arithmetic and nothing else."""

import math

import pytest

from silodp.config.mechanism import evaluate


def test_arithmetic():
    names = {"C": 2.0, "delta": 1e-5}
    assert evaluate("2*C*sqrt(2*ln(1.25/delta))", names) == pytest.approx(4 * math.sqrt(2 * math.log(1.25e5)))
    assert evaluate("-C**2 + max(1, 3) - floor(2.5)", names) == -3
    assert evaluate(0.5, {}) == 0.5
    assert evaluate("twice(C)", names, {"twice": lambda x: 2 * x}) == 4


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "().__class__", "C.real", "C[0]", "[1]", "lambda: 1", "C if C else 1", "'a'", "True"),
        *("open('x')", "sqrt(x=1)", "1 < 2", "C; C", "", "1/0", "exp(1e9)", "1e999", "unknown", "sqrt(-1)", "sqrt()"),
        "(" * 300,
    ],
)
def test_anything_else_is_refused_in_one_line(text):
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        evaluate(text, {"C": 2.0})
    assert "\n" not in str(refused.value)
