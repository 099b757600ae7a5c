"""A user's algorithms and data sets, without an edit of the package: plug-in files.

A plug-in is one Python file. Each class in it that is an `Algorithm` with a `name`, and its `DATASET`, are entered in
the registries. A run file names its plug-ins, the command line others (`--plugin`), which jobs find in a variable of
the environment.

A plug-in is trusted code: it runs in the process that loads the run file, which waits while the plug-in sleeps and
ends when the plug-in ends it.
"""

import filecmp
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.config.errors import ConfigError, show_value
from silodp.datasets import DATASETS, REGISTERED, Dataset

# Paths of plug-ins of the command line, for the jobs of a rebuild too.
VARIABLE = "SILODP_PLUGINS"
# A name becomes a part of paths.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")


class Plugin(NamedTuple):
    """One registry entry that a plug-in brings.

    Attributes:
        registry: "silodp.algorithms" or "silodp.datasets", as the digests of jobs call them.
        place: its definition, "module:name".
        root: the plug-in's file.
        digest: SHA-256 of the file.
    """

    registry: str
    name: str
    place: str
    root: Path
    digest: str


_ACTIVE: dict[tuple[str, str], Plugin] = {}


def in_use() -> frozenset[Plugin]:
    return frozenset(_ACTIVE.values())


def set_command_line(paths: Iterable[str]) -> None:
    """From now on these files are plug-ins of this process and of those it starts, beside those of run files."""
    os.environ[VARIABLE] = os.pathsep.join(os.path.abspath(path) for path in paths)


def command_line_files() -> list[Path]:
    return [Path(file) for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file]


def activate(files: Iterable[str] = (), run_file: Path = Path()) -> tuple[Path, ...]:
    """Enter plug-ins in the registries: those of a run file, and those of the command line.

    `files` are seen from the run file's folder. Returns the plug-in files, each once; ConfigError where a file is
    missing, cannot be imported or brings nothing, or a name is taken.
    """
    named = [
        ((run_file.parent / file).resolve(), f"{run_file}: plugins[{number}]: {show_value(file)}")
        for number, file in enumerate(files)
    ]
    named += [(file.resolve(), f"command line: --plugin: {show_value(str(file))}") for file in command_line_files()]
    entered: dict[tuple[str, str], Plugin] = {}
    paths: dict[str, Path] = {}
    for path, where in named:
        if path.name not in paths:
            paths[path.name] = path
            _enter(_of_file(path, where), where, entered)
        # A copy beside a run's results is the same plug-in.
        elif path != paths[path.name] and not (path.is_file() and filecmp.cmp(path, paths[path.name], shallow=False)):
            raise ConfigError(f"{where}: {paths[path.name]} is used too: must have a file name of its own")
    return tuple(paths.values())


def _entries(registry: str) -> dict[str, Any]:
    return ALGORITHMS.own if registry == "silodp.algorithms" else REGISTERED


def _enter(brought: Iterable[tuple[Plugin, object]], where: str, entered: dict[tuple[str, str], Plugin]) -> None:
    """Enter what a plug-in brings; a name must be neither the package's nor another plug-in's of this run."""
    brought = list(brought)
    for plugin, value in brought:
        key = (plugin.registry, plugin.name)
        kind = "algorithm" if plugin.registry == "silodp.algorithms" else "data set"
        if not _NAME.fullmatch(plugin.name):
            raise ConfigError(
                f"{where}: {kind} {show_value(plugin.name)}: must be named by small letters, digits and _"
            )
        taken = plugin.name in (ALGORITHMS if kind == "algorithm" else DATASETS) and key not in _ACTIVE
        if taken or key in entered:
            other = entered[key].root if key in entered else "the package"
            raise ConfigError(f"{where}: {kind} {plugin.name}: {other} has one: must have a name of its own")
        entered[key] = _ACTIVE[key] = plugin
        _entries(plugin.registry)[plugin.name] = value
    if not brought:
        allowed = "must define a class derived from Algorithm with a name, or DATASET"
        raise ConfigError(f"{where}: holds no algorithm and no data set: {allowed}")


def _of_file(path: Path, where: str) -> Iterator[tuple[Plugin, object]]:
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ConfigError(f"{where}: must be a Python file with the name of a module, as in my_algorithm.py")
    if not path.is_file():
        raise ConfigError(f"{where}: no such file: must be a Python file, its path as seen from the run file's folder")
    module = _imported(path, where)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for attribute, value in vars(module).items():
        if attribute == "DATASET" or (_is_algorithm(value) and value.__module__ == module.__name__):
            yield Plugin(*_key(value, f"{where}: {attribute}"), f"{module.__name__}:{attribute}", path, digest), value


def _is_algorithm(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Algorithm) and "name" in vars(value)


def _key(value: object, where: str) -> tuple[str, str]:
    """Registry and name of an algorithm's class or a data set."""
    if _is_algorithm(value):
        return "silodp.algorithms", str(vars(value)["name"])
    if isinstance(value, Dataset) and value.embedded:
        return "silodp.datasets", value.name
    allowed = "must be a Dataset with embedded=True, as nothing is fetched for it"
    raise ConfigError(f"{where}: {allowed}, or a class derived from Algorithm with a name")


def _imported(path: Path, where: str) -> ModuleType:
    """The file as a module, made once for what it holds; a name of its own tells it from others."""
    text, module = path.read_bytes(), ModuleType(f"silodp_plugin_{path.stem}")
    known = sys.modules.get(module.__name__)
    if known is not None and getattr(known, "__source__", None) == (path, text):
        return known
    module.__dict__.update(__file__=str(path), __source__=(path, text))
    # Dataclasses look their module up while it is made.
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, path, "exec"), vars(module))
    except BaseException as error:
        del sys.modules[module.__name__]
        if not isinstance(error, Exception | SystemExit):
            raise
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise ConfigError(f"{where}: {reason}: must be Python that can be imported") from error
    return module
