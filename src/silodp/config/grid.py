"""Grids of step sizes."""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from silodp.config.types import Exponent, Strict


class Grid(Strict):
    """Step sizes: `points` values from e^low to e^high, spaced evenly in value (linear) or exponent (exponential)."""

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
