"""What config/claims/*.yaml may hold: claims with their statistic, rule and tolerance."""

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from silodp.config.types import Finite, Positive, Strict
from silodp.files import NON_PRIVATE

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Words = Annotated[str, Field(min_length=1)]
# A path below a run's folder, without "..", where {check} stands for a name.
Evidence = Annotated[str, Field(pattern=r"^(\w|\{check\})(\.?([\w/-]|\{check\}))*$")]


def _known(kind: str) -> AfterValidator:
    """Names must be among those that the context of the validation has of their kind; without a context all may be."""

    def check(name: str, info: ValidationInfo) -> str:
        allowed = (info.context or {}).get(kind)
        if allowed is not None and name.removesuffix(NON_PRIVATE) not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return name

    return AfterValidator(check)


Algorithm = Annotated[Words, _known("algorithms")]
ExperimentName = Annotated[Words, _known("experiments")]
Check = Annotated[Words, _known("checks")]
EXPRESSIONS = Literal[
    "new_over_earlier_shuffling", "one_pass_matches_local", "rounds_over_girgis", "dummy_updates_of_wider_windows"
]


class Pair(Strict):
    """Two sides of a family set against each other: the claim is that the first has the smaller test error."""

    first: Algorithm = Field(description="algorithm, as in spider; local_sgd:non_private is the form without noise")
    second: Algorithm = Field(description="the algorithm it is set against")
    never_worse: bool = Field(
        False, description="the claim is that the first is worse by the data set's margin at most"
    )
    stated: Finite | None = Field(None, description="mean improvement in percent that the paper states")


class Decided(Strict):
    """Cells of a family of config/claims/decided.yaml, whose fresh trials decide the claim."""

    name: Literal["decided"]
    family: Words = Field(description="the family that has the cells")
    pairs: list[Pair] = Field(min_length=1, description="what is compared")
    verdict: Literal["on_average", "at_every"] = Field(
        description="which word the sentence asks for: of the mean over cells, or of every cell"
    )
    data_sets: list[Words] = Field(default=[], description="the data sets that it is about; default: all of the family")
    least_epsilon: NotNegative = Field(0.0, description="smallest epsilon that it is about")
    most_epsilon: Positive | None = Field(None, description="largest epsilon that it is about; default: none")
    note: str = Field("", description="what the registered rule leaves out of the sentence")

    @property
    def epsilons(self) -> tuple[float, float]:
        return self.least_epsilon, math.inf if self.most_epsilon is None else self.most_epsilon

    def pair_of(self, first: str, second: str) -> Pair | None:
        """The pair of two sides in this order; None where it is not compared."""
        return next((pair for pair in self.pairs if (pair.first, pair.second) == (first, second)), None)


class DeliveredEpsilon(Strict):
    """True against claimed epsilon, over privacy.csv and the papers' formulas."""

    name: Literal["delivered_epsilon"]
    algorithms: list[Algorithm] = Field(default=[], description="algorithms whose rows of privacy.csv are used")
    formulas: list[Words] = Field(default=[], description="formulas whose rows of formulas.csv are used")


class Formula(Strict):
    """A theory function, or its quotient by another, with what is stated for it: exponents, or the largest value."""

    formula: Words = Field(
        description="key of a theorem, name of a schedule for its rounds, or least noise for a Gaussian mechanism's"
    )
    term: str = Field("", description="the term of its result that is meant; default: the value")
    over: str = Field("", description="key of the theorem that it is divided by, as an upper bound by a lower one")
    over_term: str = Field("", description="the term of that theorem's result; default: the value")
    at: dict[str, float | str | list[float]] = Field(
        description="parameter -> number, name of an equal parameter, or, for at_most, numbers of a grid"
    )
    slopes: dict[str, float] = Field(
        default={}, description="parameter, or e^ and a parameter -> stated exponent, over four doublings from `at`"
    )
    at_most: float | None = Field(None, description="largest value over the grid")


class Rows(Strict):
    """Rows of one check's table."""

    check: Check = Field(description="a check of `silodp.verdicts.checks`")
    theorem: Words = Field(description="key of the theorem, as in convex-2.1")
    parameter: str = Field("", description="only rows whose parameter begins so")


class BoundsVerdicts(Strict):
    """Verdicts that checks gave when they held a theorem against runs (bounds/*.csv)."""

    name: Literal["bounds_verdicts"]
    rows: list[Rows] = Field(min_length=1, description="which rows decide")
    formulas: list[Formula] = Field(default=[], description="formulas that have to be as stated as well")


class ExactExpression(Strict):
    """An expression of theory functions, evaluated exactly over a grid of their parameters."""

    name: Literal["exact_expression"]
    expression: EXPRESSIONS = Field(description="which one")


class FormulaValues(Strict):
    """Exponents and largest values of theory functions."""

    name: Literal["formula_values"]
    rows: list[Formula] = Field(min_length=1, description="formulas and what is stated for them")


class SameIterates(Strict):
    """FedProx-SPIDER with q = 1 and minibatch SGD with the same draws, iterate by iterate."""

    name: Literal["same_iterates"]


Statistic = Annotated[
    Decided | DeliveredEpsilon | BoundsVerdicts | ExactExpression | FormulaValues | SameIterates,
    Field(discriminator="name"),
]


class Claim(Strict):
    """One sentence of a paper that a run can confirm or refute."""

    id: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9.-]*$")] = Field(description="as in N1; unique over all files")
    source: Words = Field(description="paper and place")
    statement: Words = Field(description="what is claimed, in own words")
    statistic: Statistic = Field(description="what is computed, and its tolerance")
    quote: str = Field("", description="the paper's sentence, of at most 25 words, and its section; for refuted claims")
    reply: str = Field("", description="how an author could reply where the claim is refuted, in one line")
    rule: Words = Field(description="what confirms and what refutes, in words")
    against: Literal["refuted", "not reproduced", "gap", "misprint"] = Field(
        "refuted",
        description="word for what speaks against it: the statement is false; it reports the authors' own runs; the "
        "proof's constant fails and the statement stands; the form that was meant holds",
    )
    kind: Literal["experiment", "theorem", "derivation"] = Field(
        "experiment",
        description="what decides: trained models, a theorem held against runs or accounting, or formulas alone",
    )
    theorems: list[Words] = Field(
        default=[], description="keys of theorems that it speaks of, beside those that its statistic and its id name"
    )
    experiments: list[ExperimentName] = Field(default=[], description="the paper's own experiments; they decide")
    evidence: list[Evidence] = Field(
        default=[], description="files of a run; {check} stands for the names of its checks"
    )


class Claims(Strict):
    """A file of claims: one paper or line of work."""

    paper: Words = Field(description="the paper that the claims are from")
    claims: list[Claim] = Field(min_length=1, description="in the order in which they are shown")
    no_check: dict[str, Words] = Field(
        default={}, description="key of a theorem that no claim speaks of -> why nothing is computed for it"
    )
