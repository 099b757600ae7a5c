"""Types and small sections of the configuration models, apart from `silodp.config` which puts them together."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveOrInf = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Device = Annotated[str, Field(pattern=r"^(cpu|cuda(:\d+)?)$")]


class Strict(BaseModel):
    """Base of all sections: unknown keys are an error, and a section does not change once made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class HingeModel(Strict):
    """A linear classifier of two classes with the hinge loss, no intercept of its own."""

    tensors: ClassVar[int] = 1

    name: Literal["hinge"]
    smoothing: Positive | None = Field(None, description="beta of the Moreau envelope trained on; default: none")


class AbsoluteModel(Strict):
    """Linear regression with the absolute error as loss."""

    tensors: ClassVar[int] = 1

    name: Literal["absolute"]
    smoothing: Positive | None = Field(None, description="beta of the Moreau envelope trained on; default: none")


class SigmoidModel(Strict):
    """A linear classifier of two classes with the sigmoid loss, smooth and not convex; no intercept of its own."""

    tensors: ClassVar[int] = 1

    name: Literal["sigmoid"]


class NoPenalty(Strict):
    """No convex part: the proximal map leaves weights where they are."""

    name: Literal["none"]


class L1Penalty(Strict):
    """weight * norm_1(w), by the soft threshold."""

    name: Literal["l1"]
    weight: Positive = Field(description="lambda")


class L2Penalty(Strict):
    """weight / 2 * norm_2(w)^2, by shrinking."""

    name: Literal["l2"]
    weight: Positive = Field(description="lambda")


class BallPenalty(Strict):
    """The ball of `radius` around 0, by projection; the same as the experiment's `radius`."""

    name: Literal["ball"]
    radius: Positive = Field(description="radius D")


Penalty = Annotated[NoPenalty | L1Penalty | L2Penalty | BallPenalty, Field(discriminator="name")]


class Constants(Strict):
    """Constants of a problem that a theorem's schedule asks for; L is the clip threshold, D the constraint's radius."""

    d: Count = Field(description="number of parameters")
    beta: Positive | None = Field(None, description="smoothness of the loss")
    mu: Positive | None = Field(None, description="strong convexity of the loss")
    phi: Positive | None = Field(None, description="bound on the deviation of a record's gradient; default: L")
    upsilon: float | None = Field(None, ge=0, description="bound on the deviation of a silo's gradient; default: 0")
    Delta: Positive | None = Field(None, description="bound on the first excess risk; default: L D")


class StageOptions(Strict):
    """One stage of the multi-stage accelerated algorithm."""

    rounds: Count = Field(description="its rounds; all stages together have R")
    upsilon: Positive = Field(description="factor of its steps, eta_r = 4 upsilon / (r (r+1))")
    mu: float = Field(0.0, ge=0, description="strong convexity its steps use")
