"""The report's figures: SVG inside the page once, with the paper's number and the command that draws it again."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from silodp.files import experiments_of, reading
from silodp.report.figures.style import label
from silodp.report.figures.words import setting_words, title_of
from silodp.report.paper_figures import said_of_file

CAPTIONS = {
    "error_vs_epsilon": "Test error against claimed ε",
    "delivered_vs_claimed": "Delivered against claimed ε",
    "error_vs_delivered": "Test error against delivered ε",
    "both_noises": "Test error against claimed ε, calibrated noise beside the paper's",
    "calibrated_vs_paper": "Test error at the delivered ε, calibrated noise beside the paper's",
}
FORMULAS = {
    "formulas_convex": "Convex paper: what each of its noise formulas delivers",
    "formulas_nonconvex": "Non-convex paper: what each of its noise formulas delivers",
}
PAIRED, CERTIFIED, NOISES = "paired_", "certified_", "noises_"
BY_ROUND = "_by_round"


class Page:
    """Files of a run's folder as the page written in `base` shows them, and which figures it has shown."""

    def __init__(self, folder: Path, base: Path, titles: Mapping[str, str] | None = None):
        self.folder, self.base = folder, base
        # Experiment → title, as the run has it; the others are known by their files.
        self.titles: Mapping[str, str] = titles or {}
        # Place of a figure → the experiment that it is of, if any, and what it is called where something links to it.
        self.named_places: dict[str, tuple[str, str]] = {}
        self.figures: Mapping[str, Path] = {path.stem: path for path in sorted((folder / "figures").glob("*.svg"))}
        self.experiments = experiments_of(folder)
        self.shown: set[str] = set()
        # Where a reader of the page has the folder: as it was named, but never a place on this machine.
        self.named = f"results/{folder.name}" if folder.is_absolute() else folder.as_posix()

    def link(self, path: Path) -> str | None:
        """A relative address of `path` from the page; None where there is no such file."""
        return quote(Path(os.path.relpath(path, self.base)).as_posix()) if path.is_file() else None

    def picture(self, path: Path, caption: str, command: str, heading: str = "", about: str = "") -> dict[str, Any]:
        """A figure: its picture as SVG (None where it is missing), its files, and what it is.

        `about` says which experiment it is of, where the section that it stands in does.
        """
        place = anchor(path.relative_to(self.folder))
        whole = ", ".join(one for one in (about, heading, caption) if one)
        self.named_places[place] = about, heading or caption
        return {
            "name": path.stem,
            "anchor": place,
            "heading": heading,
            "caption": caption,
            "label": whole,
            "command": command,
            "picture": inline(_whole(path), whole) if path.is_file() else None,
            "files": [
                (kind, address)
                for kind in ("svg", "pdf", "png")
                if (address := self.link(path.with_name(f"{path.stem}.{kind}")))
            ],
        }

    def result(self, name: str, experiment: str, caption: str, heading: str = "") -> dict[str, Any]:
        """A figure of an experiment's results."""
        self.shown.add(name)
        run = self.named
        command = (
            f"silodp figure {run}/config.json {experiment} '{name}' --table {run}/tables/{experiment}.csv"
            f" --reported {run}/reported/{experiment}.csv --silos {run}/silos/{experiment} --folder {run}/figures"
        )
        about = title_of(experiment, self.titles)
        return self.picture(self.folder / "figures" / f"{name}.svg", caption, command, heading, about)

    def paired(self) -> list[dict[str, Any]]:
        """The forest plots of paired differences, the first of the page."""
        return self._forests("Paired differences in test error, trial by trial", PAIRED)

    def certified(self) -> list[dict[str, Any]]:
        """Pairs of algorithms under calibrated noise, of experiments that train both noises."""
        return self._forests("Paired differences in test error at exactly the claimed ε, trial by trial", CERTIFIED)

    def noises(self) -> list[dict[str, Any]]:
        """Each algorithm of theirs under both noises."""
        return self._forests("Test error under calibrated noise minus that under the paper's, trial by trial", NOISES)

    def _forests(self, caption: str, begin: str) -> list[dict[str, Any]]:
        found = []
        command = f"silodp redraw {self.named}/comparisons.csv --folder {self.named}/figures"
        for name, path in self.figures.items():
            if name.startswith(begin):
                self.shown.add(name)
                names = [label(one).removeprefix("ISRL-DP ") for one in name.removeprefix(begin).split("-")]
                found.append(self.picture(path, caption, command, " against ".join(names)))
        # SPIDER's first: it is the later paper's claim.
        return sorted(found, key=lambda figure: not figure["name"].startswith(f"{begin}spider"))

    def others(self, formulas: bool = True) -> list[dict[str, Any]]:
        """Figures in the folder that no experiment's table asked for, with those of the papers' formulas or not."""
        found = []
        for name, path in self.figures.items():
            known = name in FORMULAS
            if known and not formulas:
                continue
            named = self.experiments is None or any(name.startswith(f"{one}_M") for one in self.experiments)
            if name not in self.shown and (known or named):
                rounds = name.endswith(BY_ROUND)
                caption = (
                    f"ε by round: {self._words_of(name.removesuffix(BY_ROUND))}" if rounds else FORMULAS.get(name, name)
                )
                table = "by_round.csv" if rounds else "formulas.csv"
                command = f"silodp redraw {self.named}/{table} --folder {self.named}/figures"
                found.append(self.picture(path, caption, command if known or rounds else ""))
        return found

    def _words_of(self, stem: str) -> str:
        """As in "MNIST, M = 25, R = 25" for mnist_M25_R25."""
        found = re.fullmatch(r"(.+)_M(\d+)_R(\d+)", stem)
        return f"{title_of(found[1], self.titles)}, {setting_words(found[2], found[3])}" if found else stem

    def bounds(self, check: str, title: str) -> dict[str, Any] | None:
        """The figure of a check; None where it has none."""
        path, run = self.folder / "bounds" / f"{check}.svg", self.named
        if not path.is_file():
            return None
        return self.picture(path, title, f"silodp redraw {run}/bounds/{check}.csv --folder {run}/bounds")

    def checkins(self) -> list[dict[str, Any]]:
        """Figures about random check-ins, each with its table."""
        found = []
        for path in sorted((self.folder / "checkins").glob("*.svg")):
            run, name = self.named, path.stem
            if name != "figure_2" and self.experiments is not None and name not in self.experiments:
                continue
            if name == "figure_2":
                caption, heading = "Central ε after shuffling against ε0, bound by bound", "Figure 2 of the paper"
            else:
                caption = f"{title_of(name, self.titles)}: test error of random check-ins and others at equal central ε"
                heading = ""
            command = f"silodp redraw {run}/checkins/{name}.csv --folder {run}/checkins"
            said = said_of_file(f"checkins/{name}")
            found.append(
                self.picture(path, caption, command, heading)
                | {"csv": self.link(path.with_suffix(".csv")), "beside": f"In the paper {said}." if said else ""}
            )
        return found


