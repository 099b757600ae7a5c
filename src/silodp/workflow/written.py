"""What jobs wrote: beside a run's logs the checksum of each file, to which the next rebuild holds the file.

A file that was edited, or copied from elsewhere, is not what its job wrote and is made again.
"""

from pathlib import Path

from silodp.workflow.digests import checksum

_PLACE, _END = Path("logs", "written"), ".checksum"


def note_written(folder: Path, path: Path) -> None:
    """Keep the checksum of a file of the run in `folder`; other files are left out."""
    folder, path = folder.resolve(), path.resolve()
    if path.is_relative_to(folder):
        record = folder / _PLACE / f"{path.relative_to(folder)}{_END}"
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(f"{checksum(path)} {_state(path)}", encoding="utf-8")


def changed_files(folder: Path) -> list[Path]:
    """Files of a run that are not what their jobs wrote, sorted. Only files with another time are read."""
    found = []
    for record in sorted((folder / _PLACE).rglob(f"*{_END}")):
        path = folder / record.relative_to(folder / _PLACE).with_suffix("")
        if path.is_file():
            digest, _, state = record.read_text(encoding="utf-8").partition(" ")
            if state != _state(path) and digest != checksum(path):
                found.append(path)
    return found


def _state(path: Path) -> str:
    at = path.stat()
    return f"{at.st_mtime_ns} {at.st_size}"
