"""What jobs wrote: beside a run's logs the checksum of each file, to which the next rebuild holds the file.

A file that was edited, or copied from elsewhere, is not what its job wrote and is made again.
"""

from pathlib import Path

from silodp.workflow.contents import manifest
from silodp.workflow.digests import checksum
from silodp.workflow.outputs import MANIFEST

_PLACE, _END = Path("logs", "written"), ".checksum"


def note_written(folder: Path, path: Path) -> None:
    """Keep the checksum of a file of the run in `folder`; other files are left out."""
    folder, path = folder.resolve(), path.resolve()
    if path.is_relative_to(folder):
        record = folder / _PLACE / f"{path.relative_to(folder)}{_END}"
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(f"{checksum(path)} {_state(path)}", encoding="utf-8")


def changed_files(folder: Path) -> list[Path]:
    """Files of a run that are not what their jobs wrote, sorted. Only files with another time are read.

    A file whose checksum went with the logs is held to the manifest; ValueError where that is damaged.
    """
    found, noted = [], set()
    for record in sorted((folder / _PLACE).rglob(f"*{_END}")):
        path = folder / record.relative_to(folder / _PLACE).with_suffix("")
        noted.add(path)
        if path.is_file():
            digest, _, state = record.read_text(encoding="utf-8").partition(" ")
            if state != _state(path) and digest != checksum(path):
                found.append(path)
    signed = manifest(folder) if folder / MANIFEST not in found else {}
    others = {folder / name: digest for name, digest in signed.items() if folder / name not in noted}
    return sorted([*found, *(path for path, digest in others.items() if path.is_file() and digest != checksum(path))])


def _state(path: Path) -> str:
    at = path.stat()
    return f"{at.st_mtime_ns} {at.st_size}"
