"""YAML files as plain data."""

import re
from pathlib import Path
from typing import Any

import yaml

from silodp.config.errors import ConfigError, suggest_name

# Of the records of a run and of a publication: config.json and provenance.json; those without a number are of this one.
FORMAT = 1
# Collections within each other, beyond which the compiled parser could exhaust the stack.
_DEEPEST = 100
# Bytes of a file. A run with every experiment has about a fifth.
_LARGEST = 1_000_000


class _Loader(yaml.CSafeLoader):
    """The safe loader, but for keys given twice, which it refuses, and two readings."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            seen = [self.construct_object(key) for key, _ in node.value]
            _refuse(f"key {next(key for key in seen if seen.count(key) > 1)!r} is given twice", node)
        return mapping


def _refuse(why: str, place: yaml.Event | yaml.Node) -> None:
    raise yaml.MarkedYAMLError(problem=why, problem_mark=place.start_mark)


# Infinity and NaN as JSON has them in the record of a run.
_FLOAT = re.compile(r"([-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+|-?Infinity|NaN)$")
# Numbers that other readers of YAML take for others or for words: 0123 (83 or 123), 0b11, 1:30 (90), 1_000.
_UNLIKE = re.compile(r"[-+]?0[0-9b]+(\.|$)|.*[:_]")


def _construct_number(loader: Any, node: yaml.ScalarNode) -> int | float:
    if _UNLIKE.match(node.value):
        _refuse(f"{node.value} is no plain number (quote a word)", node)
    return (loader.construct_yaml_int if node.tag.endswith("int") else loader.construct_yaml_float)(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:null", lambda loader, node: None if node.value else {})
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789IN"))


def _load_plain_yaml(text: str) -> Any:
    """The content of a file without aliases, whose collections are not many deep."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            _refuse("aliases are not allowed", event)
        if depth > _DEEPEST:
            _refuse(f"more than {_DEEPEST} collections within each other", event)
    return yaml.load(text, _Loader)


def read_yaml(path: Path) -> dict:
    """A YAML file that holds a mapping; ConfigError in one line for anything else."""
    if not path.is_file() and (path.exists() or path.is_symlink()):
        raise ConfigError(f"{path}: file: is a folder, a pipe or a broken link: must be a readable YAML file")
    if not path.is_file():
        beside = suggest_name(path.name, (file.name for file in path.parent.glob("*.yaml")))
        raise ConfigError(f"{path}: file: missing: must be a readable YAML file{beside}")
    if path.stat().st_size > _LARGEST:
        raise ConfigError(f"{path}: file: {path.stat().st_size} bytes: must be at most {_LARGEST}")
    try:
        content = _load_plain_yaml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: file: {error.strerror}: must be a readable YAML file") from None
    # Values that a tag forces into another kind, as in `!!int x`, fail with other errors than YAML's.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise ConfigError(f"{path}: file: not YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: file: {type(content).__name__}: must be a mapping of keys to values")
    return content


def without_format(found: dict[str, Any], path: Path) -> dict[str, Any]:
    """A stored record without the number of its format; ValueError for one that this version cannot read."""
    if (number := found.pop("format", FORMAT)) != FORMAT:
        raise ValueError(f"{path}: format: {number!r}: must be {FORMAT}: another version of silodp wrote it")
    return found
