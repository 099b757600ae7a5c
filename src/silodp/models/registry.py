"""Models by name; a model's module is imported when the model is built, so that planning loads no PyTorch."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from silodp.models.base import Model

_PLACES = {
    "linear": "linear:Linear",
    "logistic": "linear:Logistic",
    "sigmoid": "linear:Sigmoid",
    "softmax": "softmax:Softmax",
    "perceptron": "perceptron:Perceptron",
    "convnet": "convnet:ConvNet",
    "absolute": "nonsmooth:Absolute",
    "hinge": "nonsmooth:Hinge",
    "l1": "nonsmooth:L1",
}
# Model → the module that holds it.
MODULES = {name: f"{__package__}.{place.partition(':')[0]}" for name, place in _PLACES.items()}


def _build(name: str, *args: object, **options: object) -> "Model":
    return getattr(import_module(MODULES[name]), _PLACES[name].partition(":")[2]).build(*args, **options)


# Model → the function that builds it from features, classes and its options.
MODELS: dict[str, Callable[..., "Model"]] = {name: partial(_build, name) for name in _PLACES}
