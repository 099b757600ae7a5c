"""A first run file for a user's own data: what the file holds, and safe defaults with what they mean beside them."""

import contextlib
import json
import math
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from silodp.datasets.base import Data
from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.guessing import MOST_CATEGORIES, Wishes, guess_schema
from silodp.datasets.own.parsing import cell_texts, parse_column, records_of
from silodp.datasets.own.schema import Column, Schema, TableError
from silodp.experiments.task import WEAK
from silodp.partition.experiment_data import limit_person_records

# Silos with fewer records are left out: δ = 1/n² of theirs would be worth little.
LEAST = 20
# Stands behind each line that is read off the records.
MARK = "# from the data"
# Stands behind each line that says how the file is written.
GUESSED = "# guessed"
# Of a silo's records that train.
SHARE = 0.8
# Different sizes up to which each silo's noise is made for its own.
FEW_SIZES = 12


@dataclass(frozen=True)
class Survey:
    """What a file holds.

    Attributes:
        path: of the file.
        schema: columns that cannot be features are ignored.
        dropped: records left out for a missing value.
        refused: column → why it is no feature.
        sizes: silo → records, of each that has enough of them, empty without a silo column.
        small: silos that have not.
        limit: records of a person that a run draws at most.
        warnings: what else was noticed.
    """

    path: Path
    schema: Schema
    data: Data
    dropped: int
    refused: dict[str, str]
    sizes: dict[str, int]
    small: int
    limit: int
    warnings: list[str]

    def text(self) -> str:
        data, schema = self.data, self.schema
        words = [name for name, column in schema.features.items() if column.type != "number"]
        binary = len(data.feature_names) - len(schema.numbers)
        lines = [f"{self.path}: {len(data.y)} records" + (f", {self.dropped} dropped" if self.dropped else "")]
        lines.append(f"  numbers: {', '.join(schema.numbers) or 'none'}")
        lines.append(f"  categories, as {binary} columns: {', '.join(words) or 'none'}")
        lines.append(f"  target: {schema.target}, {f'{data.classes} classes' if data.classes else 'regression'}")
        lines += [f"  ignored: {name}: {why}" for name, why in self.refused.items()]
        if schema.silo is not None:
            small = f"; {self.small} left out with fewer than {LEAST}" if self.small else ""
            sizes = self.sizes.values()
            lines.append(f"  silos: {len(sizes)} with {min(sizes)} to {max(sizes)} records{small}")
        if schema.person is not None:
            people = np.bincount(data.person)
            lines.append(f"  persons: {len(people)}, with at most {people.max()} records")
        cut = [f"bounds of {name!r}: {note}" for name, (_, note) in self.bounds().items() if note]
        return "\n".join(lines + [f"  note: {warning}" for warning in [*self.warnings, *cut]])

    def bounds(self) -> dict[str, tuple[tuple[float, float], str]]:
        """Bounds of every number, and of a regression's target, and what they leave out."""
        found = {}
        for name, values in _columns_of_numbers(self.data, self.schema):
            cut = outlier(values)
            inside = np.clip(values, *cut[:2]) if cut else values
            note = f"{cut[2]} of {len(values)} values lie beyond the quantiles .005 and .995 and are cut" if cut else ""
            found[name] = bounds_around(inside), note
        if self.data.classes is None:
            found[self.schema.target] = bounds_around(self.data.y), ""
        return found


