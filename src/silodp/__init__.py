"""silodp: differentially private federated learning across silos, replicated."""

from importlib import import_module

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`silodp.load_model`, which loads PyTorch, when it is asked for."""
    if name == "load_model":
        return import_module(f"{__name__}.own_data.released_model").load_model
    raise AttributeError(f"module 'silodp' has no attribute {name!r}")
