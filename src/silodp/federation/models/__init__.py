"""Models as functions over a stack of parameter vectors: one file a model, found by scanning this folder."""

from collections.abc import Callable

from silodp.federation.models.base import Model
from silodp.federation.models.convnet import ConvNet
from silodp.federation.models.linear import Linear
from silodp.federation.models.logistic import Logistic
from silodp.federation.models.nonsmooth import L1, Absolute, Hinge
from silodp.federation.models.perceptron import Perceptron
from silodp.federation.models.sigmoid import Sigmoid
from silodp.federation.models.softmax import Softmax

MODELS: dict[str, Callable[..., Model]] = {
    "linear": Linear.build,
    "logistic": Logistic.build,
    "sigmoid": Sigmoid.build,
    "softmax": Softmax.build,
    "perceptron": Perceptron.build,
    "convnet": ConvNet.build,
    "absolute": Absolute.build,
    "hinge": Hinge.build,
    "l1": L1.build,
}

__all__ = ["MODELS", "Model"]
