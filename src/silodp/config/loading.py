"""Run files read, merged with the experiments they name, and checked.

A run file (`config/default.yaml`) names experiments; each has a file of its own under `config/experiments/`, and
the run file may override any of its keys. Everything is checked before a job starts; `ConfigError` carries one line
that names file, key, value and what is allowed.
"""

import copy
import functools
import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from silodp.config.errors import ConfigError, project_root, show_value, suggest_name
from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.config.types import Strict
from silodp.config.yaml_file import read_yaml, without_format

# Where a run's folder keeps its plug-ins.
PLUGIN_COPIES = "source/plugins"

# Key of an axis → letter before a point's value, in hundredths, at the end of its name.
AXES = {"silos.mixed": "p", "silos.alpha": "a"}
# Sections that an override replaces as a whole.
REPLACED = ("stepsizes", "model", "regulariser")


def merge(base: dict, override: dict) -> dict:
    """`override` laid over `base`; mappings merge key by key, anything else replaces; None removes a key."""
    merged = copy.deepcopy(base)
    for key, value in override.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict) and key not in REPLACED:
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def points_in_file(path: Path) -> dict[str, dict]:
    """Name → keys, of the experiments in a file: of the file's name, or of each point of the axis under `vary`."""
    keys = read_yaml(path)
    axis = keys.get("vary")
    if not isinstance(axis, dict):
        return {path.stem: keys}
    try:
        ((key, values),) = axis.items()
        section, inner = key.split(".")
        return {
            f"{path.stem}_{AXES[key]}{100 * value:g}": keys
            | {"vary": key, section: keys[section] | {inner: value}}
            | {word: keys[word].format(value) for word in ("title", "short") if word in keys}
            for value in values
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        allowed = f"must be a key ({', '.join(AXES)}) with a list of numbers, and title and short have {{}} for them"
        raise ConfigError(f"{path}: vary: {show_value(axis)}: {allowed}") from None


def find_experiment(folder: Path, name: str) -> tuple[Path, dict] | None:
    """The file and the keys of an experiment; None where there is none."""
    for path in (folder / f"{stem}.yaml" for stem in (name, name.rpartition("_")[0])):
        if path.is_file() and name in (points := points_in_file(path)):
            return path, points[name]
    return None


def layers_of(folder: Path, source: Path, keys: dict) -> list[tuple[Path, dict]]:
    """The experiment's file with its keys and, below it, those of the experiment that it `extends`."""
    keys = dict(keys)
    base = keys.pop("extends", None)
    if base is None:
        return [(source, keys)]
    found = find_experiment(folder, str(base))
    if found is None:
        raise ConfigError(f"{source}: extends: {show_value(base)}: must name another experiment's file")
    if "extends" in found[1]:
        raise ConfigError(f"{source}: extends: {show_value(base)}: must be an experiment that extends none itself")
    return [(source, keys), found]


def file_and_part(path: Path) -> tuple[Path, str]:
    """A path's run file and part, as leaderboard.yaml and mnist of leaderboard-mnist.yaml; "" where it is there."""
    pieces = path.stem.split("-")
    for place in range(len(pieces) - 1, 0, -1):
        file = path.with_name("-".join(pieces[:place]) + path.suffix)
        if not path.is_file() and file.is_file():
            return file, "-".join(pieces[place:])
    return path, ""


def read_run(path: Path) -> Run:
    """The keys of a run file, or of a part: the file's with the part's laid over them, and experiments of its own.

    ConfigError: no such file or part, or a key that is wrong.
    """
    file, part = file_and_part(path)
    try:
        keys = read_yaml(file)
        if file.suffix == ".json":
            # Published records name limits, which decided no result.
            keys = {key: value for key, value in without_format(keys, file).items() if key != "limits"}
        run = Run.model_validate(keys)
        if not part:
            return run
        if part not in run.parts:
            allowed = f"must be a run file, or name a part of {file}: {', '.join(run.parts) or 'it has none'}"
            raise ConfigError(f"{path}: file: missing: {allowed}{suggest_name(part, run.parts)}")
        above = {key: value for key, value in keys.items() if key not in ("parts", "experiments")}
        return Run.model_validate(merge(above, run.parts[part]) | {"run": f"{run.run}-{part}"})
    except ValidationError as error:
        raise explain(error, in_file(file)) from None


def merge_layers(layers: Sequence[tuple[Path, dict]]) -> dict:
    return functools.reduce(lambda below, layer: merge(below, layer[1]), reversed(layers), {})


def holder(layers: Sequence[tuple[Path, dict]], location: Sequence[str | int]) -> Path | None:
    """The file that holds the value at `location`, or of a missing value its section; None where no file does."""
    path, deepest = None, 0
    for file, keys in layers:
        value, depth = keys, 0
        while depth < len(location) and location[depth] in value:
            value = value[location[depth]]
            depth += 1
            if location[depth - 1] in REPLACED or depth == len(location) or not isinstance(value, dict):
                return file
        if depth > deepest:
            path, deepest = file, depth
    return path


@functools.cache
def known_titles() -> Mapping[str, str]:
    """Experiment → title, of config/experiments."""
    return {name: str(keys.get("title") or name) for name, keys in known_experiments().items()}


@functools.cache
def known_shorts() -> Mapping[str, str]:
    """Experiment → what figures call it, of config/experiments; its title where no `short` stands there."""
    return {name: str(keys.get("short") or known_titles()[name]) for name, keys in known_experiments().items()}


@functools.cache
def known_experiments() -> Mapping[str, Mapping]:
    """Experiment → its keys, of config/experiments."""
    folder = project_root() / "config" / "experiments"
    points = ((path, *point) for path in sorted(folder.glob("*.yaml")) for point in points_in_file(path).items())
    return {name: merge_layers(layers_of(folder, path, keys)) for path, name, keys in points}


def located(experiment: dict, run_file: Path) -> dict:
    """`experiment` with the path of its data file as seen from the working folder; it is given from the run file's.

    The record of a finished run (config.json) has it as seen from the working folder already. Columns are named as
    their file's header is read.
    """
    dataset = experiment.get("dataset")
    if not isinstance(dataset, dict) or not isinstance(dataset.get("file"), str):
        return experiment
    path = Path(os.path.normpath(run_file.parent / dataset["file"]))
    if not path.is_file() and run_file.suffix == ".json":
        path = Path(dataset["file"])
    roles = {role: composed(dataset.get(role)) for role in {"target", "silo", "person"} & dataset.keys()}
    return composed(experiment | {"dataset": dataset | roles | {"file": os.fspath(path)}})


def composed(keys: Any) -> Any:
    """A name, or a section's keys and theirs, with accents as one letter each, as a header is read."""
    if isinstance(keys, dict):
        return {composed(key): composed(value) if isinstance(value, dict) else value for key, value in keys.items()}
    return unicodedata.normalize("NFC", keys) if isinstance(keys, str) else keys


def key_of(location: Sequence[str | int]) -> str:
    """A location as messages show it, as in algorithms.local_sgd.clips[0]."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text if len(text) <= 300 else text[:297] + "..."


# Parts of Pydantic's error locations that name an alternative and are no keys.
_TAGS = {
    *("linear", "logistic", "softmax", "perceptron", "convnet", "sigmoid", "hinge", "absolute"),
    *("str", "owndata", "bool", "int", "float", "constrained-float", "list[float]", "literal['1/n^2']"),
    *("literal['none','bounds','silo','train']", "literal['moments','theorem','calibrated']"),
    *("literal['','silos.mixed','silos.alpha']", "dict[literal['silos.mixed','silos.alpha'],list[float]]"),
    *("decided", "delivered_epsilon", "bounds_verdicts", "exact_expression", "formula_values", "same_iterates"),
}


# Pydantic's words, and what stands for them.
_SAID = {
    "^Value error, ": "",
    "^[A-Z][a-z]+ should": "must",
    r"( or)? instance of \w+": "",
    "^Input tag .* expected tags: ": "must have a name that is one of ",
    r"^Unable to extract tag using discriminator '(\w+)'": r"must have a \1 that silodp config reference lists",
    "a valid dictionary( or object to extract fields from)?": "a mapping of keys to values",
    r" after validation, not \d+$": "",
}


def keys_of(error: ErrorDetails) -> tuple[str | int, ...]:
    """Where an error is, as keys and places in lists."""
    return tuple(part for part in error["loc"] if part not in _TAGS)


def in_file(path: Path) -> Callable[[tuple], str]:
    return lambda location: f"{path}: {key_of(location)}"


def explain(error: ValidationError, place: Callable[[tuple], str]) -> ConfigError:
    """One line about the first key that is wrong, with all that it allows, and the number of other wrong keys."""
    wrong: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors():
        wrong.setdefault(place(keys_of(detail)), []).append(detail)
    # A slip of the pen in a key is often why another one is missing.
    (where, details), *others = sorted(wrong.items(), key=lambda item: item[1][0]["type"] != "extra_forbidden")
    value = show_value(details[0]["input"])
    allowed = ", or: ".join(dict.fromkeys(_allowed(detail["msg"]) for detail in details))
    if details[0]["type"] == "missing":
        value, allowed = "missing", "this key must be given"
    elif details[0]["type"] == "extra_forbidden":
        allowed = "unknown key; silodp config reference lists the keys"
        word = keys_of(details[0])[-1]
        allowed += suggest_name(word, _keys_within(error.title) - {word})
    tail = f" (and {len(others)} more)" if others else ""
    return ConfigError(f"{where}: {value}: {allowed}{tail}")


def _allowed(said: str) -> str:
    """What Pydantic says, in the words of a run file."""
    for words, ours in _SAID.items():
        said = re.sub(words, ours, said)
    return said


def _keys_within(name: str) -> set[str]:
    """The keys of the section called `name` and of the sections in it, whatever other sections the process knows."""
    schema = next(model for model in _sections() if model.__name__ == name).model_json_schema()
    return {key for section in (schema, *schema.get("$defs", {}).values()) for key in section.get("properties", {})}


def _sections(base: type[BaseModel] = Strict) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _sections(model)


@dataclass(frozen=True)
class Resolved:
    """A run file with its experiments merged, validated and checked against the registries.

    Attributes:
        path: the run file.
        run: the run file's own keys.
        experiments: name -> experiment, in the run file's order.
        left_out: experiments of the run file that ask for a GPU where there is none.
        plugins: files with algorithms and data sets of one's own.
    """

    path: Path
    run: Run
    experiments: dict[str, Experiment]
    left_out: Sequence[str] = ()
    plugins: Sequence[Path] = ()

    def dump(self) -> dict:
        """Plain data: what is written as the run's config.json, with copies of the plug-ins beside it."""
        keys = self.run.model_dump(mode="json", exclude={"experiments", "parts"})
        keys["plugins"] = [f"{PLUGIN_COPIES}/{file.name}" for file in self.plugins]
        return keys | {"experiments": {name: e.model_dump(mode="json") for name, e in self.experiments.items()}}
