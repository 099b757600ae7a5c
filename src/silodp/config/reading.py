"""YAML files read with limits: what a run file can need, and nothing that takes minutes, gigabytes or a traceback."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from silodp.config.errors import ConfigError

MOST_BYTES = 300_000
MOST_NODES = 10_000
MOST_DEPTH = 30
MOST_ALIASES = 100


class _Loader(yaml.SafeLoader):
    """Plain data only: YAML 1.2's mappings, lists, strings, numbers, true, false and null, with limits.

    Unlike the standard loader it takes 1e-3 for a number, and neither 010 nor 1:30 nor `yes` for something else than
    they look like; a key that is given twice is an error.
    """

    # Filled below; the standard loader's would be shared otherwise.
    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012
    yaml_constructors: dict[Any, Any] = {}  # noqa: RUF012

    def __init__(self, text: str):
        super().__init__(text)
        self.nodes = self.depth = self.aliases = self.anchored = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            self.aliases += 1
            # Aliases within anchored nodes would double with each level.
            if self.aliases > MOST_ALIASES or self.anchored:
                self._refuse(f"more than {MOST_ALIASES} aliases, or one within an anchored part", event)
            return super().compose_node(parent, index)
        self.nodes += 1
        self.depth += 1
        self.anchored += event.anchor is not None
        if self.depth > MOST_DEPTH:
            self._refuse(f"nested more than {MOST_DEPTH} deep", event)
        if self.nodes > MOST_NODES:
            self._refuse(f"more than {MOST_NODES} keys and values", event)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1
            self.anchored -= event.anchor is not None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen: set[Hashable] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            name = self.construct_object(key, deep=True)
            if not isinstance(name, Hashable):
                self._refuse(f"key {name!r}: must be a name", key)
            if name in seen:
                self._refuse(f"key {name!r} is given twice: must be given once", key)
            seen.add(name)
        return super().construct_mapping(node, deep)

    def _refuse(self, why: str, place: Any) -> None:
        raise yaml.constructor.ConstructorError(None, None, why, place.start_mark)


def _plain_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    if len(text) > 400:
        raise yaml.constructor.ConstructorError(None, None, f"a number of {len(text)} digits", node.start_mark)
    return int(text)


_KINDS: list[tuple[str, str, str]] = [
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
        r"|\.inf|\.Inf|\.INF|Infinity)|\.nan|\.NaN|\.NAN|NaN",
        "-+.0123456789IN",
    ),
    ("merge", r"<<", "<"),
]
for _kind, _pattern, _first in _KINDS:
    _letters = [letter if letter != "\0" else "" for letter in _first]
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), _letters)
for _kind, _construct in (
    ("null", yaml.SafeLoader.construct_yaml_null),
    ("bool", yaml.SafeLoader.construct_yaml_bool),
    ("int", _plain_number),
    ("float", yaml.SafeLoader.construct_yaml_float),
    ("str", yaml.SafeLoader.construct_yaml_str),
    ("seq", yaml.SafeLoader.construct_yaml_seq),
    ("map", yaml.SafeLoader.construct_yaml_map),
):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _construct)
_Loader.add_constructor(None, yaml.SafeLoader.construct_undefined)


def read_yaml(path: Path) -> dict:
    """A YAML file that holds a mapping; ConfigError in one line for anything else, and for a key given twice."""
    if not path.is_file():
        raise ConfigError(f"{path}: file: missing: must be a readable YAML file")
    try:
        with open(path, "rb") as stream:
            text = stream.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ConfigError(
                f"{path}: file: more than {MOST_BYTES} bytes: must be a run file, an experiment or claims"
            )
        loader = _Loader(text.decode("utf-8-sig"))
        try:
            content = loader.get_single_data()
        finally:
            loader.dispose()
    except OSError as error:
        raise ConfigError(f"{path}: file: {error.strerror}: must be a readable YAML file") from None
    except ConfigError:
        raise
    # Values that a tag forces into another kind, as in `!!int x`, fail with other errors than YAML's own.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise ConfigError(f"{path}: file: not YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: file: {type(content).__name__}: must be a mapping of keys to values")
    return content
