"""What a run file may say of a model and of the convex part of its objective."""

from typing import Annotated, Literal

from pydantic import Field

from silodp.config.types import Count, Positive, Strict


class _Model(Strict):
    """A model; `tensors` is how many tensors of weights it has."""

    @property
    def tensors(self) -> int:
        return {"softmax": 2, "perceptron": 4, "convnet": 10}.get(self.name, 1)  # type: ignore[attr-defined]


# Models whose local steps cannot expand distances once they are scaled (docs/accounting.md).
CONTRACTING = "linear", "logistic"


class SmoothModel(_Model):
    """Linear regression with half the squared error, or a linear classifier.

    logistic and sigmoid take two classes and have no intercept of their own; softmax takes any number, with intercepts.
    """

    name: Literal["linear", "logistic", "softmax", "sigmoid"]


class KinkedModel(_Model):
    """A linear classifier of two classes with the hinge loss, or linear regression with the absolute error."""

    name: Literal["hinge", "absolute"]
    smoothing: Positive | None = Field(None, description="beta of the Moreau envelope trained on; default: none")


class PerceptronModel(_Model):
    """A perceptron with one hidden ReLU layer and cross-entropy loss."""

    name: Literal["perceptron"]
    hidden: Count = Field(description="hidden units")


class ConvNetModel(_Model):
    """The non-convex paper's network for CIFAR-10: two convolutions and three dense layers, cross-entropy loss."""

    name: Literal["convnet"]
    workspace_mb: Count = Field(256, description="temporary memory of a gradient, in MB; a GPU is faster with more")


ModelConfig = Annotated[SmoothModel | KinkedModel | PerceptronModel | ConvNetModel, Field(discriminator="name")]


class Penalty(Strict):
    """l1: weight * norm_1(w), by the soft threshold; l2: weight / 2 * norm_2(w)^2, by shrinking."""

    name: Literal["l1", "l2"]
    weight: Positive = Field(description="lambda")
