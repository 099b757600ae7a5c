"""The figures of a run's folder as the page shows them: a picture and its words."""

import base64
import html
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from silodp.experiments.columns import PRIVACY_COLUMNS
from silodp.files import experiments_of, read_table, reading
from silodp.report.figures.from_tables import FORMULAS as TITLES
from silodp.report.figures.reader_words import setting_words, title_of
from silodp.report.figures.style import short_label
from silodp.report.figures.svg import panels
from silodp.report.page.blocks import Figure, Link
from silodp.report.paper_figures import said_of_file

_DESCRIPTION = re.compile(r"<desc>(.*?)</desc>", re.DOTALL)
CAPTIONS = {
    "error_vs_epsilon": "Test error against claimed ε",
    "delivered_vs_claimed": "True ε against claimed ε",
    "error_vs_delivered": "Test error against true ε",
    "both_noises": "Test error against claimed ε, calibrated noise beside the paper's",
}
# Experiment → what stands below each of its figures.
NOTES = {"mnist_mlp_released": "A transplant: no program of the authors puts this noise on MNIST."}
FORMULAS = {f"formulas_{key}": f"{name} paper: true ε of each of its noise formulas" for key, name in TITLES.items()}


# Of a results table, what its figures draw.
DRAWN_COLUMNS = (
    *("experiment", "algorithm", "reading", "M", "R", "epsilon", "trials", "diverged", "test_error_mean"),
    *("test_error_p05", "test_error_p95", "delivered_lower", "delivered_epsilon"),
)


class Page:
    """Files of a run's folder as a page in the folder `base` links to them, and the figures that it has shown."""

    def __init__(self, folder: Path, base: Path, titles: Mapping[str, str] | None = None):
        self.folder, self.base = folder, base
        # Experiment → title in this run; config/experiments has the titles of the others.
        self.titles: Mapping[str, str] = titles or {}
        self.figures: Mapping[str, Path] = {path.stem: path for path in sorted((folder / "figures").glob("*.svg"))}
        self.experiments = experiments_of(folder)
        self.shown: set[str] = set()
        # Experiments whose figures stand elsewhere → where.
        self.standing: dict[str, str] = {}

    def link(self, path: Path) -> str | None:
        """A relative address of `path` from the page; None where the file is missing."""
        return quote(Path(os.path.relpath(path, self.base)).as_posix()) if path.is_file() else None

    def csv(self, path: Path, words: str = "CSV") -> list[Link]:
        return [(words, self.link(path))] if path.is_file() else []

    def privacy(self, columns: list[str] = PRIVACY_COLUMNS) -> pd.DataFrame:
        """The run's privacy.csv, which has `columns`; without rows where it is missing."""
        path = self.folder / "privacy.csv"
        return read_table(path, columns) if path.is_file() else pd.DataFrame(columns=columns)

    def picture(self, path: Path, caption: str, heading: str = "", about: str = "", note: str = "") -> Figure:
        files = [path.with_name(f"{path.stem}.{kind}") for kind in ("svg", "png", "pdf")]
        links = [(file.suffix[1:].upper(), self.link(file)) for file in files if file.is_file()]
        svg = _read_whole_svg(path) if path.is_file() else ""
        # The description is said below the picture.
        legend = html.unescape(found[1]) if (found := _DESCRIPTION.search(svg)) else ""
        place = anchor(path.relative_to(self.folder))
        svg = _DESCRIPTION.sub("", svg)
        flows = "data-panel" in svg
        svg = panels(svg) if flows else svg
        return Figure(place, about, heading, caption, svg or None, links, note, legend, flows)

    def result(self, name: str, experiment: str, caption: str, heading: str = "", note: str = "") -> Figure:
        self.shown.add(name)
        path = self.folder / "figures" / f"{name}.svg"
        note = " ".join(filter(None, (note, NOTES.get(experiment, ""))))
        return self.picture(path, caption, heading, title_of(experiment, self.titles), note)

    def forests(self, begin: str, caption: str) -> list[Figure]:
        """The forest plots whose names begin so; SPIDER's first, as the later paper claims that it is better."""
        found = []
        names = [name for name in self.figures if name.startswith(begin)]
        for name in sorted(names, key=lambda name: not name.startswith(f"{begin}spider")):
            self.shown.add(name)
            pair = map(short_label, name.removeprefix(begin).split("-"))
            found.append(self.picture(self.figures[name], caption, " against ".join(pair)))
        return found

    def remaining_figures(self, formulas: bool = True) -> list[Figure]:
        """Figures that stand in no section before: ε by round and, if `formulas`, those of the papers' formulas."""
        found = []
        for name, path in self.figures.items():
            of = re.match(r"(.+)_M(\d+)_R(\d+)", name)
            known = formulas if name in FORMULAS else of and (self.experiments is None or of[1] in self.experiments)
            if not known or name in self.shown:
                continue
            caption = FORMULAS.get(name, name)
            if of and name == f"{of[0]}_by_round":
                caption = f"ε by round: {title_of(of[1], self.titles)}, {setting_words(of[2], of[3])}"
            found.append(self.picture(path, caption))
        return found

    def checkins(self) -> list[Figure]:
        found = []
        for path in sorted((self.folder / "checkins").glob("*.svg")):
            name, heading = path.stem, ""
            caption = f"{title_of(name, self.titles)}: test error of random check-ins and others at equal central ε"
            if name == "figure_2":
                caption, heading = "Central ε after shuffling against ε0, bound by bound", "Figure 2 of the paper"
            elif self.experiments is not None and name not in self.experiments:
                continue
            said = said_of_file(f"checkins/{name}")
            found.append(self.picture(path, caption, heading, note=f"In the paper {said}." if said else ""))
        return found


def csv_address(rows: pd.DataFrame) -> str:
    """An address that holds a table as CSV, so that the page needs no file beside it."""
    text = rows.to_csv(index=False, float_format="%.6g").encode()
    return f"data:text/csv;base64,{base64.b64encode(text).decode()}"


def _read_whole_svg(path: Path) -> str:
    with reading(path):
        text = path.read_text(encoding="utf-8")
        if "<svg" not in text[:500] or not text.rstrip().endswith("</svg>"):
            raise ValueError("not a whole SVG picture")
    return text.strip()


def anchor(path: Path) -> str:
    """Name of a figure's place on the page, as in figure-figures-wbcd_mlp_M2_R25; a name may hold dots."""
    name = re.sub(r"\.(svg|png|pdf)$", "", path.as_posix())
    return "figure-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
