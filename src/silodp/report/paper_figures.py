"""Which experiment and setting stands behind a figure of a paper (`config/figures.csv`), and the run that trains it."""

import functools
from dataclasses import dataclass
from typing import Any

import pandas as pd

from silodp.config.errors import project_root
from silodp.config.loading import read_yaml
from silodp.theory.theorem import PAPERS


@dataclass(frozen=True)
class PaperFigure:
    """One figure of a paper, or one panel of it: nonconvex-4 is Figure 4, behind which an experiment stands.

    M and R are None, and `experiment` is empty, for a figure of formulas alone. `file` is in a run's folder, without a
    suffix; `said` is what the paper says about the figure, in our words.
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
        return PAPERS[self.name.partition("-")[0]]


# Experiment behind a figure → that which trains it with calibrated noise beside the paper's.
CALIBRATED_OF = {
    "mnist_mlp": "mnist_mlp_certified",
    "cifar10_cnn": "cifar10_cnn_certified",
    "wbcd_mlp": "wbcd_certified",
    "insurance_linear": "insurance_equal",
    "insurance_linear_n5": "insurance_equal_n5",
    "insurance_linear_n3": "insurance_equal_n3",
    "mnist_logistic": "mnist_logistic_equal",
    "mnist_logistic_p1": "mnist_logistic_equal_p1",
}


@functools.cache
def paper_figures() -> tuple[PaperFigure, ...]:
    rows = pd.read_csv(project_root() / "config" / "figures.csv", dtype=str, keep_default_na=False).to_dict("records")
    return tuple(PaperFigure(**row | {key: int(row[key]) if row[key] else None for key in "MR"}) for row in rows)


def of_figures() -> set[str]:
    """The experiments behind figures of the papers."""
    return {figure.experiment for figure in paper_figures()} - {""}


def _of_setting(experiment: str, M: int, R: int) -> PaperFigure | None:
    return next((each for each in paper_figures() if (each.experiment, each.M, each.R) == (experiment, M, R)), None)


def figure_sentence(experiment: str, M: int, R: int) -> str:
    """What the paper says about its figure of a setting; "" where it shows none."""
    figure = _of_setting(experiment, M, R)
    return figure.said if figure else ""


def said_of_file(file: str) -> str:
    """What the paper says about its figure that a run draws in `file`, without a suffix; "" for nothing."""
    return next((each.said for each in paper_figures() if each.file == file), "")


def heading_of(experiment: str, M: int, R: int) -> str:
    """The paper's words for a setting, as in "Figure 4: M = 25, R = 25"; the setting alone where no figure shows it."""
    figure = _of_setting(experiment, M, R)
    return (f"{figure.title}: " if figure else "") + f"M = {M}, R = {R}"


SEED = 2023


@dataclass(frozen=True)
class Replication:
    """What `silodp replicate` runs for one figure: its panels, a setting each, with so many trials or with all."""

    name: str
    panels: tuple[PaperFigure, ...]
    trials: int | None = None

    @property
    def run(self) -> str:
        return f"figure-{self.name}" + (f"-{self.trials}-trials" if self.trials else "")

    @property
    def files(self) -> list[str]:
        return [f"results/{self.run}/{panel.file}" for panel in self.panels]

    def run_file(self) -> dict[str, Any]:
        """The run file: the experiments of the panels with the default report and no other setting or variant."""
        experiments: dict[str, Any] = {}
        for panel in self.panels:
            settings = read_yaml(project_root() / "config" / "experiments" / f"{panel.experiment}.yaml")["settings"]
            reports = [{"selection": "pooled", "evaluation": "fresh"}]
            empty: dict[str, Any] = {"settings": [], "alternatives": [], "reports": reports}
            empty |= {"trials": self.trials} if self.trials else {}
            overrides = experiments.setdefault(panel.experiment, empty)
            overrides["settings"] += [each for each in settings if (each["M"], each["R"]) == (panel.M, panel.R)]
        return {"run": self.run, "seed": SEED, "memory_mb": 4000, "experiments": experiments}


def replication(name: str, trials: int | None = None) -> Replication | None:
    """What replicates the figure called `name`; None where no paper has one of that name."""
    panels = tuple(panel for panel in paper_figures() if panel.name == name)
    return Replication(name, panels, trials) if panels else None
