"""Run files read, merged with the experiments they name, and checked.

A run file (`config/default.yaml`) names experiments; each has a file of its own under `config/experiments/`, and
the run file may override any of its keys. Everything is checked before a job starts; `ConfigError` carries one line
that names file, key, value and what is allowed.
"""

import copy
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from silodp.config.errors import ConfigError, project_root, shown
from silodp.config.experiment import Experiment
from silodp.config.reading import read_yaml
from silodp.config.run import Run

# Where a run's folder keeps its plug-ins.
PLUGIN_COPIES = "source/plugins"

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


def read_experiment(folder: Path, source: Path) -> dict:
    """The experiment's file, laid over the one that it `extends`."""
    own = read_yaml(source)
    base = own.pop("extends", None)
    if base is None:
        return own
    path = folder / f"{base}.yaml"
    if not path.is_file():
        raise ConfigError(f"{source}: extends: {shown(base)}: must name another experiment's file")
    found = read_yaml(path)
    if "extends" in found:
        raise ConfigError(f"{source}: extends: {shown(base)}: must be an experiment that extends none itself")
    return merge(found, own)


@functools.cache
def known_titles() -> Mapping[str, str]:
    """Experiment → title, of config/experiments."""
    folder = project_root() / "config" / "experiments"
    return {path.stem: str(read_experiment(folder, path).get("title") or path.stem) for path in folder.glob("*.yaml")}


def located(experiment: dict, run_file: Path) -> dict:
    """`experiment` with the path of its data file as seen from the working folder; it is given from the run file's.

    The record of a finished run (config.json) has it as seen from the working folder already.
    """
    dataset = experiment.get("dataset")
    if not isinstance(dataset, dict) or not isinstance(dataset.get("file"), str):
        return experiment
    found = Path(os.path.normpath(run_file.parent / dataset["file"]))
    if not found.is_file() and run_file.suffix == ".json":
        found = Path(dataset["file"])
    return experiment | {"dataset": dataset | {"file": os.fspath(found)}}


def _key(location: tuple) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text if len(text) <= 300 else text[:297] + "..."


# Parts of Pydantic's error locations that name an alternative and are no keys.
_TAGS = {
    *("linear", "logistic", "softmax", "perceptron", "convnet", "hinge", "absolute", "sigmoid"),
    *("none", "l1", "l2", "ball", "str", "owndata", "bool", "literal['none','bounds','silo','train']"),
    *("constrained-float", "literal['1/n^2']", "literal['moments','theorem','calibrated']", "float"),
    *("paired_difference", "relative_improvement", "price_of_privacy", "delivered_epsilon", "bounds_verdicts"),
    *("exact_expression", "same_iterates"),
}


def explain(error: ValidationError, path: Path, prefix: tuple = ()) -> ConfigError:
    """One line about the first key that is wrong, with all that it allows, and the number of other wrong keys."""
    wrong: dict[str, list] = {}
    for one in error.errors():
        key = _key(prefix + tuple(part for part in one["loc"] if str(part).lower() not in _TAGS))
        wrong.setdefault(key, []).append(one)
    (key, found), *others = wrong.items()
    if found[0]["type"] == "missing":
        value, allowed = "missing", "this key must be given"
    elif found[0]["type"] == "extra_forbidden":
        value, allowed = shown(found[0]["input"]), "unknown key; see docs/configuration.md for the keys allowed here"
    else:
        value = shown(found[0]["input"])
        allowed = ", or: ".join(dict.fromkeys(one["msg"].removeprefix("Value error, ") for one in found))
    tail = f" (and {len(others)} more)" if others else ""
    return ConfigError(f"{path}: {key}: {value}: {allowed}{tail}")


class Resolved:
    """A run file with its experiments merged, validated and checked against the registries.

    Attributes:
        path: the run file.
        run: the run file's own keys.
        experiments: name -> experiment, in the run file's order.
        left_out: experiments of the run file that ask for a GPU where there is none.
        plugins: files with algorithms and data sets of one's own.
    """

    def __init__(
        self, path: Path, run: Run, experiments: dict[str, Experiment], left_out: Sequence[str] = (),
        plugins: Sequence[Path] = (),
    ):  # fmt: skip
        self.path, self.run, self.experiments = path, run, experiments
        self.left_out, self.plugins = list(left_out), list(plugins)

    def dump(self) -> dict:
        """Plain data: what is written as the run's config.json, with copies of the plug-ins beside it."""
        own = self.run.model_dump(mode="json", exclude={"experiments"})
        own["plugins"] = [f"{PLUGIN_COPIES}/{file.name}" for file in self.plugins]
        return own | {"experiments": {name: e.model_dump(mode="json") for name, e in self.experiments.items()}}
