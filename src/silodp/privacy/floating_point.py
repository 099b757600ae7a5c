"""What rounding adds to contracted local steps, and the weights up to which it adds next to nothing.

Theorems 3 and 4 of docs/accounting.md are about real numbers. In float64 a step's result is rounded in proportion to
the weights, so a server that asks at huge weights could drive two neighbours' models apart. Where a promise is made, a
plan counts `SLACK` of a sensitivity for rounding, and weights of which more could come are refused.
"""

import math
from dataclasses import replace

from silodp.privacy.plan import PrivacyPlan

SLACK = 2.0**-20
# Standard deviations by which the norm of d normal draws exceeds √d with probability e^−72 at most.
_BEYOND = 12.0


def counting_rounding(plan: PrivacyPlan) -> PrivacyPlan:
    """The plan with `SLACK` in the sensitivity of contracted steps, and as much more noise: its ε stays what it was."""
    releases = tuple(
        replace(kind, slack=SLACK, noise=kind.noise * (1 + 2 * SLACK)) if kind.contracted else kind
        for kind in plan.releases
    )
    return replace(plan, releases=releases)


def largest_weights(d: int, steps: int, stepsize: float, clip: float, noise: float, slack: float = SLACK) -> float:
    """Norm of d weights up to which `steps` contracted steps in float64 end at most slack·2ηL off; may be negative.

    η is the `stepsize`, L the `clip`, `noise` a step's standard deviation per coordinate. A step w − ηg is off by at
    most u(2d + 8)(‖w‖ + η(L + ‖noise‖)), u = 2⁻⁵³: the product ⟨w, x⟩ by du‖w‖‖x‖, which κ ≤ 2/(ηh‖x‖²) turns into
    2du‖w‖, and sums and products by u each. Both neighbours are off so in every step, and no step expands that.
    """
    move = stepsize * (clip + noise * (math.sqrt(d) + _BEYOND))
    return slack * stepsize * clip / (steps * 2.0**-53 * (2 * d + 8)) - steps * move
