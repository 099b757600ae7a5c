"""A first run file for a user's own data: what the file holds, and safe defaults with what they mean beside them."""

import json
import math
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from silodp.datasets.base import Data
from silodp.datasets.own.own_file import WHY_NOT, OwnFile, categories_of, inferred_task, read_own
from silodp.datasets.own.tabular import coded, is_number, kind_of, numbers, read_frame
from silodp.experiments.task import WEAK
from silodp.federation.experiment_data import limit_person_records

# Silos with fewer records are left out: δ = 1/n² of theirs would be worth little.
LEAST = 20
# Stands behind each line that is read off the records; `silodp release` counts the lines that still have it.
MARK = "# from the data"
# Of a silo's records that train.
SHARE = 0.8
# Different sizes up to which each silo's noise is made for its own.
FEW_SIZES = 12


@dataclass(frozen=True)
class Survey:
    """What a file holds.

    Attributes:
        file: the columns' roles; those that cannot be features are among the ignored.
        dropped: records left out for a missing value.
        refused: column → why it is no feature.
        sizes: silo → records, of each that has enough of them, empty without a silo column.
        small: silos that have not.
        limit: records of a person that a run draws at most.
        warnings: what else was noticed.
    """

    file: OwnFile
    data: Data
    numbers: tuple[str, ...]
    categories: dict[str, list[str]]
    dropped: int
    refused: dict[str, str]
    sizes: dict[str, int]
    small: int
    limit: int
    warnings: list[str]

    def text(self) -> str:
        data = self.data
        binary = len(data.feature_names) - len(self.numbers)
        lines = [f"{self.file.path}: {len(data.y)} records" + (f", {self.dropped} dropped" if self.dropped else "")]
        lines.append(f"  numbers: {', '.join(self.numbers) or 'none'}")
        lines.append(f"  categories, as {binary} columns: {', '.join(self.categories) or 'none'}")
        lines.append(f"  target: {self.file.target}, {f'{data.classes} classes' if data.classes else 'regression'}")
        lines += [f"  ignored: {name}: {why}" for name, why in self.refused.items()]
        if self.file.silo is not None:
            small = f"; {self.small} left out with fewer than {LEAST}" if self.small else ""
            sizes = self.sizes.values()
            lines.append(f"  silos: {len(sizes)} with {min(sizes)} to {max(sizes)} records{small}")
        if self.file.person is not None:
            people = np.bincount(data.person)
            lines.append(f"  persons: {len(people)}, with at most {people.max()} records")
        cut = [f"bounds of {name!r}: {note}" for name, (_, note) in self.bounds().items() if note]
        return "\n".join(lines + [f"  note: {warning}" for warning in [*self.warnings, *cut]])

    def bounds(self) -> dict[str, tuple[tuple[float, float], str]]:
        """Bounds of every number, and of a regression's target, and what they leave out."""
        columns = {name: self.data.x[:, self.data.feature_names.index(name)] for name in self.numbers}
        found = {}
        for name, values in columns.items():
            cut = outlier(values)
            inside = np.clip(values, *cut[:2]) if cut else values
            note = f"{cut[2]} of {len(values)} values lie beyond the quantiles .005 and .995 and are cut" if cut else ""
            found[name] = outwards(inside), note
        if self.data.classes is None:
            found[self.file.target] = outwards(self.data.y), ""
        return found


def survey(file: OwnFile, limit: int = 20) -> Survey:
    """Read a file, leaving out columns that cannot be features; a person counts with at most `limit` records.

    TableError, ValueError: one line about what keeps the file from being used.
    """
    frame = read_frame(file.path, file.encoding)
    kinds = {name: kind_of(frame[name]) for name in file.features(frame)}
    refused = identities(frame, file) | {name: WHY_NOT[kind] for name, kind in kinds.items() if kind in WHY_NOT}
    file = replace(file, ignore=(*file.ignore, *refused))
    kinds = {name: kind for name, kind in kinds.items() if name not in refused}
    whole, numbers, dropped = read_own(file, frame)
    data = limit_person_records(whole, limit)
    warnings = [
        f"column {name!r}: {len(rows)} of {len(frame)} values are words such as ? or n/a, taken as missing (row "
        f"{', '.join(map(str, rows[:5]))}{', …' if len(rows) > 5 else ''})"
        for name, rows in frame.attrs["stray"].items()
    ]
    warnings += [
        f"column {name!r} predicts the target by itself: if it is known only afterwards, put it under ignore"
        for name in leaks(frame, file, list(kinds))
    ]
    if len(data.y) < len(whole.y):
        many = int((np.bincount(whole.person) > limit).sum())
        warnings.append(
            f"{many} persons have more than {limit} records: {limit} of each are drawn, the same in every run, and "
            f"{len(whole.y) - len(data.y)} records stay out (--person-limit)"
        )
    warnings += filter(None, [restarting(frame, file)])
    counts = np.bincount(data.silo)
    sizes = {name: int(n) for name, n in zip(data.silo_names, counts, strict=False) if n >= LEAST}
    if file.silo is not None and not sizes:
        raise ValueError(f"{file.path}: column {file.silo!r}: no silo has {LEAST} records: must name larger groups")
    train = [math.floor(SHARE * size + 1e-9) for size in sizes.values()]
    if weak := [n for n in train if n * n**-2.0 > WEAK]:
        warnings.append(
            f"δ is weak in {len(weak)} of {len(sizes)} silos: with {min(weak)} training records δ = 1/n² = "
            f"{min(weak) ** -2.0:.2g} allows that a record is published as it is with probability {1 / min(weak):.2g}; "
            "`silos.least` leaves them out"
        )
    categories = {name: categories_of(frame[name], file)[0] for name, kind in kinds.items() if kind == "category"}
    return Survey(file, data, numbers, categories, dropped, refused, sizes, len(counts) - len(sizes), limit, warnings)


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


