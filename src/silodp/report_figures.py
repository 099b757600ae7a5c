"""The report's figures: each inside the page once, with its paper number and the command that draws it again."""

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

CAPTIONS = {
    "error_vs_epsilon": "test error against ε, mean and 5th to 95th percentile over trials",
    "delivered_vs_claimed": "ε delivered against ε claimed",
    "calibrated_vs_paper": "test error at the ε delivered, calibrated noise beside the paper's",
}
FORMULAS = {
    "formulas_convex": "Convex paper: what each of its noise formulas delivers",
    "formulas_nonconvex": "Non-convex paper: what each of its noise formulas delivers",
}


class Page:
    """Files of a run's folder as the page written in `base` shows them, and which figures it has shown."""

    def __init__(self, folder: Path, base: Path):
        self.folder, self.base = folder, base
        self.figures: Mapping[str, Path] = {path.stem: path for path in sorted((folder / "figures").glob("*.png"))}
        self.shown: set[str] = set()
        # Where a reader of the page has the folder: as it was named, but never a place on this machine.
        self.named = f"results/{folder.name}" if folder.is_absolute() else folder.as_posix()

    def link(self, path: Path) -> str | None:
        """A relative address of `path` from the page; None where there is no such file."""
        return quote(Path(os.path.relpath(path, self.base)).as_posix()) if path.is_file() else None

    def picture(self, path: Path, caption: str, paper: str, command: str) -> dict[str, Any]:
        """A figure: its picture as a data address (None where it is missing), its PDF, and what it is."""
        picture = base64.b64encode(path.read_bytes()).decode() if path.is_file() else None
        return {
            "name": path.stem,
            "anchor": anchor(path.relative_to(self.folder)),
            "caption": caption,
            "paper": paper,
            "command": command,
            "picture": picture,
            "pdf": self.link(path.with_suffix(".pdf")),
        }

    def result(self, name: str, experiment: str, caption: str, paper: str) -> dict[str, Any]:
        """A figure of an experiment's results."""
        self.shown.add(name)
        run = self.named
        command = (
            f"silodp figure {run}/config.json {experiment} {name} --table {run}/tables/{experiment}.csv"
            f" --silos {run}/silos/{experiment} --folder {run}/figures"
        )
        return self.picture(self.folder / "figures" / f"{name}.png", caption, paper, command)

    def others(self) -> list[dict[str, Any]]:
        """Figures in the folder that no experiment's table asked for."""
        found = []
        for name, path in self.figures.items():
            if name not in self.shown:
                command = f"silodp redraw {self.named}/formulas.csv --folder {self.named}/figures"
                known = name in FORMULAS
                found.append(self.picture(path, FORMULAS.get(name, name), "", command if known else ""))
        return found

    def bounds(self, check: str, title: str) -> dict[str, Any] | None:
        """The figure of a check; None where it has none."""
        path, run = self.folder / "bounds" / f"{check}.png", self.named
        if not path.is_file():
            return None
        command = f"silodp redraw {run}/bounds/{check}.csv --folder {run}/bounds"
        return self.picture(path, title, "", command)

    def checkins(self) -> list[dict[str, Any]]:
        """Figures about random check-ins, each with its table."""
        found = []
        for path in sorted((self.folder / "checkins").glob("*.png")):
            run, name = self.named, path.stem
            if name == "figure_2":
                caption, paper = "Central ε after shuffling against ε0, bound by bound", "check-ins paper, Figure 2"
            else:
                caption, paper = f"{name}: test error of random check-ins and others at equal central ε", ""
            command = f"silodp redraw {run}/checkins/{name}.csv --folder {run}/checkins"
            found.append(self.picture(path, caption, paper, command) | {"csv": self.link(path.with_suffix(".csv"))})
        return found


def anchor(path: Path) -> str:
    """Name of a figure's place on the page, as in figure-figures-wbcd_mlp_M2_R25."""
    return "figure-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", path.with_suffix("").as_posix())
