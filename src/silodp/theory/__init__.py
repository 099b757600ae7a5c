"""Theorems of the three papers as functions, their step-size schedules, and the problems whose constants are known.

`THEOREMS["convex-2.1"](n=…, d=…, …)` gives a `Result`; `describe(key)` says what a key means and takes.
Pure: nothing here knows of training, configuration or files.
"""

from collections.abc import Mapping
from types import MappingProxyType

from silodp.theory import (
    checkins,
    checkins_utility,
    convex,
    convex_lemmas,
    convex_lower,
    convex_privacy,
    nonconvex,
    nonconvex_lemmas,
    nonconvex_privacy,
)
from silodp.theory.registry import AssumptionError, Result, Symbol, Theorem, describe, list_theorems, registered
from silodp.theory.schedules import SCHEDULES, Schedule, Stage

THEOREMS: Mapping[str, Theorem] = MappingProxyType(registered())

__all__ = [
    "SCHEDULES", "THEOREMS", "AssumptionError", "Result", "Schedule", "Stage", "Symbol", "Theorem",
    "checkins", "checkins_utility", "convex", "convex_lemmas", "convex_lower", "convex_privacy", "describe",
    "list_theorems", "nonconvex", "nonconvex_lemmas", "nonconvex_privacy",
]  # fmt: skip
