"""Grids of step sizes."""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from silodp.config.types import Exponent, Strict

# How far beyond both ends of a grid its widened form goes, in the exponent.
WIDER = 3.0


class Grid(Strict):
    """Step sizes: `points` values from e^low to e^high."""

    low: Exponent = Field(description="natural logarithm of the smallest step size")
    high: Exponent = Field(description="natural logarithm of the largest step size")
    points: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of step sizes")
    spacing: Literal["linear", "exponential"] = Field(
        "exponential", description="evenly spaced in value or in exponent"
    )

    @model_validator(mode="after")
    def _ordered(self) -> "Grid":
        if self.low > self.high:
            raise ValueError("low must be at most high")
        return self

    def values(self, spacing: str | None = None) -> list[float]:
        """The step sizes, ascending; `spacing` overrides the grid's own (reading `stepsize_grid`)."""
        if (spacing or self.spacing) == "linear":
            return np.linspace(math.exp(self.low), math.exp(self.high), self.points).tolist()
        return np.exp(np.linspace(self.low, self.high, self.points)).tolist()

    def widened(self, spacing: str | None = None) -> list[float]:
        """The same with values beyond both ends, down to e^(low − 3) and up to e^(high + 3) or just past them.

        They go on in the exponent with the grid's own distance, or a distance of 1 where values are evenly spaced.
        """
        even = (spacing or self.spacing) == "linear" or self.points == 1
        apart = max(1.0 if even else (self.high - self.low) / (self.points - 1), 1e-3)
        beyond = [apart * step for step in range(1, math.ceil(WIDER / apart) + 1)]
        below, above = [self.low - one for one in reversed(beyond)], [self.high + one for one in beyond]
        return [*np.exp(below).tolist(), *self.values(spacing), *np.exp(above).tolist()]
