"""Data files where they are kept: found and checked, never fetched."""

import hashlib
import os
from pathlib import Path

import platformdirs

from silodp.datasets.addresses import without_credentials
from silodp.datasets.sources import Source, sources


class FetchError(ValueError):
    """A file of a dataset is not to be had; one line names dataset, file, addresses tried and reasons.

    Credentials of a mirror's address are left out of the line.
    """

    def __init__(self, line: str):
        super().__init__(without_credentials(line))


def cache_folder(cache: Path | str | None = None) -> Path:
    """Where data files are kept: `cache`, else `SILODP_DATA_CACHE`, else the user's cache folder."""
    chosen = cache or os.environ.get("SILODP_DATA_CACHE") or platformdirs.user_cache_dir("silodp")
    return Path(chosen).expanduser()


def local_files(name: str, *, cache: Path | str | None = None) -> dict[str, Path]:
    """The files of a fetched dataset, by their name in the table; FetchError when one is missing or wrong."""
    folder = cache_folder(cache)
    files = {source.file: folder / source.file for source in sources(name).files}
    for source in sources(name).files:
        path = files[source.file]
        if not path.is_file():
            raise FetchError(f"{name}: {source.file} is not in {folder}; run `silodp fetch {name}` first")
        if found := mismatch(path, source):
            raise FetchError(f"{name}: {source.file} in {folder} is not the published file: {found}")
    return files


def mismatch(path: Path, source: Source) -> str:
    """What is wrong with a file that should be `source`; empty when nothing is, or nothing is known of it."""
    if not source.digest:
        return ""
    algorithm, _, expected = source.digest.partition(":")
    with open(path, "rb") as stream:
        found = hashlib.file_digest(stream, algorithm).hexdigest()
    if found == expected:
        return ""
    return (
        f"wrong checksum: expected {algorithm}:{expected} ({source.size} bytes), "
        f"found {found} ({path.stat().st_size} bytes)"
    )
