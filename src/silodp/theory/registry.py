"""The registry of theorems: what a statement assumes, what it gives, and where it stands.

A theorem is a pure function of keyword parameters, registered by the decorator `theorem`. The decorator takes the
meaning, the unit and the allowed range of each parameter from `SYMBOLS`, checks every call against them, and names the
violated assumption in one line. What ties several parameters together is checked in the function itself with `require`.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Literal, ParamSpec

Kind = Literal["upper", "lower", "privacy", "amplification", "lemma", "rate"]
Constant = Literal["printed", "hidden"]
Reading = Literal["right", "printed"]

PAPERS = {"convex": "convex paper", "nonconvex": "non-convex paper", "checkins": "check-ins paper"}

P = ParamSpec("P")


class AssumptionError(ValueError):
    """A theorem was asked for a point outside its assumptions."""


@dataclass(frozen=True)
class Symbol:
    """A parameter of theorems: its meaning, unit and allowed range, and a value inside that range.

    Attributes:
        typical: a value inside the range, from which worked examples are put together.
        choices: the allowed words of a parameter that is not a number.
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
        """Whether `value` lies in the allowed range."""
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
    """A symbol of a number in (0, 1)."""
    return Symbol(meaning, unit, typical, low=0.0, high=1.0, low_open=True, high_open=True)


# One vocabulary for all papers: the same letter means the same thing in every signature.
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


@dataclass(frozen=True)
class Result:
    """What a theorem gives at one point.

    Attributes:
        value: the number that the theorem states.
        terms: named parts of a maximum or a sum, and quantities that the statement fixes beside its value.
        notes: what a reader of the number has to know.
        theorem: key of the theorem.
        constant: "printed" when all constants are the paper's, "hidden" for a rate whose constant is set to 1.
    """

    value: float
    terms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    theorem: str = ""
    constant: Constant = "printed"

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True)
class Theorem:
    """One registered statement; calling it with keyword parameters gives a `Result`.

    Attributes:
        key: name in the registry, such as `convex-2.1`.
        paper: "convex", "nonconvex" or "checkins".
        place: theorem, lemma or equation number in that paper.
        statement: one sentence that says what it states.
        kind: what sort of statement it is.
        constant: whether the paper prints the constant or hides it.
        function: the checked function behind it.
        parameters: symbol of each parameter, by its name in the signature.
        required: names without a default value.
        example: keyword parameters inside all assumptions.
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


def require(holds: bool, assumption: str, parameter: str, value: Any, allowed: str) -> None:
    """Raise AssumptionError in one line unless `holds`; the decorator puts the theorem's key in front."""
    if not holds:
        shown = f"{value:.6g}" if isinstance(value, float) else value
        raise AssumptionError(f"{assumption}: {parameter} = {shown} is not allowed, it has to be {allowed}")


def theorem(
    key: str,
    place: str,
    statement: str,
    kind: Kind,
    constant: Constant = "printed",
    symbols: Mapping[str, Symbol] | None = None,
    example: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Register a function of keyword parameters under `key`, and check each call's parameters.

    Args:
        symbols: symbols that this theorem names or bounds differently from `SYMBOLS`.
        example: values of the worked example that differ from the symbols' typical ones.
    """

    def register(function: Callable[P, Result]) -> Callable[P, Result]:
        signature = inspect.signature(function)
        known = {**SYMBOLS, **(symbols or {})}
        parameters = {name: known[name] for name in signature.parameters}
        required = tuple(n for n, p in signature.parameters.items() if p.default is inspect.Parameter.empty)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Result:
            try:
                for name, value in signature.bind(*args, **kwargs).arguments.items():
                    # None is the default of an optional parameter, never a value in range.
                    if value is None and name not in required:
                        continue
                    symbol = parameters[name]
                    require(symbol.holds(value), symbol.meaning, name, value, symbol.allowed)
                result = function(*args, **kwargs)
            except AssumptionError as error:
                raise AssumptionError(f"{key}: {error}") from None
            return replace(result, theorem=key, constant=constant)

        if key in _REGISTRY:
            raise ValueError(f"theorem {key} is registered twice")
        worked = {name: parameters[name].typical for name in required} | dict(example or {})
        paper = key.split("-")[0]
        _REGISTRY[key] = Theorem(
            key, paper, place, statement, kind, constant, checked, parameters, required, worked
        )  # fmt: skip
        return checked

    return register


def registered() -> dict[str, Theorem]:
    """All theorems registered so far, by paper and then by the number in their keys."""

    def order(key: str) -> tuple[int, list[tuple[int, int, str]]]:
        parts = re.findall(r"\d+|[^\d]+", key)
        natural = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
        return list(PAPERS).index(key.split("-")[0]), natural

    return {key: _REGISTRY[key] for key in sorted(_REGISTRY, key=order)}


def list_theorems(paper: str | None = None, kind: str | None = None) -> list[Theorem]:
    """Theorems of one paper and kind (all by default), in the order of the registry."""
    for name, value, allowed in (("paper", paper, tuple(PAPERS)), ("kind", kind, Kind.__args__)):  # type: ignore[attr-defined]
        if value is not None and value not in allowed:
            raise ValueError(f"{name} = {value} is not known; allowed are {', '.join(allowed)}")
    wanted = registered().values()
    return [t for t in wanted if paper in (None, t.paper) and kind in (None, t.kind)]


def describe(key: str) -> str:
    """A text about one theorem: statement, place, parameters with units and ranges, and the worked example."""
    theorems = registered()
    if key not in theorems:
        raise ValueError(f"theorem {key} is not known; `silodp theory list` shows the {len(theorems)} keys")
    found = theorems[key]
    constant = "as printed" if found.constant == "printed" else "hidden in the paper, set to 1: the value is a rate"
    lines = [f"{found.key}: {found.statement}", f"  source     {PAPERS[found.paper]}, {found.place}"]
    lines += [f"  kind       {found.kind}", f"  constants  {constant}", "  parameters"]
    for name, symbol in found.parameters.items():
        unit = f" [{symbol.unit}]" if symbol.unit else ""
        optional = "" if name in found.required else " (optional)"
        lines.append(f"    {name:<12} {symbol.meaning}{unit}: {symbol.allowed}{optional}")
    shown = ", ".join(f"{name}={value}" for name, value in found.example.items())
    result = found(**found.example)
    lines.append(f"  example    {shown}: {result.value:.6g}")
    lines += [f"    {name:<28} {value:.6g}" for name, value in result.terms.items()]
    lines += [f"  note       {note}" for note in result.notes]
    return "\n".join(lines)


def exp(exponent: float) -> float:
    """e to the exponent, ∞ where it overflows: a bound that is no bound any more."""
    return math.exp(exponent) if exponent < 700.0 else math.inf


def expm1(exponent: float) -> float:
    """e to the exponent, less 1; ∞ where it overflows."""
    return math.expm1(exponent) if exponent < 700.0 else math.inf
