"""Ends of intervals in three digits, rounded outwards, the same on every machine."""

import math

_SOLVER = 1e-6  # relative: far more than solvers and transforms differ by between machines


def round_outward(value: float, *, up: bool) -> str:
    """Three significant digits, rounded up or down; a value within 1e-6 of three digits counts as these.

    Without that tolerance a number like 1.32 would be 1.33 where the last bit differs.
    """
    if not math.isfinite(value):
        return "∞"
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value * (1 + _SOLVER))) - 2)
    scaled = value / unit
    whole = round(scaled)
    if abs(scaled - whole) > _SOLVER * scaled:
        whole = math.ceil(scaled) if up else math.floor(scaled)
    rounded = float(f"{whole * unit:.3g}")
    if 100 <= rounded < 1e6:
        return f"{rounded:,.0f}"
    return f"{rounded:.2e}".replace("e+0", "e") if rounded >= 1e6 else f"{rounded:#.3g}".rstrip(".")


def ends(lower: float, upper: float) -> str:
    """An interval as text: one value where both ends are infinite or agree to three digits from below."""
    if math.isinf(lower):
        return "∞"
    return f"[{round_outward(lower, up=False)}, {round_outward(upper, up=True)}]"
