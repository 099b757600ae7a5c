"""A first run file for a file of one's own: what is found in it, and safe defaults with what they mean beside them."""

import math
import os
import re
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from silodp.datasets.base import Data
from silodp.datasets.own_file import WHY_NOT, OwnFile, read_own
from silodp.datasets.tabular import Table

# Silos with fewer records are left out: δ = 1/n² of theirs would be worth little.
LEAST = 20
# Records of one person above which nothing is stated.
PERSON_LIMIT = 20
# What YAML takes for something else than a word.
_WORDS = {"true", "false", "null", "nan", "yes", "no", "on", "off", "y", "n"}
# Different sizes up to which each silo's noise is made for its own.
FEW_SIZES = 12


@dataclass(frozen=True)
class Found:
    """What is in a file.

    Attributes:
        file: what was said of it, columns that cannot be features among those ignored.
        data: its records.
        numbers: names of the features that are numbers.
        dropped: records left out for a missing value.
        refused: column → why it is no feature.
        sizes: records of each silo that has enough of them, empty without a silo column.
        small: silos that have not.
    """

    file: OwnFile
    data: Data
    numbers: tuple[str, ...]
    dropped: int
    refused: dict[str, str]
    sizes: list[int]
    small: int

    def text(self) -> str:
        """What was found, a line each; no cell of the file is in it."""
        data = self.data
        categories = dict.fromkeys(column for column, category in data.sources if category)
        lines = [f"{self.file.path}: {len(data.y)} records" + (f", {self.dropped} dropped" if self.dropped else "")]
        lines.append(f"  numbers: {', '.join(self.numbers) or 'none'}")
        lines.append(
            f"  categories, as {len(data.feature_names) - len(self.numbers)} columns: {', '.join(categories) or 'none'}"
        )
        what = "regression" if data.classes is None else f"{data.classes} classes"
        lines.append(f"  target: {self.file.target}, {what}")
        lines += [f"  ignored: {name}: {why}" for name, why in self.refused.items()]
        if self.file.silo is not None:
            small = f"; {self.small} left out with fewer than {LEAST}" if self.small else ""
            lines.append(f"  silos: {len(self.sizes)} with {min(self.sizes)} to {max(self.sizes)} records{small}")
        if self.file.person is not None:
            people = np.bincount(data.person)
            lines.append(f"  persons: {len(people)}, with at most {people.max()} records")
        return "\n".join(lines)


def survey(file: OwnFile) -> Found:
    """Read a file, leaving out columns that cannot be features.

    Raises:
        TableError, ValueError: one line about what keeps it from being used.
    """
    table = Table(file.path)
    kinds = {name: table.kind(name) for name in file.features(table)}
    refused = {name: WHY_NOT[kind] for name, kind in kinds.items() if kind in WHY_NOT}
    file = replace(file, ignore=(*file.ignore, *refused))
    data, numbers, dropped = read_own(file)
    counts = np.bincount(data.silo) if len(data.silo) else np.zeros(0, dtype=np.int64)
    sizes = [int(one) for one in counts if one >= LEAST]
    if file.silo is not None and not sizes:
        raise ValueError(f"{file.path}: column {file.silo!r}: no silo has {LEAST} records: must name larger groups")
    if len(data.person) and (most := int(np.bincount(data.person).max())) > PERSON_LIMIT:
        raise ValueError(
            f"{file.path}: column {file.person!r}: a person has {most} records: must be at most {PERSON_LIMIT}, as the "
            "guarantee for a person falls with their number"
        )
    return Found(file, data, numbers, dropped, refused, sizes, len(counts) - len(sizes))


def outwards(values: np.ndarray) -> tuple[float, float]:
    """Bounds around values (n,), rounded outwards to steps, 5 to 50 a range, so that neither is one of them."""
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
    """A run's name from a file's."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", path.name.split(".")[0]).strip("_-") or "mine"


def run_file(found: Found, name: str, output: Path) -> str:
    """The text of the run file `output`, whose one experiment is called `name`."""
    data, file = found.data, found.file
    model = "linear" if data.classes is None else "logistic" if data.classes == 2 else "softmax"
    bounds = {one: outwards(data.x[:, data.feature_names.index(one)]) for one in found.numbers}
    if data.classes is None:
        bounds[file.target] = outwards(data.y)
    silos = len(found.sizes) or 5
    sized = "own" if len(set(found.sizes)) <= FEW_SIZES else "rounded"
    columns = [("target", file.target), ("silo", file.silo), ("person", file.person)]
    said = [f"      {key}: {quoted(value)}" for key, value in columns if value is not None]
    said += [f"      person_limit: {PERSON_LIMIT}      # records of one person; above it the run is refused"] * (
        file.person is not None
    )
    said += [f"      ignore: [{', '.join(quoted(one) for one in file.ignore)}]"] * bool(file.ignore)
    if file.missing != "refuse":
        said.append(
            f"      missing: {file.missing}          # refuse, drop the record, or mean of the training records"
        )
    lines = [f"        {quoted(one)}: [{low:.12g}, {high:.12g}]" for one, (low, high) in bounds.items()]
    dataset = "\n".join(said)
    steps = "\n".join(lines) if lines else "        {}"
    by = (
        f"{{train_share: 0.8, least: {LEAST}}}      # silos with fewer records are left out"
        if file.silo is not None
        else f"{{scheme: iid, count: {silos}, train_share: 0.8}}   # or dirichlet with alpha, by_class, sorted_target"
    )
    prepared = (
        f"""    preprocess:
      standardise: bounds        # to [-1, 1] by these; others: none, and silo or train, which are not private
      bounds_from: file          # rounded outwards from the file: write what is known beforehand, then: knowledge
      bounds:
{steps}
      constant_column: {"false" if model == "softmax" else "true"}     # the intercept"""
        if lines
        else f"    preprocess: {{standardise: none, constant_column: {'false' if model == 'softmax' else 'true'}}}"
    )
    return f"""# Made by `silodp init` for {file.path.name}; keys: docs/configuration.md, the way on: docs/owndata.md.
run: {name}
# Keep it where the data are: whoever knows the seed can take the noise away.
seed: {secrets.randbits(62)}
experiments:
  {name}:
    title: {quoted(f"{name}, {file.target}")}
    dataset:
      file: {quoted(os.path.relpath(file.path, output.parent))}   # from this run file; its records stay there
{dataset}
    label: {"target" if data.classes is None else "class"}
    silos: {by}
{prepared}
    model: {{name: {model}}}
    settings:
      - {{M: {silos}, R: 25}}      # silos that take part in a round, rounds
    epsilons: [0.5, 1, 2, 4, 8]   # noise is the least that keeps each, in every silo
    delta: 1/n^2                  # of each silo's own n, below 1/n^1.1
    batch_share: 0.1              # a tenth of a silo's records in every round
    trials: 5                     # splits into training and test records
    stepsizes: {{low: -4, high: 3, points: 8}}   # e^low to e^high
    clips: [0.25, 1, 4]
    algorithms:
      minibatch_sgd: {{private: both}}   # beside its form without noise
      silo_only: {{private: both}}       # each silo by itself: does federating help?
    readings: {{records: {sized}, noise: calibrated}}
"""


def quoted(text: str) -> str:
    """A YAML string, quoted where it has to be."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", text) and text.lower() not in _WORDS
    return text if plain else "'" + text.replace("'", "''") + "'"
