"""YAML files as plain data."""

import re
from pathlib import Path

import yaml

from silodp.config.errors import ConfigError, near


class _Loader(yaml.SafeLoader):
    """The safe loader, but for aliases and keys given twice, which it refuses, and two readings.

    1e-3 is a number, and a key without a value holds an empty section: only `null` takes a key of an experiment away.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self._refuse("aliases are not allowed", self.peek_event())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            seen = [self.construct_object(key) for key, _ in node.value]
            self._refuse(f"key {next(key for key in seen if seen.count(key) > 1)!r} is given twice", node)
        return mapping

    def _refuse(self, why: str, place: yaml.Event | yaml.Node) -> None:
        raise yaml.MarkedYAMLError(problem=why, problem_mark=place.start_mark)


# Infinity and NaN as JSON has them in the record of a run.
_FLOAT = re.compile(r"([-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+|-?Infinity|NaN)$")
_Loader.add_constructor("tag:yaml.org,2002:null", lambda loader, node: None if node.value else {})
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789IN"))


def read_yaml(path: Path) -> dict:
    """A YAML file that holds a mapping; ConfigError in one line for anything else."""
    if not path.is_file():
        beside = near(path.name, (file.name for file in path.parent.glob("*.yaml")))
        raise ConfigError(f"{path}: file: missing: must be a readable YAML file{beside}")
    try:
        content = yaml.load(path.read_text(encoding="utf-8-sig"), _Loader)
    except OSError as error:
        raise ConfigError(f"{path}: file: {error.strerror}: must be a readable YAML file") from None
    # Values that a tag forces into another kind, as in `!!int x`, fail with other errors than YAML's.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise ConfigError(f"{path}: file: not YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: file: {type(content).__name__}: must be a mapping of keys to values")
    return content
