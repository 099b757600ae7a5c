"""What a run file may say of a model and of the convex part of its objective."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from silodp.config.types import Count, Positive, Strict


class LinearModel(Strict):
    """Linear regression with half the squared error as loss."""

    tensors: ClassVar[int] = 1

    name: Literal["linear"]


class LogisticModel(Strict):
    """Logistic regression on two classes, no intercept of its own."""

    tensors: ClassVar[int] = 1

    name: Literal["logistic"]


class SoftmaxModel(Strict):
    """Multinomial logistic regression with intercepts."""

    tensors: ClassVar[int] = 2

    name: Literal["softmax"]


class PerceptronModel(Strict):
    """A perceptron with one hidden ReLU layer and cross-entropy loss."""

    tensors: ClassVar[int] = 4

    name: Literal["perceptron"]
    hidden: Count = Field(description="hidden units")


class ConvNetModel(Strict):
    """The non-convex paper's network for CIFAR-10: two convolutions and three dense layers, cross-entropy loss."""

    tensors: ClassVar[int] = 10

    name: Literal["convnet"]
    workspace_mb: Count = Field(256, description="temporary memory of a gradient, in MB; a GPU is faster with more")


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


ModelConfig = Annotated[
    LinearModel
    | LogisticModel
    | SoftmaxModel
    | PerceptronModel
    | ConvNetModel
    | HingeModel
    | AbsoluteModel
    | SigmoidModel,
    Field(discriminator="name"),
]


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
