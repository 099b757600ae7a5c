"""One figure of a paper by itself: the run that trains what it needs and nothing else."""

from dataclasses import dataclass
from typing import Any

from silodp.config.errors import project_root
from silodp.config.loading import read_yaml
from silodp.report.paper_figures import PaperFigure, paper_figures

SEED = 2023


@dataclass(frozen=True)
class Replication:
    """What `silodp replicate` runs for one figure: its panels, a setting each, with so many trials or with all."""

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
