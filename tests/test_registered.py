"""What is registered, with defaults, classes and allowed ranges, as in `registered.txt`; `make docs` renews it."""

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from alike import assert_alike

from silodp.algorithms import ALGORITHMS
from silodp.datasets import DATASETS
from silodp.models.registry import MODULES
from silodp.theory import THEOREMS

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
        found = theorem(**theorem.example)
        yield f"theorem {key}: {theorem.kind}, constants {theorem.constant}, {inspect.signature(theorem.function)}"
        for name, symbol in theorem.parameters.items():
            yield f"  {name} = {theorem.example.get(name)}: {symbol.allowed}, {symbol.unit or 'no unit'}"
        yield f"  gives {found.value:.9g}; " + ", ".join(f"{name} {value:.9g}" for name, value in found.terms.items())


def test_what_is_registered_is_what_was():
    assert_alike("\n".join(registered()), REGISTERED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    REGISTERED.write_text("\n".join(registered()), encoding="utf-8")
