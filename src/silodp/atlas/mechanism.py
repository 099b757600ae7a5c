"""A released mechanism as data: what a system claims, what leaves a silo, and with which noise.

`silodp epsilon --mechanism` reads such a file. config/atlas/ holds rows of docs/atlas.md, config/atlas/unasked/ rows
whose maintainers were not asked yet, and which no page shows.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from silodp.config.errors import ConfigError, project_root, show_value, suggest_name
from silodp.config.loading import explain, in_file
from silodp.config.types import Count, Finite, Positive, Strict
from silodp.config.yaml_file import read_yaml

_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "ln": math.log,
    "exp": math.exp,
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}


def evaluate(
    text: str | float, names: Mapping[str, float], functions: Mapping[str, Callable[..., float]] | None = None
) -> float:
    """The number that an expression of + − * / **, names, numbers and known functions comes to.

    ValueError in one line for anything else, an unknown name, a division by zero, or a result that is not finite.
    """
    known = _FUNCTIONS | dict(functions or {})

    def value(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.Name(id=name):
                if name not in names:
                    raise ValueError(f"unknown name {name}: must be one of {', '.join(sorted(names))}")
                return names[name]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in known:
                return known[name](*map(value, arguments))
        raise ValueError(f"only + - * / **, numbers, names and {', '.join(known)} are allowed")

    try:
        result = value(ast.parse(str(text), mode="eval").body)
    except (SyntaxError, RecursionError):
        raise ValueError("not an arithmetic expression") from None
    except (ZeroDivisionError, OverflowError, TypeError) as error:
        raise ValueError(f"cannot be computed: {error}") from None
    if not math.isfinite(result):
        raise ValueError("must be finite")
    return result


Amount = Finite | str
SYSTEMS = project_root() / "config" / "atlas"


class Claimed(Strict):
    """What the system says about its ε."""

    epsilon: Amount | None = Field(None, description="claimed ε, a number or an expression; none: no number is claimed")
    delta: Amount = Field(1e-5, description="δ of the claim, and of the computed ε")
    scope: Literal["message", "round", "run"] = Field("run", description="what the claimed ε is said to cover")
    unit: Literal["record", "silo"] = Field("record", description="whose data neighbours differ in")
    adjacency: Literal["replace", "add_remove"] = Field("replace", description="how neighbours differ")


class ReleasedEntry(Strict):
    """One thing that leaves the silo (or, under `secure_sum` and `final_model`, the aggregate)."""

    name: str
    clip: Literal["per_record", "batch", "update", "coordinate", "none"] = "none"
    threshold: Literal["public", "data_dependent"] = "public"
    tensors: Literal["joint", "each"] = Field("joint", description="whether the clip C is for all tensors, or for each")
    noise: Literal["gaussian", "laplace", "none"] = "none"
    sd: Amount = Field(1.0, description="standard deviation of Gaussian noise, scale of Laplace noise")
    moves: Amount | list[Amount] | None = Field(
        None,
        description="how far a unit's data move it, in ℓ2 for Gaussian, ℓ1 for Laplace; or a proven least and most",
    )
    coordinates: Amount | list[Amount] = Field(1.0, description="coordinates that each move so far (Laplace)")
    independent_across: tuple[Literal["silos", "rounds"], ...] = Field(("silos", "rounds"), strict=False)
    seed: Literal["secret", "public"] = "secret"
    counts_records: bool = Field(False, description="a number of records: public where one is replaced, else private")
    when: str | None = Field(None, description="only in runs like this; listed apart, and not in the interval")


class Sampling(Strict):
    """Who takes part in a step: records of a silo, silos of a round."""

    records: Literal["poisson", "subset", "shuffled", "fixed_once", "full"] = "full"
    rate: Amount = Field(1.0, description="share of the records in a step")
    silos: Amount = Field(1.0, description="share of the silos in a round, drawn independently")
    hidden: bool = Field(False, description="whether the adversary cannot see which silos take part")


class LocalSteps(Strict):
    """Local steps of a round, and rounds."""

    local: Amount = 1.0
    rounds: Count = 1


class Optimizer(Strict):
    """What turns noisy gradients into a message; Adam has no proven lower end when only messages are seen."""

    name: Literal["sgd", "adam"] = "sgd"
    momentum: float = Field(0.0, ge=0, lt=1)


class About(Strict):
    """Where the statements come from, for docs/atlas.md."""

    title: str
    version: str = Field(description="package version or commit")
    configuration: str = Field(description="the shipped and documented configuration that is judged")
    evidence: str = Field(description="file:line of what is released, and of the claim")
    ran: bool = Field(
        True, description="whether `make atlas` runs the released functions; every row of the page has them run"
    )
    words: str = Field(description="the claim, at most 15 words of the system's own text")
    limits: str = Field("", description="what the system's own documents say of the limit, quoted")
    right: str = Field(description="what the system does right")
    finding: str = Field(description="what the computed interval rests on")
    example_seed: str = Field(
        "", description="a seed that the project's own example fixes; judged as if it were secret"
    )
    question: str = Field("", description="what the maintainers are asked, where the row is against the project")


class Mechanism(Strict):
    """A mechanism file."""

    claim: Claimed
    view: Literal["message", "each_step", "secure_sum", "final_model"] = "message"
    silos_seen: Count = Field(1, description="silos whose messages the adversary compares")
    settings: dict[str, Amount] = Field({}, description="numbers that expressions use, as z, C, m, lr, n, d; in order")
    weights: list[Positive] = Field([], description="aggregation weights; w_max is the largest share")
    released: list[ReleasedEntry] = Field(min_length=1)
    sampling: Sampling = Sampling()
    steps: LocalSteps = LocalSteps()
    optimizer: Optimizer = Optimizer()
    standardised_by: Literal["nothing", "public_bounds", "own_records"] = Field(
        "nothing", description="what features are scaled by; a silo's own records lie outside the noise"
    )
    about: About | None = None

    def names(self, rounds: int | None, changed: Mapping[str, float], functions: Mapping[str, Callable]) -> dict:
        """Name → number: the settings in their order, then `local`, `rate`, `silos`, `delta` and `epsilon`.

        ValueError with the key in front for an expression that cannot be evaluated.
        """
        names: dict[str, float] = {"R": float(rounds or self.steps.rounds)}
        if self.weights:
            names["w_max"] = max(self.weights) / sum(self.weights)
        last = {"local": self.steps.local, "rate": self.sampling.rate, "silos": self.sampling.silos}
        for key, text in (self.settings | {"delta": self.claim.delta} | last).items():
            names[key] = self._evaluate_amount(f"settings.{key}", changed.get(key, text), names, functions)
        if self.claim.epsilon is not None:
            epsilon = changed.get("epsilon", self.claim.epsilon)
            names["epsilon"] = self._evaluate_amount("claim.epsilon", epsilon, names, functions)
        return names

    def numbers(self, place: int, key: Literal["sd", "moves", "coordinates"], names: dict) -> tuple[float, float]:
        text = getattr(self.released[place], key)
        ends = text if isinstance(text, list) else [text]
        values = [self._evaluate_amount(f"released[{place}].{key}", end, names, {}) for end in ends]
        return values[0], values[-1]

    @staticmethod
    def _evaluate_amount(key: str, text: Amount, names: dict, functions: Mapping[str, Callable]) -> float:
        try:
            return evaluate(text, names, functions)
        except ValueError as error:
            raise ValueError(f"{key}: {show_value(text)}: {error}") from None


def mechanism_path(name: str) -> Path:
    for path in (Path(name), SYSTEMS / f"{name}.yaml", SYSTEMS / "unasked" / f"{name}.yaml"):
        if path.is_file():
            return path
    presets = sorted(file.stem for file in SYSTEMS.glob("*.yaml"))
    allowed = f"must be a file, or one of {', '.join(presets)}{suggest_name(name, presets)}"
    raise ConfigError(f"command line: --mechanism: {show_value(name)}: {allowed}")


def load_mechanism(path: Path) -> Mechanism:
    """A mechanism file; ConfigError in one line where it is wrong."""
    try:
        return Mechanism.model_validate(read_yaml(path))
    except ValidationError as error:
        raise explain(error, in_file(path)) from None