def survey(path: Path, wishes: Wishes, limit: int = 20) -> Survey:
    """Read a file, leaving out columns that cannot be features; a person counts with at most `limit` records.

    TableError, ValueError: one line about what keeps the file from being used.
    """
    guess = guess_schema(path, wishes)
    frame, schema = records_of(path, guess.frame, guess.schema), guess.schema
    parsed: dict[str, np.ndarray] = {}
    for name in (schema.target, *schema.features):
        # `read_records` tells of a column that cannot be read, and of all others.
        with contextlib.suppress(TableError):
            parsed[name] = parse_column(frame, name, schema, path)
    numbered = {name: why for name, why in identities(parsed, schema) if name not in wishes.types}
    schema = replace(schema, columns={**schema.columns, **dict.fromkeys(numbered, Column("ignored"))})
    whole, dropped = read_records(path, schema, guess.frame, parsed)
    data, refused = limit_person_records(whole, limit), numbered | guess.refused
    warnings = guess.notes + [
        f"column {name!r} predicts the target by itself: if it is known only afterwards, put it under ignore"
        for name in leaks(parsed, schema)
    ]
    for name, values in _columns_of_numbers(whole, schema):
        if missing_marks(values[np.isfinite(values)]):
            warnings.append(
                f"column {name!r}: a number as -9 or 999 lies far from all others, as where it stands for a missing "
                f"one: --missing-word {name}=WORD"
            )
    if len(data.y) < len(whole.y):
        many = int((np.bincount(whole.person) > limit).sum())
        warnings.append(
            f"{many} persons have more than {limit} records: {limit} of each are drawn, the same in every run, and "
            f"{len(whole.y) - len(data.y)} records stay out (--person-limit)"
        )
    warnings += filter(None, [restarting(whole, schema)])
    if schema.person is None:
        others = [name for name, one in schema.columns.items() if one.type != "date" and name not in schema.roles]
        warnings += repeated_ids(frame[others], numbered | guess.refused)
    if schema.silo is not None and dropped:
        named = {*parse_column(frame, schema.silo, schema, path)} - {"", *whole.silo_names}
        warnings += [f"silo {name!r} has no record without a missing value, and is left out" for name in sorted(named)]
    counts = np.bincount(data.silo)
    sizes = {name: int(n) for name, n in zip(data.silo_names, counts, strict=False) if n >= LEAST}
    if schema.silo is not None and not sizes:
        raise ValueError(f"{path}: column {schema.silo!r}: no silo has {LEAST} records: must name larger groups")
    train = [math.floor(SHARE * size + 1e-9) for size in sizes.values()]
    if weak := [n for n in train if n * n**-2.0 > WEAK]:
        warnings.append(
            f"δ is weak in {len(weak)} of {len(sizes)} silos: with {min(weak)} training records δ = 1/n² = "
            f"{min(weak) ** -2.0:.2g} allows that a record is published as it is with probability {1 / min(weak):.2g}; "
            "`silos.least` leaves them out"
        )
    return Survey(path, schema, data, dropped, refused, sizes, len(counts) - len(sizes), limit, warnings)


def bounds_around(values: np.ndarray) -> tuple[float, float]:
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
    data = surveyed.data
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters["quoted"] = quoted
    template = environment.from_string(Path(__file__).with_suffix(".yaml.j2").read_text(encoding="utf-8"))
    return template.render(
        file=surveyed.path.name,
        schema=surveyed.schema,
        name=name,
        seed=secrets.randbits(62),
        path=os.path.relpath(surveyed.path, output.parent),
        classes=data.classes,
        schema_lines=schema_lines(surveyed.schema, surveyed.refused),
        mark=MARK,
        bounds=surveyed.bounds(),
        model=model_of(data.classes),
        silos=len(surveyed.sizes) or silos,
        least=LEAST,
        person_limit=surveyed.limit,
        share=SHARE,
        records="own" if len(set(surveyed.sizes.values())) <= FEW_SIZES else "rounded",
    )


def model_of(classes: int | None) -> str:
    return {None: "linear", 2: "logistic"}.get(classes, "softmax")


# Different whole numbers, as a share of the records, from which a column numbers them.
_UNIQUE = 0.9
_NAMES = re.compile(
    r"(^|[_\W]|(?<=[a-z])(?=[A-Z]))(?i:id|nr|no|number|zip|(zip|post)[_ ]?code|plz|ssn|mrn|uuid|email|phone)$"
)
_PERSONS = re.compile(
    r"(^|[_\W]|(?<=[a-z])(?=[A-Z]))(?i:(person|patient|subject|participant|proband)([ _-]?(id|nr|no|number))?)$"
)
# Share of the target that a column by itself may predict.
_LEAK = 0.98
# Most records that a column's tree is grown on.
_SAMPLE = 5000
# Numbers that stand for a missing one.
_MARKS = [float(sign + digit * many) for sign in ("", "-") for digit in "789" for many in range(1, 7)]
# Share of the values at an end that bounds may leave out, and how many times as wide they must else be.
_TAIL, _WIDE = 0.005, 3.0


def identities(parsed: Mapping[str, np.ndarray], schema: Schema) -> Iterator[tuple[str, str]]:
    """Of parsed columns those that number records or persons or name places, with the reason."""
    for name, column in schema.features.items():
        if _NAMES.search(name):
            yield name, "its name is that of an identity or a place"
        elif column.type == "number" and name in parsed:
            values = parsed[name]
            known = values[np.isfinite(values)]
            if len(values) > 50 and len(np.unique(known)) >= _UNIQUE * len(values) and (known % 1 == 0).all():
                yield name, "whole numbers that nearly all differ, as of an identity"


