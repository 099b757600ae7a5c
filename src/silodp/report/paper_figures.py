"""Which experiment and setting stands behind a figure of a paper: `config/figures.csv`."""

import functools
from dataclasses import dataclass

import pandas as pd

from silodp.config.errors import project_root

PAPERS = {"convex": "convex paper", "nonconvex": "non-convex paper", "checkins": "check-ins paper"}


@dataclass(frozen=True)
class PaperFigure:
    """One figure of a paper, or one panel of it.

    Attributes:
        name: as in nonconvex-4.
        title: as the paper numbers it, as in Figure 4.
        experiment: behind it; empty for a figure of formulas alone.
        M, R: silos a round and rounds; None without an experiment.
        file: of a run's folder, without a suffix.
        said: what the paper says about the figure, in our words; "" for nothing.
    """

    name: str
    title: str
    experiment: str
    M: int | None
    R: int | None
    file: str
    said: str

    @property
    def paper(self) -> str:
        """Short name of the paper."""
        return PAPERS[self.name.partition("-")[0]]


@functools.cache
def paper_figures() -> tuple[PaperFigure, ...]:
    """All of them, a panel each, in the order of the file."""
    rows = pd.read_csv(project_root() / "config" / "figures.csv", dtype=str, keep_default_na=False)
    return tuple(
        PaperFigure(row.name_, row.title, row.experiment, _number(row.M), _number(row.R), row.file, row.said)
        for row in rows.rename(columns={"name": "name_"}).itertuples()
    )


def _number(text: str) -> int | None:
    return int(text) if text else None


def said_of(experiment: str, M: int, R: int) -> str:
    """What the paper says about its figure of a setting; "" where it shows none."""
    return next((one.said for one in paper_figures() if (one.experiment, one.M, one.R) == (experiment, M, R)), "")


def said_of_file(file: str) -> str:
    """What the paper says about its figure that a run draws in `file`, without a suffix; "" for nothing."""
    return next((one.said for one in paper_figures() if one.file == file), "")


def heading_of(experiment: str, M: int, R: int) -> str:
    """The paper's words for a setting, as in "Figure 4: M = 25, R = 25"; the setting alone where no figure shows it."""
    setting = f"M = {M}, R = {R}"
    for one in paper_figures():
        if (one.experiment, one.M, one.R) == (experiment, M, R):
            return f"{one.title}: {setting}"
    return setting