def _whole(path: Path) -> str:
    """The text of an SVG file, checked to be a whole one."""
    with reading(path):
        text = path.read_text(encoding="utf-8")
        if "<svg" not in text[:500] or not text.rstrip().endswith("</svg>"):
            raise ValueError("not a whole SVG picture")
    return text


def inline(svg: str, caption: str) -> str:
    """An SVG file of `silodp.report.figures.svg` as a part of the page: named by its caption, without its title."""
    svg = re.sub(r"(<svg[^>]*>)<title>.*?</title>", r"\1", svg.strip(), count=1, flags=re.DOTALL)
    if found := re.search(r' data-title="([\d.]+)"', svg):
        # Without the title, whose words are the heading, and the room that it takes.
        top, (_, _, width, height) = float(found[1]), map(float, svg.split('viewBox="', 1)[1].split('"', 1)[0].split())
        svg = re.sub(r'viewBox="[^"]*"', f'viewBox="0 {top:g} {width:g} {height - top:g}"', svg, count=1)
        svg = re.sub(r'<g data-series="title">.*?</g>', "", svg, flags=re.DOTALL)
    name = caption.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return svg.replace("<svg ", f'<svg role="group" aria-label="{name}" ', 1)


def anchor(path: Path) -> str:
    """Name of a figure's place on the page, as in figure-figures-wbcd_mlp_M2_R25."""
    name = path.as_posix()
    # A name may hold dots of its own.
    name = re.sub(r"\.(svg|png|pdf)$", "", name)
    return "figure-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