def run_file(surveyed: Survey, name: str, output: Path, silos: int = 5) -> str:
    """The text of the run file `output`, whose one experiment is `name`; `silos` are cut where none are named."""
    data, file = surveyed.data, surveyed.file
    few = surveyed.sizes if len(surveyed.sizes) <= FEW_SIZES else {}
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
        bounds=surveyed.bounds(),
        model={None: "linear", 2: "logistic"}.get(data.classes, "softmax"),
        silos=len(surveyed.sizes) or silos,
        # To two digits, so that no record by itself decides them.
        declared={silo: n - n % 10 ** max(len(str(n)) - 2, 0) for silo, n in few.items()},
        least=LEAST,
        person_limit=surveyed.limit,
        share=SHARE,
        records="own" if len(set(surveyed.sizes.values())) <= FEW_SIZES else "rounded",
    )


# Different whole numbers, as a share of the records, from which a column numbers them.
_UNIQUE = 0.9
_NAMES = re.compile(
    r"(^|[_\W]|(?<=[a-z])(?=[A-Z]))(?i:id|nr|no|number|zip|(zip|post)[_ ]?code|plz|ssn|mrn|uuid|email|phone)$"
)
# Share of the target that a column by itself may predict.
_LEAK = 0.98
# Most records that a column's tree is grown on.
_SAMPLE = 5000
# Share of the values at an end that bounds may leave out, and how many times as wide they must else be.
_TAIL, _WIDE = 0.005, 3.0


def identities(frame: pd.DataFrame, file: OwnFile) -> dict[str, str]:
    """Columns that number records or persons or name places, with the reason."""
    found = {}
    for name in file.features(frame):
        column = frame[name]
        if _NAMES.search(str(name)):
            found[name] = "its name is that of an identity or a place"
        elif is_number(column) and column.nunique() >= max(_UNIQUE * len(column), 2):
            values = numbers(column)
            if len(values) > 50 and (values[np.isfinite(values)] % 1 == 0).all():
                found[name] = "whole numbers that nearly all differ, as of an identity"
    return found


def leaks(frame: pd.DataFrame, file: OwnFile, names: list[str]) -> Iterator[str]:
    """Columns that predict the target by themselves: by a small tree, on records that it was not grown on."""
    drawn = frame[[file.target, *names]].dropna(subset=[file.target])
    drawn = drawn.sample(min(len(drawn), _SAMPLE), random_state=0)
    half = len(drawn) // 2
    classes = (file.task or inferred_task(drawn[file.target])) == "classification"
    y = coded(drawn[file.target])[0] if classes else numbers(drawn[file.target])
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    tree = kind(max_depth=6, min_samples_leaf=3, random_state=0)
    often = np.bincount(y[half:]).max() / len(y[half:]) if classes and half else 0.0
    for name in names if half else []:
        values = numbers(drawn[name]) if is_number(drawn[name]) else coded(drawn[name])[0]
        x = np.asarray(values, dtype=float)[:, None]
        if tree.fit(x[:half], y[:half]).score(x[half:], y[half:]) > max(_LEAK, (1 + often) / 2):
            yield name


def outlier(values: np.ndarray) -> tuple[float, float, int] | None:
    """(low, high, how many values lie beyond) of quantiles, where a few values make bounds much wider than these."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [_TAIL, 1 - _TAIL])
    if high <= low or known.max() - known.min() <= _WIDE * (high - low):
        return None
    return float(low), float(high), int(((known < low) | (known > high)).sum())


def restarting(frame: pd.DataFrame, file: OwnFile) -> str:
    """A question where most ids of persons occur in several silos, as where every centre counts from 1."""
    if file.person is None or file.silo is None:
        return ""
    held = frame.groupby(file.person)[file.silo].nunique()
    silos = frame[file.silo].nunique()
    if silos < 2 or (held > 1).mean() < 0.5:
        return ""
    return (
        f"person: {(held > 1).mean():.0%} of the ids in column {file.person!r} occur in several silos: do ids restart "
        "in each? If so, persons of different silos are taken for one: join both columns into one first"
    )
