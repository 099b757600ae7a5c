"""Algorithms and data sets of one's own, without an edit of the package: plug-in files, and entry points.

A plug-in is one Python file. Each class in it that is an `Algorithm` with a `name`, and its `DATASET`, are entered in
the registries. A run file names its plug-ins, the command line others (`--plugin`), which jobs find in a variable of
the environment. An installed package offers the same as entry points `silodp.algorithms` and `silodp.datasets`.
"""

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, NoReturn

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.config.errors import ConfigError, shown
from silodp.datasets import DATASETS, REGISTERED, Dataset

# Paths of plug-ins of the command line, for the jobs of a rebuild too.
VARIABLE = "SILODP_PLUGINS"
# A name becomes a part of paths.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")


class Own(NamedTuple):
    """What a plug-in brings.

    Attributes:
        registry: "silodp.algorithms" or "silodp.datasets", as the digests of jobs call them.
        name: its key there.
        place: its definition, "module:name".
        root: the plug-in's file, or the folder of the package that the first word of the module names.
        digest: SHA-256 of the file; empty for a package.
    """

    registry: str
    name: str
    place: str
    root: Path
    digest: str = ""


_IN_USE: dict[tuple[str, str], Own] = {}


def in_use() -> frozenset[Own]:
    """All that plug-ins have brought to this process."""
    return frozenset(_IN_USE.values())


def own(registry: str, name: str) -> bool:
    """Whether an entry of a registry is a plug-in's."""
    return (registry, name) in _IN_USE


def forget() -> None:
    """Take every plug-in out of the registries again."""
    for registry, name in list(_IN_USE):
        _remove(registry, name)


def named(paths: Iterable[str]) -> None:
    """From now on these files are plug-ins of this process and of those it starts, beside those of run files."""
    os.environ[VARIABLE] = os.pathsep.join(os.path.abspath(path) for path in paths)


def use(files: Iterable[str] = (), run_file: Path | None = None) -> tuple[Path, ...]:
    """Enter plug-ins in the registries: those of a run file, of the command line, and of installed packages.

    Args:
        files: paths as the run file has them, seen from its folder.
        run_file: the run file.

    Returns:
        The plug-in files, each once.

    Raises:
        ConfigError: a file is missing, cannot be imported or brings nothing, or a name is taken.
    """
    asked: dict[Path, str] = {}
    for number, file in enumerate(files):
        assert run_file is not None
        asked.setdefault((run_file.parent / file).resolve(), f"{run_file}: plugins[{number}]: {shown(file)}")
    for file in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        asked.setdefault(Path(file).resolve(), f"command line: --plugin: {shown(file)}")
    found: dict[tuple[str, str], Own] = {}
    taken: dict[str, Path] = {}
    for path, where in asked.items():
        other = taken.setdefault(path.name, path)
        if other == path:
            _enter(_of_file(path, where), where, found)
        elif not path.is_file() or path.read_bytes() != other.read_bytes():
            raise ConfigError(f"{where}: {other} is used too: must have a file name of its own")
    for group in ("silodp.algorithms", "silodp.datasets"):
        for point in entry_points(group=group):
            where = f"entry point {group}: {point.name} = {point.value}"
            _enter([_of_package(point, where)], where, found)
    return tuple(taken.values())


def brought_by(path: Path) -> list[Own]:
    """What a plug-in file brings, which is in use."""
    return [one for one in _IN_USE.values() if one.root == path.resolve()]


def _enter(brought: Iterable[tuple[Own, object]], where: str, found: dict[tuple[str, str], Own]) -> None:
    """Enter what a plug-in brings; a name must be neither the package's nor another plug-in's of this run."""
    count = 0
    for one, value in brought:
        key, count = (one.registry, one.name), count + 1
        kind = "algorithm" if one.registry == "silodp.algorithms" else "data set"
        if not _NAME.fullmatch(one.name):
            raise ConfigError(f"{where}: {kind} {shown(one.name)}: must be named by small letters, digits and _")
        taken = one.name in (ALGORITHMS if kind == "algorithm" else DATASETS) and key not in _IN_USE
        if taken or key in found:
            other = found[key].root if key in found else "the package"
            raise ConfigError(f"{where}: {kind} {one.name}: {other} has one: must have a name of its own")
        found[key] = _IN_USE[key] = one
        (ALGORITHMS.own if kind == "algorithm" else REGISTERED)[one.name] = value  # type: ignore[assignment]
    if not count:
        allowed = "must define a class derived from Algorithm with a name, or DATASET"
        raise ConfigError(f"{where}: holds no algorithm and no data set: {allowed}")


def _remove(registry: str, name: str) -> None:
    del _IN_USE[registry, name]
    (ALGORITHMS.own if registry == "silodp.algorithms" else REGISTERED).pop(name)


def _of_file(path: Path, where: str) -> Iterator[tuple[Own, object]]:
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ConfigError(f"{where}: must be a Python file with the name of a module, as in my_algorithm.py")
    if not path.is_file():
        raise ConfigError(f"{where}: no such file: must be a Python file, its path as seen from the run file's folder")
    module, digest = _imported(path, where), hashlib.sha256(path.read_bytes()).hexdigest()
    for attribute, value in vars(module).items():
        if isinstance(value, type) and value.__module__ == module.__name__ and _is_algorithm(value):
            place = f"{module.__name__}:{attribute}"
            yield Own("silodp.algorithms", str(vars(value)["name"]), place, path, digest), value
    dataset = getattr(module, "DATASET", None)
    if dataset is not None:
        yield Own("silodp.datasets", _checked(dataset, where).name, f"{module.__name__}:DATASET", path, digest), dataset


def _is_algorithm(value: type) -> bool:
    return issubclass(value, Algorithm) and "name" in vars(value)


def _checked(dataset: object, where: str) -> Dataset:
    if not isinstance(dataset, Dataset) or not dataset.embedded:
        raise ConfigError(f"{where}: DATASET: must be a Dataset with embedded=True, as nothing is fetched for it")
    return dataset


class _Loader(SourceFileLoader):
    """Reads the source itself: an edit within a second would leave Python's cache of bytecode as it was."""

    def path_stats(self, path: str) -> NoReturn:
        raise OSError


def _imported(path: Path, where: str) -> ModuleType:
    """The file as a module, made once for what it holds; it is told from others by a name of its own."""
    name = f"silodp_plugin_{path.stem}"
    text = path.read_bytes()
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__source__", None) == (path, text):
        return known
    loader = _Loader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))  # type: ignore[arg-type]
    # Dataclasses look their module up while it is made.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"{where}: {_reason(error)}: must be a file that Python imports") from error
    module.__source__ = (path, text)  # type: ignore[attr-defined]
    return module


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _of_package(point: EntryPoint, where: str) -> tuple[Own, object]:
    try:
        value = point.load()
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{where}: {_reason(error)}: must be importable") from error
    if point.group == "silodp.datasets":
        name = _checked(value, where).name
    elif isinstance(value, type) and _is_algorithm(value):
        name = vars(value)["name"]
    else:
        raise ConfigError(f"{where}: must be a class derived from Algorithm with a name")
    if name != point.name:
        raise ConfigError(f"{where}: its name is {shown(name)}: must be the entry point's")
    first = point.module.split(".")[0]
    spec = importlib.util.find_spec(first)
    origin = Path(spec.origin) if spec is not None and spec.origin else Path()
    root = origin.parent if origin.name == "__init__.py" else origin
    return Own(point.group, name, f"{point.module}:{point.attr}", root), value