def repeated_ids(frame: pd.DataFrame, refused: Mapping[str, str]) -> Iterator[str]:
    """Columns of persons, of identities or of many words whose values stand several times, as those of persons do."""
    for name in filter(lambda name: name in refused or _PERSONS.search(name), frame):
        counts = cell_texts(frame[name]).value_counts().drop("", errors="ignore")
        least = 2 if _PERSONS.search(name) else MOST_CATEGORIES
        if len(counts) > least and counts.sum() > 1.2 * len(counts):
            yield f"column {name!r}: its values repeat: where they name persons, say --person {name}"


def leaks(parsed: Mapping[str, np.ndarray], schema: Schema) -> Iterator[str]:
    """Of parsed columns those that predict the target alone: by a small tree, on records that it was not grown on."""
    y, classes = parsed[schema.target], bool(schema.classes)
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(y >= 0 if classes else np.isfinite(y)))[:_SAMPLE]
    y = y[drawn]
    half = len(drawn) // 2
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    tree = kind(max_depth=6, min_samples_leaf=3, random_state=0)
    often = np.bincount(y[half:]).max() / len(y[half:]) if classes and half else 0.0
    for name in schema.features if half else ():
        x = parsed[name][drawn].astype(float)[:, None]
        if tree.fit(x[:half], y[:half]).score(x[half:], y[half:]) > max(_LEAK, (1 + often) / 2):
            yield name


def _columns_of_numbers(data: Data, schema: Schema) -> Iterator[tuple[str, np.ndarray]]:
    return ((name, data.x[:, data.feature_names.index(name)]) for name in schema.numbers)


def missing_marks(values: np.ndarray) -> list[str]:
    """Numbers as -9, 888 or 999 that stand twice or more, far from all others: farther than these from each other."""
    numbers, counts = np.unique(values, return_counts=True)
    marks = np.isin(numbers, _MARKS) & (counts > 1)
    others = numbers[~marks]
    if len(others) < 3:
        return []
    far = 3 * np.diff(others).max()
    return [f"{number:g}" for number in numbers[marks] if number < others[0] - far or number > others[-1] + far]


def outlier(values: np.ndarray) -> tuple[float, float, int] | None:
    """(low, high, how many values lie beyond) of quantiles, where a few values make bounds much wider than these."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [_TAIL, 1 - _TAIL])
    if high <= low or known.max() - known.min() <= _WIDE * (high - low):
        return None
    return float(low), float(high), int(((known < low) | (known > high)).sum())


def restarting(data: Data, schema: Schema) -> str:
    """A question where most ids of persons occur in several silos, as where every centre counts from 1."""
    if not len(data.person) or len(data.silo_names) < 2:
        return ""
    pairs = np.unique(np.stack([data.person, data.silo]), axis=1)[0]
    share = float((np.bincount(pairs) > 1).mean())
    if share < 0.5:
        return ""
    return (
        f"person: {share:.0%} of the ids in column {schema.person!r} occur in several silos: do ids restart "
        "in each? If so, persons of different silos are taken for one: join both columns into one first"
    )


def quoted(value: object) -> str:
    """As YAML reads it: as JSON writes it."""
    return json.dumps(value, ensure_ascii=False)


def schema_lines(schema: Schema, refused: Mapping[str, str]) -> list[str]:
    """The lines `form:` and `columns:` of a run file, with a mark behind what was guessed or read off the records."""
    form = ", ".join(
        f"{key}: {quoted(value)}" for key, value in vars(schema.form).items() if value not in (False, None)
    )
    return [
        f"      form: {{{form}}}   {GUESSED}",
        "      columns:",
        *(column_line(schema, name, refused.get(name, "")) for name in schema.columns),
    ]


def column_line(schema: Schema, name: str, why: str = "") -> str:
    column = schema.columns[name]
    more = {key: quoted(list(getattr(column, key))) for key in ("values", "missing_words") if getattr(column, key)}
    text = ", ".join([f"type: {column.type}", *(f"{key}: {value}" for key, value in more.items())])
    public = not column.values or [value.casefold() for value in column.values] == ["false", "true"]
    mark = f"   {GUESSED}" if public else f"   {MARK}: replace by what is known"
    mark = "" if name in (schema.silo, schema.person) else mark
    return f"        {quoted(name)}: {f'{{{text}}}' if more else column.type}{mark}{why and f': {why}'}"
