"""Files of mode 600 that last once they are written, and locks between processes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from silodp.config.errors import ConfigError
from silodp.files import write_atomically


def write_private(path: Path, content: bytes) -> None:
    """Replace the file as a whole; after a power cut it is the old one or the new one."""
    make_private(path.parent)
    with write_atomically(path) as temporary:
        temporary.chmod(0o600)
        temporary.write_bytes(content)
    sync_folder(path.parent)


def make_private(folder: Path) -> None:
    """Make a folder and those above it, of mode 700; each lasts once this returns."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, taken: str = "") -> Iterator[None]:
    """While no other process has the lock: waits for it, or ConfigError that says `taken`."""
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if taken else 0))
        except BlockingIOError:
            raise ConfigError(taken) from None
        yield
