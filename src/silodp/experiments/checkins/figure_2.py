"""Figure 2 of the check-ins paper: what is on its axes."""

DELTA = 1e-6

CLIENTS = (1_000, 10_000, 100_000, 1_000_000)

# Beside no amplification at all; the last two are both ends of random allocation.
BOUNDS = (
    *("earlier bound", "check-ins paper 5.1", "clones, closed form", "clones, numerical", "random check-ins"),
    *("random allocation", "lower bound"),
)

# ε0 on the axis of Figure 2.
EPSILON0 = tuple(step / 5 for step in range(1, 21))
