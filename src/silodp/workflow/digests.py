"""Digests of values and files, and paths as digests and rules have them."""

import functools
import hashlib
import hmac
import json
import math
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def from_here(path: Path | str) -> str:
    """A path below the working folder as seen from there, so that a checkout that is moved redoes nothing."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def checksum(path: Path) -> str:
    """SHA-256 of a file, read once in the state it is in."""
    state = path.stat()
    return _checksum(path, state.st_mtime_ns, state.st_size)


@functools.cache
def _checksum(path: Path, changed: int, size: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def package_checksum(root: Path) -> str:
    """SHA-256 of the names and bytes of all files of a package, compiled ones aside."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return digest([[path.relative_to(root).as_posix(), checksum(path)] for path in files])


# Of this folder's rebuilds; on no other machine but those that run its jobs.
SECRET = Path(".snakemake") / "silodp" / "secret"


def keyed_checksum(path: Path) -> str:
    """HMAC of a file of one's own under this folder's secret: a plain digest would tell who guesses a record right."""
    if not SECRET.exists():
        SECRET.parent.mkdir(parents=True, exist_ok=True)
        made = SECRET.with_name(f".secret.{os.getpid()}")
        made.touch(mode=0o600)
        made.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was first
            os.link(made, SECRET)
        made.unlink()
    return hmac.new(SECRET.read_bytes(), checksum(path).encode(), hashlib.sha256).hexdigest()


def digest(obj: Any) -> str:
    """SHA-256 of the JSON form of `obj`: keys sorted, no spaces, ∞ as "inf"; ValueError for what has no such form."""
    text = json.dumps(_json_value(obj), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _json_value(obj: Any) -> Any:
    """`obj` with floats that JSON does not know as "inf", "-inf" and "nan"; ValueError for what has no JSON form."""
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else str(obj)
    if isinstance(obj, Mapping):
        if wrong := [key for key in obj if not isinstance(key, str)]:
            raise ValueError(f"record: key {wrong[0]!r} is not a string")
        return {key: _json_value(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [_json_value(value) for value in obj]
    if obj is None or isinstance(obj, int | str):
        return obj
    raise ValueError(f"record: {type(obj).__name__} has no JSON form: must be a mapping, list, text, number or None")
