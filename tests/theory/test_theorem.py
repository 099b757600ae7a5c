"""The contract of every registered theorem, and the registry's own functions."""

import math

import pytest

from silodp.theory import THEOREMS, AssumptionError, describe, list_theorems
from silodp.theory.theorem import PAPERS, Symbol, theorem

KEYS = list(THEOREMS)


@pytest.mark.parametrize("key", KEYS)
def test_example_gives_a_finite_nonnegative_value(key):
    result = THEOREMS[key](**THEOREMS[key].example)
    assert all(math.isfinite(number) for number in (result.value, *result.terms.values()))
    assert float(result) == result.value >= 0
    assert (result.theorem, result.constant) == (key, THEOREMS[key].constant)


@pytest.mark.parametrize("key", KEYS)
def test_describe_names_the_paper_and_all_parameters(key):
    found = THEOREMS[key]
    text = describe(key)
    assert found.statement.endswith(".")
    assert f"{PAPERS[found.paper]}, {found.place}" in text
    assert found.statement in text
    assert all(name in text for name in found.parameters)


@pytest.mark.parametrize("key", KEYS)
def test_a_parameter_outside_its_range_is_refused_in_one_line(key):
    found = THEOREMS[key]
    for name, symbol in found.parameters.items():
        for value in _outside(symbol):
            with pytest.raises(AssumptionError) as caught:
                found(**(dict(found.example) | {name: value}))
            message = str(caught.value)
            assert message.startswith(f"{key}: ")
            assert "\n" not in message
            assert f"{name} = " in message
            assert symbol.allowed in message


def _outside(symbol: Symbol) -> list[object]:
    if symbol.choices:
        return ["neither"]
    values: list[object] = [math.nan, math.inf, "text", True]
    if math.isfinite(symbol.low):
        values += [symbol.low - 1] + ([symbol.low] if symbol.low_open else [])
    if math.isfinite(symbol.high):
        values += [symbol.high + 1] + ([symbol.high] if symbol.high_open else [])
    return values + ([symbol.low + 0.5] if symbol.integer else [])


def test_unknown_and_missing_parameters_are_named():
    with pytest.raises(AssumptionError, match="unknown parameter gamma"):
        THEOREMS["convex-gaussian"](sensitivity=1.0, epsilon=1.0, delta=1e-5, gamma=2.0)
    with pytest.raises(AssumptionError, match="parameter delta is missing"):
        THEOREMS["convex-gaussian"](sensitivity=1.0, epsilon=1.0)


def test_keys_are_sorted_by_paper_and_then_by_number():
    papers = [key.split("-")[0] for key in KEYS]
    assert papers == sorted(papers, key=list(PAPERS).index)
    assert KEYS.index("convex-2.4") < KEYS.index("convex-3.1") < KEYS.index("convex-D.1") < KEYS.index("nonconvex-2.1")
    assert KEYS.index("convex-lemma-D.9") < KEYS.index("convex-lemma-D.10")


def test_list_filters_by_paper():
    assert {theorem.paper for theorem in list_theorems("nonconvex")} == {"nonconvex"}
    assert sum(len(list_theorems(paper)) for paper in PAPERS) == len(THEOREMS)


def test_a_key_is_registered_once_and_the_registry_cannot_be_written():
    with pytest.raises(ValueError, match="registered twice"):
        theorem("convex-2.1", "", "upper")(lambda: None)
    with pytest.raises(TypeError):
        THEOREMS["convex-2.1"] = THEOREMS["convex-2.2"]  # type: ignore[index]


@pytest.mark.parametrize("key", [k for k in KEYS if "reading" in THEOREMS[k].parameters])
def test_the_printed_reading_differs_somewhere(key):
    found = THEOREMS[key]
    point = dict(found.example) | PRINTED_POINTS.get(key, {})
    right = found(**point)
    printed = found(**point, reading="printed")
    assert (right.value, dict(right.terms)) != (printed.value, dict(printed.terms))


# Where the worked example is a point at which both readings agree.
PRINTED_POINTS = {
    "convex-lemma-D.4": {"gradient": 1.0},
    "nonconvex-lemma-E.3": {"M": 100, "K": 1000},
    "nonconvex-3.1": {"M": 50},
}
