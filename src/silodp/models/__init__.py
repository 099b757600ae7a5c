"""Models as functions over a stack of parameter vectors, one file a model; `MODELS` builds them by name."""

from silodp.models.base import Model
from silodp.models.registry import MODELS

__all__ = ["MODELS", "Model"]
