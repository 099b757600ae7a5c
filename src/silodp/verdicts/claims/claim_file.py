"""What config/claims/*.yaml may hold: claims with their statistic, rule and tolerance."""

import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from silodp.config.types import Finite, Positive, Strict
from silodp.files import NON_PRIVATE

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Words = Annotated[str, Field(min_length=1)]
# A path below a run's folder, without "..", where {experiment}, {figure} and {check} stand for names.
_PART = r"([\w/*=-]|\{(experiment|figure|check)\})"
Evidence = Annotated[str, Field(pattern=rf"^(\w|\{{(experiment|figure|check)\}})(\.?{_PART})*$")]


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
    """Two algorithms set against each other trial by trial; the claim is that the first has the smaller test error."""

    first: Algorithm = Field(description="algorithm, as in spider; local_sgd:non_private is the form without noise")
    second: Algorithm = Field(description="the algorithm it is set against")
    tolerance: NotNegative = Field(
        0.0, description="test error by which the first may be larger; with more than 0 the claim is `not worse`"
    )


class AnyStatistic(Strict):
    """What all statistics have: the ends of the ε of which a run must have every one to confirm."""

    @property
    def epsilons(self) -> tuple[float, float]:
        return 0.0, math.inf

    def with_algorithm(self, name: str, other: str) -> Self:
        return type(self).model_validate_json(self.model_dump_json().replace(f'"{name}"', f'"{other}"'))


class PairedDifference(AnyStatistic):
    """Paired differences of test error over trials, per experiment, (M, R), reading and epsilon."""

    name: Literal["paired_difference"]
    pairs: list[Pair] = Field(min_length=1, description="what is compared")
    quantifier: Literal["each", "most"] = Field("each", description="of the epsilons of every setting")
    least_epsilon: NotNegative = Field(0.0, description="smallest epsilon that the claim is about")
    most_epsilon: Positive | None = Field(None, description="largest epsilon that the claim is about; default: none")

    @property
    def epsilons(self) -> tuple[float, float]:
        return self.least_epsilon, math.inf if self.most_epsilon is None else self.most_epsilon


class RelativeImprovement(AnyStatistic):
    """Mean over experiments and epsilons of (baseline − target)/baseline in test error, with a bootstrap interval."""

    name: Literal["relative_improvement"]
    target: Algorithm = Field(description="algorithm that is said to be better")
    stated: dict[Algorithm, Finite] = Field(
        min_length=1, description="baseline -> improvement in percent that is stated"
    )
    tolerance: Positive = Field(description="percentage points by which the stated number may be missed")


class PriceOfPrivacy(AnyStatistic):
    """Private minus non-private test error of the same algorithm, at a small and at a large epsilon."""

    name: Literal["price_of_privacy"]
    algorithms: list[Algorithm] = Field(min_length=1, description="algorithms with a form without noise")
    small: Positive = Field(description="epsilon from which the price shrinks")
    large: Positive = Field(description="epsilon at which nothing but the tolerance may be left")
    tolerance: Positive = Field(description="test error that counts as no price")

    @property
    def epsilons(self) -> tuple[float, float]:
        return self.large, self.large


class DeliveredEpsilon(AnyStatistic):
    """True against claimed epsilon, over privacy.csv and the papers' formulas."""

    name: Literal["delivered_epsilon"]
    algorithms: list[Algorithm] = Field(default=[], description="algorithms whose rows of privacy.csv are used")
    formulas: list[Words] = Field(default=[], description="formulas whose rows of formulas.csv are used")
    beside: list[Words] = Field(default=[], description="formulas that are shown beside, and do not decide")
    reading: str = Field("", description="name of what the algorithms' rows are, where only the formulas decide")
    tolerance: NotNegative = Field(0.0, description="part of the claimed epsilon by which it may be exceeded")


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

    check: Check = Field(description="a check of `silodp check`")
    theorem: Words = Field(description="key of the theorem, as in convex-2.1")
    parameter: str = Field("", description="only rows whose parameter begins so")
    last: bool = Field(False, description="only the row with the largest value")


class BoundsVerdicts(AnyStatistic):
    """Verdicts that checks gave when they held a theorem against runs (bounds/*.csv)."""

    name: Literal["bounds_verdicts"]
    rows: list[Rows] = Field(min_length=1, description="which rows decide")
    formulas: list[Formula] = Field(default=[], description="formulas that have to be as stated as well")


class ExactExpression(AnyStatistic):
    """An expression of theory functions, evaluated exactly over a grid of their parameters."""

    name: Literal["exact_expression"]
    expression: EXPRESSIONS = Field(description="which one")


class FormulaValues(AnyStatistic):
    """Exponents and largest values of theory functions."""

    name: Literal["formula_values"]
    rows: list[Formula] = Field(min_length=1, description="formulas and what is stated for them")


class SameIterates(AnyStatistic):
    """FedProx-SPIDER with q = 1 and minibatch SGD with the same draws, iterate by iterate."""

    name: Literal["same_iterates"]
    tolerance: NotNegative = Field(0.0, description="largest distance between their last iterates")


class Certified(Strict):
    """Where a claim is decided again at exactly the claimed epsilon, beside its own verdict and never in its place."""

    experiments: dict[str, list[ExperimentName]] = Field(
        min_length=1, description="one of the claim's experiments -> those that train it with both noises; may be none"
    )
    readings: dict[str, str] = Field(
        default={"noise=calibrated": ""},
        min_length=1,
        description="reading with calibrated noise -> the same with the paper's; the first decides",
    )


Statistic = Annotated[
    PairedDifference
    | RelativeImprovement
    | PriceOfPrivacy
    | DeliveredEpsilon
    | BoundsVerdicts
    | ExactExpression
    | FormulaValues
    | SameIterates,
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
    protocol: str = Field(
        "", description="reading that is the paper's own protocol, as in clip_rule=max_norm; it is the headline"
    )
    variants: list[str] = Field(
        default=[],
        description="readings, empty for the default one, that a fair reader would accept as well: where their "
        "verdicts differ from the protocol's, the claim depends on the variant",
    )
    experiments: list[ExperimentName] = Field(default=[], description="the paper's own experiments; they decide")
    surrogates: list[ExperimentName] = Field(
        default=[], description="scaled-down surrogates of these experiments; shown beside, they do not decide"
    )
    certified: Certified | None = Field(
        None, description="where it is decided again under calibrated noise; default: nowhere"
    )
    evidence: list[Evidence] = Field(
        default=[], description="files of a run; {experiment}, {figure} and {check} stand for names"
    )

    @model_validator(mode="after")
    def _certified_are_its_own(self) -> "Claim":
        for name in self.certified.experiments if self.certified else ():
            if name not in self.experiments:
                raise ValueError(f"certified.experiments: {name!r}: must be one of {', '.join(self.experiments)}")
        return self


class Claims(Strict):
    """A file of claims: one paper or line of work."""

    paper: Words = Field(description="the paper that the claims are from")
    claims: list[Claim] = Field(min_length=1, description="in the order in which they are shown")
    no_check: dict[str, Words] = Field(
        default={}, description="key of a theorem that no claim speaks of -> why nothing is computed for it"
    )
