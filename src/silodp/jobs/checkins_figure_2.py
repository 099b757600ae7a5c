"""Compute Figure 2 of the check-ins paper: central epsilon after shuffling against epsilon0, bound by bound."""

from pathlib import Path

from silodp.files import write_csv
from silodp.privacy.shuffling.local_reports import amplification_table

# What is on the axes.
DELTA = 1e-6
CLIENTS = (1_000, 10_000, 100_000, 1_000_000)
EPSILON0 = tuple(step / 5 for step in range(1, 21))
# Beside no amplification at all; the last two are both ends of random allocation.
BOUNDS = (
    *("earlier bound", "check-ins paper 5.1", "clones, closed form", "clones, numerical", "random check-ins"),
    *("random allocation", "lower bound"),
)


def checkins_figure_2(output: Path) -> None:
    write_csv(amplification_table(EPSILON0, CLIENTS, [DELTA], bounds=["none", *BOUNDS]), output)
