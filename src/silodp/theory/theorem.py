"""The registry of theorems: what a statement assumes, what it gives, and where it stands.

A theorem is a pure function of keyword parameters under the decorator `theorem`; the first paragraph of its docstring
is its statement. A parameter has one name in all papers: `SYMBOLS` holds its meaning, unit and allowed range, so
signatures carry no types. Every call is checked against them and against `ORDERED`; a function checks its other
assumptions with `require` and `require_at_most`. An error names the violated assumption in one line.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Literal, TypeVar

Kind = Literal["upper", "lower", "privacy", "amplification", "lemma", "rate"]
Constant = Literal["printed", "hidden"]
Reading = Literal["right", "printed"]
T = TypeVar("T")

PAPERS = {"convex": "convex paper", "nonconvex": "non-convex paper", "checkins": "check-ins paper"}


class AssumptionError(ValueError):
    """A point lies outside a theorem's assumptions."""


@dataclass(frozen=True)
class Symbol:
    """A parameter of theorems: its meaning, unit and allowed range.

    `typical` is a value for worked examples, `choices` are the words allowed for a parameter that is not a number.
    """

    meaning: str
    unit: str
    typical: float | str
    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    integer: bool = False
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed range in words, such as `an integer in [1, ∞)`."""
        if self.choices:
            return " or ".join(self.choices)
        left = "(" if self.low_open or math.isinf(self.low) else "["
        right = ")" if self.high_open or math.isinf(self.high) else "]"
        ends = [f"{end:g}".replace("inf", "∞") for end in (self.low, self.high)]
        return f"{'an integer' if self.integer else 'a number'} in {left}{ends[0]}, {ends[1]}{right}"

    def holds(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if isinstance(value, (bool, str)) or not hasattr(value, "__float__") or not math.isfinite(value):
            return False
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below and (not self.integer or value == int(value))


def positive(meaning: str, unit: str, typical: float) -> Symbol:
    """A symbol of a positive real number."""
    return Symbol(meaning, unit, typical, low=0.0, low_open=True)


def at_least(low: float, meaning: str, unit: str, typical: float, integer: bool = False) -> Symbol:
    """A symbol of a number in [low, ∞)."""
    return Symbol(meaning, unit, typical, low=low, integer=integer)


def fraction(meaning: str, unit: str, typical: float) -> Symbol:
    return Symbol(meaning, unit, typical, low=0.0, high=1.0, low_open=True, high_open=True)


SYMBOLS: dict[str, Symbol] = {
    "n": at_least(1, "records a silo holds", "records", 1000, integer=True),
    "N": at_least(1, "silos", "silos", 100, integer=True),
    "M": at_least(1, "silos in a round; 1/E[1/M_r] when their number is random", "silos", 50),
    "M_tilde": at_least(1, "M or M', whichever gives the smaller variance", "silos", 50),
    "R": at_least(1, "rounds", "rounds", 100, integer=True),
    "K": at_least(1, "records a silo draws in a round", "records", 500, integer=True),
    "d": at_least(1, "parameters of the model", "parameters", 10, integer=True),
    "L": positive("Lipschitz constant of the loss of a record", "loss / parameter", 1.0),
    "D": positive("bound on the norm of a parameter vector", "parameter", 1.0),
    "beta": positive("smoothness of the loss", "loss / parameter²", 1.0),
    "mu": positive("strong convexity or PL constant", "loss / parameter²", 0.1),
    "eta": positive("step size", "parameter² / loss", 0.1),
    "epsilon": positive("privacy loss ε", "nat", 1.0),
    "delta": fraction("failure probability δ of the privacy loss", "probability", 1e-6),
    "sigma": at_least(0.0, "standard deviation of the noise in a coordinate", "loss / parameter", 0.1),
    "phi": at_least(0.0, "standard deviation of a record's gradient within its silo", "loss / parameter", 1.0),
    "upsilon": at_least(0.0, "heterogeneity: root mean square distance of silo gradients", "loss / parameter", 0.5),
    "Delta": positive("excess risk of the first iterate", "loss", 1.0),
    "sensitivity": positive("ℓ2 distance between the query on two neighbouring data sets", "as the query", 1.0),
    "reading": Symbol("what holds, or what is printed", "", "right", choices=("right", "printed")),
}


# Pairs of symbols of which the first is at most the second, wherever a theorem takes both.
ORDERED = (("mu", "beta", "strong convexity or PL constant below smoothness"), ("M", "N", "silos in a round"))


@dataclass(frozen=True)
class Result:
    """What a theorem gives at one point.

    `terms` are named parts of the value, and quantities that the statement fixes beside it; `notes` are for a reader.
    `constant` is "hidden" for a rate whose constant is set to 1.
    """

    value: float
    terms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    theorem: str = ""
    constant: Constant = "printed"

    def __float__(self) -> float:
        return float(self.value)

    def with_terms(self, **terms: float) -> "Result":
        return replace(self, terms={**self.terms, **terms})


def total(*notes: str, **terms: float) -> Result:
    return Result(sum(terms.values()), terms, notes)


@dataclass(frozen=True)
class Theorem:
    """One registered statement; calling it with keyword parameters gives a `Result`.

    `place` is the number in the paper, `parameters` the symbol of each name in the signature, `required` those without
    a default, and `example` a point inside all assumptions.
    """

    key: str
    paper: str
    place: str
    statement: str
    kind: Kind
    constant: Constant
    function: Callable[..., Result]
    parameters: Mapping[str, Symbol]
    required: tuple[str, ...]
    example: Mapping[str, Any]

    def __call__(self, **parameters: Any) -> Result:
        unknown = sorted(set(parameters) - set(self.parameters))
        missing = [name for name in self.required if name not in parameters]
        if unknown or missing:
            wrong = f"unknown parameter {unknown[0]}" if unknown else f"parameter {missing[0]} is missing"
            raise AssumptionError(f"{self.key}: {wrong}; parameters are {', '.join(self.parameters)}")
        return self.function(**parameters)


_REGISTRY: dict[str, Theorem] = {}


def _value_text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def require(holds: bool, assumption: str, parameter: str, value: Any, allowed: str) -> None:
    """Raise AssumptionError in one line unless `holds`; `checked` puts the name of the theorem in front."""
    if not holds:
        raise AssumptionError(
            f"{assumption}: {parameter} = {_value_text(value)} is not allowed, it has to be {allowed}"
        )


def require_at_most(assumption: str, limit: float, formula: str = "", **parameter: float) -> None:
    """Require that one named parameter is at most `limit`, which `formula` gives in symbols."""
    ((name, value),) = parameter.items()
    require(value <= limit, assumption, name, value, f"at most {formula}{formula and ' = '}{_value_text(limit)}")


def checked(name: str, function: Callable[..., T], symbols: Mapping[str, Symbol]) -> Callable[..., T]:
    """`function`, whose calls are checked against `symbols` and `ORDERED`; errors start with `name`."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(**parameters: Any) -> T:
        try:
            given = signature.bind(**parameters).arguments
            for key, value in given.items():
                # None is the default of an optional parameter, never a value in range.
                if value is None and signature.parameters[key].default is None:
                    continue
                require(symbols[key].holds(value), symbols[key].meaning, key, value, symbols[key].allowed)
            for small, large, meaning in ORDERED:
                if small in given and large in given:
                    require_at_most(meaning, given[large], large, **{small: given[small]})
            return function(**parameters)
        except AssumptionError as error:
            raise AssumptionError(f"{name}: {error}") from None

    return call


