"""A first run file for a user's own data: what the file holds, and safe defaults with what they mean beside them."""

import json
import math
import os
import re
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
import numpy as np

from silodp.datasets.base import Data
from silodp.datasets.own_file import WHY_NOT, OwnFile, categories_of, read_own
from silodp.datasets.tabular import kind_of, read_frame

# Silos with fewer records are left out: δ = 1/n² of theirs would be worth little.
LEAST = 20
# Stands behind each line that is read off the records; `silodp release` counts the lines that still have it.
MARK = "# from the data"
# Records of one person above which nothing is stated.
PERSON_LIMIT = 20
# Different sizes up to which each silo's noise is made for its own.
FEW_SIZES = 12


@dataclass(frozen=True)
class Survey:
    """What a file holds.

    Attributes:
        file: the columns' roles; those that cannot be features are among the ignored.
        dropped: records left out for a missing value.
        refused: column → why it is no feature.
        sizes: records of each silo that has enough of them, empty without a silo column.
        small: silos that have not.
    """

    file: OwnFile
    data: Data
    numbers: tuple[str, ...]
    categories: dict[str, list[str]]
    dropped: int
    refused: dict[str, str]
    sizes: list[int]
    small: int

    def text(self) -> str:
        """The survey, a line each; no cell of the file is in it."""
        data = self.data
        binary = len(data.feature_names) - len(self.numbers)
        lines = [f"{self.file.path}: {len(data.y)} records" + (f", {self.dropped} dropped" if self.dropped else "")]
        lines.append(f"  numbers: {', '.join(self.numbers) or 'none'}")
        lines.append(f"  categories, as {binary} columns: {', '.join(self.categories) or 'none'}")
        lines.append(f"  target: {self.file.target}, {f'{data.classes} classes' if data.classes else 'regression'}")
        lines += [f"  ignored: {name}: {why}" for name, why in self.refused.items()]
        if self.file.silo is not None:
            small = f"; {self.small} left out with fewer than {LEAST}" if self.small else ""
            lines.append(f"  silos: {len(self.sizes)} with {min(self.sizes)} to {max(self.sizes)} records{small}")
        if self.file.person is not None:
            people = np.bincount(data.person)
            lines.append(f"  persons: {len(people)}, with at most {people.max()} records")
        return "\n".join(lines)


def survey(file: OwnFile) -> Survey:
    """Read a file, leaving out columns that cannot be features.

    TableError, ValueError: one line about what keeps the file from being used.
    """
    frame = read_frame(file.path)
    kinds = {name: kind_of(frame[name]) for name in file.features(frame)}
    refused = {name: WHY_NOT[kind] for name, kind in kinds.items() if kind in WHY_NOT}
    file = replace(file, ignore=(*file.ignore, *refused))
    data, numbers, dropped = read_own(file, frame)
    counts = np.bincount(data.silo) if len(data.silo) else np.zeros(0, dtype=np.int64)
    sizes = counts[counts >= LEAST].tolist()
    if file.silo is not None and not sizes:
        raise ValueError(f"{file.path}: column {file.silo!r}: no silo has {LEAST} records: must name larger groups")
    if len(data.person) and (most := int(np.bincount(data.person).max())) > PERSON_LIMIT:
        raise ValueError(
            f"{file.path}: column {file.person!r}: a person has {most} records: must be at most {PERSON_LIMIT}, as the "
            "guarantee for a person falls with their number"
        )
    categories = {name: categories_of(frame[name], file)[0] for name, kind in kinds.items() if kind == "category"}
    return Survey(file, data, numbers, categories, dropped, refused, sizes, len(counts) - len(sizes))


def outwards(values: np.ndarray) -> tuple[float, float]:
    """Bounds around values (n,), rounded outwards to steps, 5 to 50 a range, so that no value is a bound."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if (low, high) == (0.0, 1.0):
        return low, high
    width = max(high - low, 1e-9 * max(abs(low), abs(high))) or 1.0
    step = 10.0 ** math.floor(math.log10(width / 5))
    bottom, top = math.floor(low / step) * step, math.ceil(high / step) * step
    bottom = bottom - step if bottom == low and low != 0 else bottom
    # Without the last digits of a product such as 3 · 0.1.
    return float(f"{bottom:.12g}"), float(f"{top + step if top == high else top:.12g}")


def name_of(path: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", path.name.split(".")[0]).strip("_-") or "mine"


def run_file(surveyed: Survey, name: str, output: Path) -> str:
    """The text of the run file `output`, whose one experiment is called `name`."""
    data, file = surveyed.data, surveyed.file
    bounds = {column: outwards(data.x[:, data.feature_names.index(column)]) for column in surveyed.numbers}
    if data.classes is None:
        bounds[file.target] = outwards(data.y)
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    # YAML reads a string as JSON writes it.
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    template = environment.from_string(Path(__file__).with_suffix(".yaml.j2").read_text(encoding="utf-8"))
    return template.render(
        file=file,
        name=name,
        seed=secrets.randbits(62),
        path=os.path.relpath(file.path, output.parent),
        classes=data.classes,
        class_names=data.class_names,
        categories=surveyed.categories,
        mark=MARK,
        bounds=bounds,
        model={None: "linear", 2: "logistic"}.get(data.classes, "softmax"),
        silos=len(surveyed.sizes) or 5,
        least=LEAST,
        person_limit=PERSON_LIMIT,
        records="own" if len(set(surveyed.sizes)) <= FEW_SIZES else "rounded",
    )
