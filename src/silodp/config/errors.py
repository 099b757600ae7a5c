"""The error of a bad configuration, and how values are shown in messages."""

from pathlib import Path

# Whether a key's value is wrong, the key, the value, and what is allowed.
Rule = tuple[bool, str, object, str]


class ConfigError(ValueError):
    """A configuration that cannot be run; its text is one line naming file, key, value and what is allowed."""


def project_root() -> Path:
    """The checkout this package lies in."""
    return Path(__file__).resolve().parents[3]


def shown(value: object) -> str:
    """`value` as messages show it, at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
