"""Digests of what a result was made from: they say when a job is to be done again (docs/freshness.md)."""

import functools
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from silodp.config.experiment import Experiment
from silodp.experiments import plugins
from silodp.workflow.closure import Sources


def from_here(path: Path | str) -> str:
    """A path below the working folder as seen from there, so that a checkout that is moved redoes nothing."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _here() -> Sources:
    """The package's sources and those of plug-ins, as they are when they are first asked for."""
    return _with(plugins.in_use())


@functools.cache
def _with(own: frozenset[plugins.Own]) -> Sources:
    return Sources(
        plugins={one.place.split(":")[0].split(".")[0]: one.root for one in own},
        brought={(one.registry, one.name): one.place for one in own},
    )


@dataclass
class Asked:
    """What a job asks for of the code that it could reach; see `Sources.closure`."""

    chosen: dict[str, list[str]] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)


def computed_by(entry: str, asked: Asked | None = None) -> str:
    """Changes with what the function `entry` ("module:name") computes."""
    asked = asked or Asked()
    return _here().closure([entry], asked.chosen, asked.aside).digest


def put_aside(asked: Asked, config: Experiment, algorithms: Iterable[str]) -> None:
    """Put aside what no algorithm asks for in any variant: calibrated noise, shuffled sums, schedules."""
    own, variants = [config.algorithms[name] for name in algorithms], config.variants().values()
    if "calibrated" not in [*(one.noise for one in own), *(one.noise for one in variants)]:
        asked.aside += ["silodp.privacy.calibration:calibrated_plan"]
    if "shuffled" not in [one.summation for one in variants]:
        asked.aside += ["silodp.privacy.shuffling.shuffled_plan:shuffled_plan"]
    scheduled = sorted({one.schedule for one in own if one.schedule})
    if scheduled:
        asked.chosen["silodp.theory.convex.schedules:SCHEDULES"] = scheduled
    else:
        asked.aside += ["silodp.experiments.schedules:prescribe"]


def keys_of(registry: str) -> list[str]:
    """Keys of a dict of strings ("module:NAME"), without importing its module."""
    return _here().keys(registry)


def checksum(path: Path) -> str:
    """SHA-256 of a file, read once in the state it is in."""
    state = path.stat()
    return _checksum(path, state.st_mtime_ns, state.st_size)


@functools.cache
def _checksum(path: Path, changed: int, size: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(obj: Any) -> str:
    """SHA-256, in hex, of the JSON form of `obj`: keys sorted, no spaces, ∞ as "inf".

    Raises ValueError for what has no such form.
    """
    text = json.dumps(_plain(obj), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(obj: Any, where: str = "") -> Any:
    """`obj` as JSON types; floats that JSON does not know become "inf", "-inf" and "nan"."""
    if obj is None or isinstance(obj, bool | int | str):
        return obj
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else str(obj)
    if isinstance(obj, np.generic):
        return _plain(obj.item(), where)
    if isinstance(obj, PurePath):
        return obj.as_posix()
    if isinstance(obj, Mapping):
        wrong = [key for key in obj if not isinstance(key, str)]
        if wrong:
            raise ValueError(f"{where or 'record'}: key {wrong[0]!r} is not a string")
        return {key: _plain(value, f"{where}.{key}".lstrip(".")) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [_plain(value, f"{where}[{i}]") for i, value in enumerate(obj)]
    raise ValueError(
        f"{where or 'record'}: {type(obj).__name__} has no JSON form, allowed: mapping, list, str, number, None, path"
    )
