"""The cache folder: data files found and checked, never fetched."""

import hashlib
import os
from pathlib import Path

import platformdirs

from silodp.datasets.sources import Source, sources, without_credentials


class FetchError(ValueError):
    """A file of a data set is unavailable; the text is one line without the credentials of a mirror's address."""

    def __init__(self, line: str):
        super().__init__(without_credentials(" ".join(line.split())))


def cache_folder(cache: Path | str | None = None) -> Path:
    """Where data files are kept: `cache`, else `SILODP_DATA_CACHE`, else the user's cache folder."""
    return Path(cache or os.environ.get("SILODP_DATA_CACHE") or platformdirs.user_cache_dir("silodp")).expanduser()


def local_files(name: str, *, cache: Path | str | None = None) -> dict[str, Path]:
    """The files of a fetched data set, by their name in the table; FetchError when a file is missing or wrong."""
    folder = cache_folder(cache)
    for source in sources(name).files:
        if not (folder / source.file).is_file():
            raise FetchError(f"{name}: {source.file} is not in {folder}; run `silodp fetch {name}` first")
        if wrong := mismatch(folder / source.file, source):
            raise FetchError(f"{name}: {source.file} in {folder} is not the published file: {wrong}")
    return {source.file: folder / source.file for source in sources(name).files}


def mismatch(path: Path, source: Source) -> str:
    """How the checksum of a file differs from that of `source`; empty when it does not."""
    algorithm, _, expected = source.digest.partition(":")
    with open(path, "rb") as stream:
        computed = hashlib.file_digest(stream, algorithm).hexdigest()
    return "" if computed == expected else f"wrong checksum: expected {source.digest}, the file has {computed}"
