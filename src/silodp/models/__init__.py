"""Models as functions over a stack of parameter vectors, a file for each; `MODELS` builds them by name.

Read `base.py` first, then `linear.py`; cpu holds compiled kernels.
"""

from silodp.models.registry import MODELS

__all__ = ["MODELS"]
