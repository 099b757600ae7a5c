"""Run files read, merged with the experiments they name, and checked.

A run file (`config/default.yaml`) names experiments; each has a file of its own under `config/experiments/`, and
the run file may override any of its keys. Everything is checked before a job starts; `ConfigError` carries one line
that names file, key, value and what is allowed.
"""

import copy
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from silodp.config_models import Experiment, Run


class ConfigError(ValueError):
    """A configuration that cannot be run; its text is one line naming file, key, value and what is allowed."""


def project_root() -> Path:
    """The checkout this package lies in."""
    return Path(__file__).resolve().parents[2]


class _Loader(yaml.SafeLoader):
    """YAML in which a key that is given twice is an error; the standard loader keeps the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"key {twice!r} is given twice: must be given once", node.start_mark
            )
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict:
    """A YAML file that holds a mapping; ConfigError in one line for anything else, and for a key given twice."""
    if not path.is_file():
        raise ConfigError(f"{path}: file: missing: must be a readable YAML file")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: file: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: file: {type(content).__name__}: must be a mapping of keys to values")
    return content


# Sections that an override replaces as a whole.
_REPLACED = ("stepsizes", "model", "regulariser")


def _merge(base: dict, override: dict) -> dict:
    """`override` laid over `base`; mappings merge key by key, anything else replaces; None removes a key."""
    merged = copy.deepcopy(base)
    for key, value in override.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict) and key not in _REPLACED:
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _read_experiment(folder: Path, source: Path) -> dict:
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
    return _merge(found, own)


def _key(location: tuple) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _place(run_file: Path, source: Path, name: str, overrides: dict, key: str) -> str:
    """File and key to name in a message: the run file's where it sets the key, else the experiment's."""
    here = _within(overrides, tuple(key.split("[")[0].split(".")))
    return f"{run_file}: experiments.{name}.{key}" if here else f"{source}: {key}"


def _within(overrides: Any, location: tuple) -> bool:
    """Whether what stands at `location` comes from the run file, so that an error is named after the right file."""
    for part in location:
        if not isinstance(overrides, dict):
            break
        if part not in overrides:
            return False
        overrides = None if part in _REPLACED else overrides[part]
    return bool(location)


# Parts of Pydantic's error locations that name an alternative and are no keys.
_TAGS = {
    *("linear", "logistic", "softmax", "perceptron", "convnet", "hinge", "absolute", "sigmoid"),
    *("none", "l1", "l2", "ball"),
    *("constrained-float", "literal['1/n^2']", "literal['moments','theorem','calibrated']", "float"),
    *("paired_difference", "relative_improvement", "price_of_privacy", "delivered_epsilon", "bounds_verdicts"),
    *("exact_expression", "same_iterates", "equal_budget"),
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


def shown(value: object) -> str:
    """`value` as messages show it, at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Resolved:
    """A run file with its experiments merged, validated and checked against the registries.

    Attributes:
        path: the run file.
        run: the run file's own keys.
        experiments: name -> experiment, in the run file's order.
        left_out: experiments of the run file that ask for a GPU where there is none.
    """

    def __init__(self, path: Path, run: Run, experiments: dict[str, Experiment], left_out: Sequence[str] = ()):
        self.path, self.run, self.experiments, self.left_out = path, run, experiments, list(left_out)

    def dump(self) -> dict:
        """Plain data: what is written as the run's config.json."""
        own = self.run.model_dump(mode="json", exclude={"experiments"})
        return own | {"experiments": {name: e.model_dump(mode="json") for name, e in self.experiments.items()}}


def gpu() -> bool:
    """Whether jobs may count on a CUDA device: SILODP_CUDA (0 or 1) where it is set, else whether this machine has one.

    A cluster's login node has none while its other nodes do; there the variable says so.
    """
    said = os.environ.get("SILODP_CUDA", "")
    if said not in ("", "0", "1"):
        raise ConfigError(f"environment: SILODP_CUDA: {said!r}: must be 0 or 1")
    return said == "1" if said else Path("/dev/nvidiactl").exists()


def load(path: Path | str, root: Path | None = None) -> Resolved:
    """Read and check the run file at `path` and the experiments it names.

    An experiment with a `device: cuda` of its own is left out where there is no `gpu()`.

    Raises:
        ConfigError: one line naming file, key, value and what is allowed.
    """
    from silodp.config_check import check  # needs the models above

    path = Path(path)
    folder = (root or project_root()) / "config" / "experiments"
    raw = read_yaml(path)
    try:
        run = Run.model_validate(raw)
    except ValidationError as error:
        raise explain(error, path) from None
    experiments = {}
    for name, overrides in run.experiments.items():
        source = folder / f"{name}.yaml"
        known = sorted(file.stem for file in folder.glob("*.yaml"))
        if name not in known:
            raise ConfigError(f"{path}: experiments.{name}: no such experiment: must be one of {', '.join(known)}")
        merged = _merge(_read_experiment(folder, source), overrides or {})
        try:
            experiments[name] = Experiment.model_validate(merged)
        except ValidationError as error:
            here = _within(overrides, error.errors()[0]["loc"])
            raise explain(error, path if here else source, ("experiments", name) if here else ()) from None
        check(name, experiments[name], functools.partial(_place, path, source, name, overrides or {}))
    without = [name for name, one in experiments.items() if (one.device or "").startswith("cuda") and not gpu()]
    kept = {name: one for name, one in experiments.items() if name not in without}
    if not kept:
        raise ConfigError(f"{path}: experiments: {', '.join(without)}: must be run where there is a CUDA device")
    return Resolved(path, run, kept, without)
