"""The error of a bad configuration, and how values are shown in messages."""

import difflib
from collections.abc import Iterable
from pathlib import Path

# Whether a key's value is wrong, the key, the value, and what is allowed.
Rule = tuple[bool, str, object, str]


class ConfigError(ValueError):
    """A configuration that cannot be run; its text is one line naming file, key, value and what is allowed."""


def project_root() -> Path:
    return Path(__file__).resolve().parents[3]


def suggest_name(word: object, allowed: Iterable[str]) -> str:
    """`; did you mean X?` where `allowed` has a name close to `word`, else nothing."""
    names = difflib.get_close_matches(str(word), allowed)
    return f"; did you mean {names[0]}?" if names else ""


def among(kind: str, value: str, allowed: Iterable[str]) -> str:
    """`value` if it is among `allowed`, else ConfigError."""
    names = list(allowed)
    if value not in names:
        raise ConfigError(
            f"command line: {kind}: {value!r}: must be one of {', '.join(names)}{suggest_name(value, names)}"
        )
    return value


def show_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
