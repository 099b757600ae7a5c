"""Where a guarantee begins to hold: halving of an interval, shared by the searches for noise and ε."""

from collections.abc import Callable
from typing import Any, TypeVar

Number = TypeVar("Number", int, float)


def bisect_to_private_side(
    holds: Callable[[Number], bool],
    low: Number,
    high: Number,
    wide: Callable[[Number, Number], bool],
    middle: Callable[[Any, Any], Any] = lambda low, high: (low + high) / 2,
) -> tuple[Number, Number]:
    """An interval where `holds` turns true, not `wide` any more: `high` is on the private side, `low` is not.

    `holds` is false at `low`, true at `high`, and true from some point on; `middle` is the point to look at next.
    """
    while wide(low, high):
        point = middle(low, high)
        low, high = (low, point) if holds(point) else (point, high)
    return low, high
