"""Files of mode 600 that last once they are written."""

import os
from pathlib import Path

from silodp.files import write_atomically


def write_private(path: Path, content: bytes) -> None:
    """Replace the file as a whole; after a power cut it is the old one or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with write_atomically(path) as temporary:
        temporary.chmod(0o600)
        temporary.write_bytes(content)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
