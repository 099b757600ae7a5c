"""One figure of a paper by itself: the run that trains what it needs and nothing else, and what that costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.errors import project_root
from silodp.config.loading import read_yaml
from silodp.experiments.task import Task
from silodp.report.paper_figures import PaperFigure, paper_figures

# Of the paper's rows the default report alone: what the figure shows.
_REPORT = {"selection": "pooled", "evaluation": "fresh"}
SEED = 2023


@dataclass(frozen=True)
class Replication:
    """What `silodp replicate` runs for one figure.

    Attributes:
        name: as in nonconvex-4.
        panels: the figure's panels, an experiment's setting each.
        trials: how many of the paper's; None for all.
    """

    name: str
    panels: tuple[PaperFigure, ...]
    trials: int | None = None

    @property
    def run(self) -> str:
        """Name of the run, and of its folder below results/."""
        return f"figure-{self.name}" + (f"-{self.trials}-trials" if self.trials else "")

    @property
    def files(self) -> list[str]:
        """The figure's files, without a suffix."""
        return [f"results/{self.run}/{panel.file}" for panel in self.panels]

    def run_file(self) -> dict[str, Any]:
        """The run file: the experiments of the panels with no other setting, variant or report."""
        experiments: dict[str, Any] = {}
        for panel in self.panels:
            own = experiments.setdefault(
                panel.experiment, {"settings": [], "alternatives": [], "reports": [dict(_REPORT)]}
            )
            own["settings"].append(_setting(panel))
            if self.trials:
                own["trials"] = self.trials
        return {"run": self.run, "seed": SEED, "memory_mb": 4000, "experiments": experiments}

    def seconds(self, experiments: dict[str, Any]) -> float | None:
        """Processor time of the training by the published tables; None where they have not all of it.

        Args:
            experiments: the run's experiments by name, checked.
        """
        total = 0.0
        for panel in self.panels:
            path = project_root() / "results" / "published" / "tables" / f"{panel.experiment}.csv"
            if not path.is_file():
                return None
            table = pd.read_csv(path)
            # The runs of the grid itself: fresh runs at the chosen points share a stack with few others.
            grid = (table["reading"] == "evaluation=same") & (table["M"] == panel.M) & (table["R"] == panel.R)
            own = table[grid]
            config = experiments[panel.experiment]
            setting = next(one for one in config.settings if (one.M, one.R) == (panel.M, panel.R))
            for algorithm in config.algorithms:
                mean = own.loc[own["algorithm"] == algorithm, "seconds"].mean()
                if mean != mean:
                    return None
                # A row's seconds are one point's share of the time of its stack.
                total += mean * len(Task(panel.experiment, config, algorithm, setting).grid()) * config.trials
        return total


def _setting(panel: PaperFigure) -> dict[str, Any]:
    path = project_root() / "config" / "experiments" / f"{panel.experiment}.yaml"
    settings: Sequence[dict[str, Any]] = read_yaml(path)["settings"]
    return next(dict(one) for one in settings if (one["M"], one["R"]) == (panel.M, panel.R))


def replication(name: str, trials: int | None = None) -> Replication | None:
    """What replicates the figure called `name`; None where no paper has one of that name."""
    panels = tuple(one for one in paper_figures() if one.name == name)
    return Replication(name, panels, trials) if panels else None


def table_text(seconds: dict[str, float | None]) -> str:
    """The page of figures: what each shows, the command that makes it, and the processor time of all its trials."""
    lines = [
        "# The papers' figures, one by one",
        "",
        "Made by `silodp replicate --table`; do not edit by hand. Times are processor time of all trials on one core,",
        "by the tables of the published run; two cores halve them. `TRIALS=2` is a cheap look at any of them but",
        "Figures 6 and 7 of the non-convex paper (CIFAR-10), whose races need three trials and are in no table",
        "(performance.md).",
        "",
        "From a fresh clone, a look at Figure 4 of the non-convex paper is one command and some 2½ minutes of",
        "processor time, with packages and data on a mirror (a download of PyTorch comes on top):",
        "",
        "```",
        "make figure FIG=nonconvex-4 TRIALS=2",
        "```",
        "",
        "It builds `.venv`, fetches MNIST, says what the figure costs, shows a line a job, and ends with the picture's",
        "place, `results/figure-nonconvex-4-2-trials/figures/mnist_mlp_M25_R25.png`; `.svg` and `.pdf` lie beside it.",
        "Started again it keeps what is finished.",
        "",
        "| paper | figure | experiment | setting | file | command | time |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in paper_figures():
        setting = f"M = {one.M}, R = {one.R}" if one.M else ""
        picture = Path("results/published") / f"{one.file}.svg"
        shown = f"[{one.file}](../{picture})" if (project_root() / picture).is_file() else one.file
        took = seconds.get(one.name)
        time = words(took) if took is not None else "not timed" if one.experiment else "seconds"
        experiment = f"`{one.experiment}`" if one.experiment else "formulas alone"
        cells = [one.paper, one.title, experiment, setting, shown, f"`make figure FIG={one.name}`", time]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def words(seconds: float) -> str:
    """A time to two digits: 40 s, 12 min, 2.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