def theorem(
    key: str,
    place: str,
    kind: Kind,
    *,
    constant: Constant | None = None,
    symbols: Mapping[str, Symbol] | None = None,
    **example: Any,
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Register a function of keyword parameters under `key`, and check the parameters of each call.

    `constant` is "hidden" by default for rates and lower bounds. `symbols` differ from `SYMBOLS`, and `example` from
    the typical values.
    """
    constant = constant or ("hidden" if kind in ("rate", "lower") else "printed")
    known = {**SYMBOLS, **(symbols or {})}

    def register(function: Callable[..., Result]) -> Callable[..., Result]:
        if key in _REGISTRY:
            raise ValueError(f"theorem {key} is registered twice")

        @wraps(function)
        def evaluate(**parameters: Any) -> Result:
            return replace(function(**parameters), theorem=key, constant=constant)

        signature = inspect.signature(function).parameters
        parameters = {name: known[name] for name in signature}
        required = tuple(name for name, p in signature.items() if p.default is inspect.Parameter.empty)
        statement = " ".join((function.__doc__ or "").split("\n\n")[0].split())
        worked = {name: parameters[name].typical for name in required} | example
        call = checked(key, evaluate, parameters)
        _REGISTRY[key] = Theorem(
            key, key.split("-")[0], place, statement, kind, constant, call, parameters, required, worked
        )
        return call

    return register


def registered() -> dict[str, Theorem]:
    """All theorems registered so far, by paper and then by the number in their keys."""

    def key_order(key: str) -> tuple[int, list[tuple[int, int, str]]]:
        parts = re.findall(r"\d+|[^\d]+", key)
        natural = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
        return list(PAPERS).index(key.split("-")[0]), natural

    return {key: _REGISTRY[key] for key in sorted(_REGISTRY, key=key_order)}


def list_theorems(paper: str | None = None) -> list[Theorem]:
    """Theorems of a paper, all by default, in the order of the registry."""
    return [theorem for theorem in registered().values() if paper in (None, theorem.paper)]


def describe(key: str) -> str:
    """A text about one theorem: statement, place, parameters with units and ranges, and the worked example."""
    shown = registered()[key]
    constant = "as printed" if shown.constant == "printed" else "hidden in the paper, set to 1: the value is a rate"
    lines = [f"{shown.key}: {shown.statement}", f"  source     {PAPERS[shown.paper]}, {shown.place}"]
    lines += [f"  kind       {shown.kind}", f"  constants  {constant}", "  parameters"]
    for name, symbol in shown.parameters.items():
        unit = f" [{symbol.unit}]" if symbol.unit else ""
        optional = "" if name in shown.required else " (optional)"
        lines.append(f"    {name:<12} {symbol.meaning}{unit}: {symbol.allowed}{optional}")
    point = ", ".join(f"{name}={value}" for name, value in shown.example.items())
    result = shown(**shown.example)
    lines.append(f"  example    {point}: {result.value:.6g}")
    lines += [f"    {name:<28} {value:.6g}" for name, value in result.terms.items()]
    lines += [f"  note       {note}" for note in result.notes]
    return "\n".join(lines)


def exp(exponent: float) -> float:
    """e to the exponent, ∞ where it overflows: a bound that is no bound any more."""
    return math.exp(exponent) if exponent < 700.0 else math.inf


def expm1(exponent: float) -> float:
    """e to the exponent, less 1; ∞ where it overflows."""
    return math.expm1(exponent) if exponent < 700.0 else math.inf
