"""What is registered, with defaults, classes and allowed ranges, as in `registered.txt`; `make docs` renews it."""

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from alike import assert_alike

from silodp.algorithms import ALGORITHMS
from silodp.datasets import DATASETS
from silodp.models.registry import MODULES
from silodp.theory import THEOREMS
from silodp.theory.theorem import SYMBOLS, AssumptionError, Theorem

REGISTERED = Path(__file__).with_name("registered.txt")
OF_ALGORITHMS = ("label", "look", "variants", "proximal", "trust", "alone", "schedules", "better_of", "at_least_one")


def words(value: object) -> str:
    return " ".join(sorted(value)) if isinstance(value, frozenset) else str(value)


def registered() -> Iterator[str]:
    for name, kind in ALGORITHMS.items():
        yield f"algorithm {name}: " + "; ".join(f"{key} {words(getattr(kind, key))}" for key in OF_ALGORITHMS)
        yield f"  {inspect.signature(kind)}"
    for name, module in MODULES.items():
        for model in vars(import_module(module)).values():
            if inspect.isclass(model) and model.__module__ == module:
                plain = {
                    k: v for k, v in vars(model).items() if isinstance(v, bool | int | float | str) and k[0] != "_"
                }
                yield f"model {name}: {model.__name__} {inspect.signature(getattr(model, 'build', model))} {plain}"
    for name, dataset in DATASETS.items():
        fields = {field.name: getattr(dataset, field.name) for field in dataclasses.fields(dataset)}
        yield f"data set {name}: " + "; ".join(f"{k} {v}" for k, v in fields.items() if not callable(v))
    for key, theorem in THEOREMS.items():
        yield f"theorem {key}: {theorem.kind}, constants {theorem.constant}, {inspect.signature(theorem.function)}"
        for name, symbol in theorem.parameters.items():
            yield f"  {name} = {theorem.example.get(name)}: {symbol.allowed}, {symbol.unit or 'no unit'}"
        yield from results_of(theorem)


def results_of(theorem: Theorem) -> Iterator[str]:
    """Its results by each reading at the example, and where no constant is 1; its limits, as its errors name them.

    There all optional parameters are given, half of the silos answer, and numbers are 0.8 times as large.
    """
    optional = {name: symbol.typical for name, symbol in theorem.parameters.items() if name not in theorem.required}
    half = {"M": theorem.example["N"] // 2} if {"M", "N"} <= theorem.example.keys() else {}
    given = theorem.example | optional | half
    given = {name: 0.8 * value if isinstance(value, float) else value for name, value in given.items()}
    for reading in SYMBOLS["reading"].choices if "reading" in optional else [None]:
        chosen = {"reading": reading} if reading else {}
        for point in (theorem.example | chosen, given | chosen):
            yield f"  {reading or 'gives'}: {result_text(theorem, point)}"
    numbers = {name: value for name, value in given.items() if not isinstance(value, str)}
    moved = [{name: type(value)(value * factor)} for name, value in numbers.items() for factor in (0.001, 10, 1000)]
    texts = [result_text(theorem, given | change).removeprefix(f"{theorem.key}: ") for change in moved]
    limits = [text for text in texts if " is not allowed" in text and not re.search("has to be an? ", text)]
    yield from (f"  else {text}" for text in {text.split(": ")[0]: text for text in limits}.values())


def result_text(theorem: Theorem, point: Mapping[str, Any]) -> str:
    try:
        found = theorem(**point)
    except (AssumptionError, ArithmeticError) as error:
        return str(error)
    return "; ".join([f"{found.value:.9g}", *(f"{name} {value:.9g}" for name, value in found.terms.items())])


def test_what_is_registered_is_what_was():
    assert_alike("\n".join(registered()), REGISTERED.read_text(encoding="utf-8"), least=0.0)


if __name__ == "__main__":
    REGISTERED.write_text("\n".join(registered()), encoding="utf-8")
