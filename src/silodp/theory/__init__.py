"""Theorems of the three papers as functions, their step-size schedules, and problems whose constants are known.

`THEOREMS["convex-2.1"](n=…, d=…, …)` gives a `Result`. Pure: no training, configuration or files here.
Read `theorem.py` first, then the folder of a paper.
"""

from collections.abc import Mapping
from types import MappingProxyType

# Each of these enters its theorems when it is imported.
import silodp.theory.checkins.privacy
import silodp.theory.convex.lower
import silodp.theory.convex.privacy
import silodp.theory.convex.upper
import silodp.theory.nonconvex.privacy
import silodp.theory.nonconvex.upper  # noqa: F401
from silodp.theory.convex.schedules import SCHEDULES
from silodp.theory.theorem import AssumptionError, Result, Theorem, describe, list_theorems, registered

THEOREMS: Mapping[str, Theorem] = MappingProxyType(registered())

__all__ = [
    "SCHEDULES",
    "THEOREMS",
    "AssumptionError",
    "Result",
    "Theorem",
    "describe",
    "list_theorems",
]
