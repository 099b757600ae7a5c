"""`fetch("mnist")`: the public files of a dataset in a cache folder, each with the right checksum or not there at all.

A file is looked for in the cache, then in the mirror that the user names (a folder, or an address that lays the files
out as the cache does), then at its official address, then at the mirrors of `config/datasets.csv`. With a mirror folder
that holds all files the network is never touched.
"""

import logging
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urldefrag, urlsplit

from filelock import FileLock

from silodp.datasets.addresses import below, without_credentials
from silodp.datasets.cache import FetchError, cache_folder, mismatch
from silodp.datasets.download import Download, TransferError, WrongBytesError
from silodp.datasets.sources import Source, sources

_LOG = logging.getLogger(__name__)


def fetch(
    name: str,
    *,
    cache: Path | str | None = None,
    mirror: Path | str | None = None,
    progress: bool = True,
    timeout: float = 30.0,
    retries: int = 3,
    backoff: float = 1.0,
    deadline: float = 3600.0,
    least_speed: float = 1000.0,
) -> list[Path]:
    """Get the files of a dataset.

    Args:
        name: a dataset of `DATASETS`; one that ships with scikit-learn needs no files.
        cache: where the files go, see `cache_folder`.
        mirror: a folder or an address; None for `SILODP_DATA_MIRROR`. A wrong file there is an error, a missing one is
            looked for elsewhere.
        progress: show a bar for each download on a terminal.
        timeout: seconds without a byte before an attempt is given up.
        retries: further attempts at an address whose failure may pass.
        backoff: seconds before the second attempt; they double from one attempt to the next.
        deadline: seconds for all attempts at one address.
        least_speed: bytes a second below which, over `timeout` seconds, an attempt is given up.

    Returns:
        The paths of the files, in the order of the table. Processes that ask at the same time download once.

    Raises:
        FetchError: no address gave the right bytes of some file.
        ValueError: no dataset has this name.
    """
    from silodp.datasets import DATASETS  # the package imports no downloads of its own

    if name not in DATASETS:
        raise ValueError(f"no dataset is called {name!r}; the datasets are {', '.join(DATASETS)}")
    if DATASETS[name].embedded:
        return []
    folder = cache_folder(cache)
    chosen = str(mirror or os.environ.get("SILODP_DATA_MIRROR") or "")
    limits = {"timeout": timeout, "retries": retries, "backoff": backoff}
    limits |= {"deadline": deadline, "least_speed": least_speed}
    fetcher = _Fetcher(name, folder, chosen, limits | {"progress": progress})
    paths = [folder / source.file for source in sources(name).files]
    # A complete cache may be read-only, so the lock is taken only when something is missing.
    if not all(fetcher.holds(source) for source in sources(name).files):
        with fetcher.speaking_of("cache folder", str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / f".{name}.lock")
        with lock:
            fetcher.fill()
    return paths


@dataclass(frozen=True)
class _Fetcher:
    """What one call of `fetch` knows."""

    name: str
    folder: Path
    mirror: str
    limits: dict[str, Any]

    def holds(self, source: Source) -> bool:
        path = self.folder / source.file
        return path.is_file() and not mismatch(path, source)

    def fill(self) -> None:
        """Get every file that is missing or wrong; those of an archive after all others."""
        packed: dict[str, list[Source]] = {}
        failures: dict[str, list[str]] = {}
        for source in sources(self.name).files:
            if self.holds(source):
                continue
            target = self.folder / source.file
            with self.speaking_of(source.file, str(target)):
                if target.exists():
                    _LOG.warning(
                        "%s: %s is wrong and is fetched again: %s", self.name, target, mismatch(target, source)
                    )
                    target.unlink()
                target.parent.mkdir(parents=True, exist_ok=True)
            if source.member:
                failures[source.file] = []
                if not self._try(source, self._mirrored(source), failures[source.file]):
                    packed.setdefault(urldefrag(source.address).url, []).append(source)
            else:
                self._obtain(source)
        for address, members in packed.items():
            archive = sources(self.name).archives[address]
            if not self.holds(archive):
                self._obtain(archive, said=failures[members[0].file])
            self._unpack(archive, members)

    def _mirrored(self, source: Source) -> list[str]:
        if not self.mirror:
            return []
        if urlsplit(self.mirror).scheme in ("http", "https"):
            return [below(self.mirror, source.file)]
        return [str(_as_folder(self.mirror) / source.file)]

    def _obtain(self, source: Source, said: list[str] | None = None) -> None:
        """Get one file from the first address that has it."""
        failures = list(said or [])
        if not self._try(source, [*self._mirrored(source), source.address, *source.mirrors], failures):
            raise FetchError(f"{self.name}: {source.file} could not be fetched: {'; '.join(failures)}")

    def _try(self, source: Source, addresses: list[str], failures: list[str]) -> bool:
        mirrored = self._mirrored(source)
        for address in addresses:
            try:
                with self.speaking_of(source.file, address):
                    self._bring(source, address)
                return True
            except TransferError as error:
                failures.append(f"{address}: {error}")
                # A mirror that the user names is trusted to be whole: say so rather than go elsewhere in silence.
                if isinstance(error, WrongBytesError) and address in mirrored:
                    raise FetchError(f"{self.name}: {source.file} from {address}: {error}") from None
                _LOG.warning("%s", without_credentials(f"{self.name}: {source.file} from {address}: {error}"))
        return False

    def _bring(self, source: Source, address: str) -> None:
        target = self.folder / source.file
        part = target.with_name(f".{target.name}.part")
        if urlsplit(address).scheme not in ("http", "https"):
            if not Path(address).is_file():
                raise TransferError("no such file")
            _publish(Path(address), part, target, source)
            return
        for last in (False, True):
            download = Download(source.size, part, exact=bool(source.digest), **self.limits)
            download(address)
            found = mismatch(part, source)
            if not found:
                os.replace(part, target)
                return
            part.unlink()
            # Bytes left by an earlier attempt may have been another file's: once more from the start.
            if last or not download.resumed:
                raise WrongBytesError(found)

    def _unpack(self, archive: Source, members: list[Source]) -> None:
        """Take the wanted members, and nothing else, from an archive, which is then removed."""
        path = self.folder / archive.file
        wanted = {source.member: source for source in members}
        try:
            with self.speaking_of(archive.file, str(path)):
                for name, stream in _entries(path, wanted):
                    target = self.folder / wanted[name].file
                    _publish(stream, target.with_name(f".{target.name}.part"), target, wanted[name])
                    del wanted[name]
        except _BROKEN as error:
            reason = " ".join(str(error).split())
            raise FetchError(f"{self.name}: {archive.file} from {archive.address}: {reason}") from error
        finally:
            path.unlink(missing_ok=True)
        if wanted:
            raise FetchError(f"{self.name}: {archive.file} from {archive.address} lacks {', '.join(wanted)}")

    @contextmanager
    def speaking_of(self, file: str, place: str) -> Iterator[None]:
        """Turn a failure of the file system, such as a full disk, into one line."""
        try:
            yield
        except OSError as error:
            raise FetchError(f"{self.name}: {file}, {place}: {error.strerror or error}") from error


# What a broken or hostile archive raises; zipfile says RuntimeError of one with a password.
_BROKEN = (TransferError, tarfile.TarError, zipfile.BadZipFile, RuntimeError, EOFError, zlib.error, lzma.LZMAError)


def _entries(path: Path, wanted: Mapping[str, Source]) -> Iterator[tuple[str, IO[bytes]]]:
    """Plain files of an archive, zip or tar, that are still wanted, each as it is stored."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in [one for one in archive.namelist() if one in wanted]:
                with archive.open(name) as stream:
                    yield name, stream
        return
    with tarfile.open(path, "r:*") as tar:
        for entry in tar:
            packed = tar.extractfile(entry) if entry.name in wanted and entry.isfile() else None
            if packed is not None:
                yield entry.name, packed


def _publish(origin: Path | IO[bytes], part: Path, target: Path, source: Source) -> None:
    """Copy a file or a stream beside `target`, check it, and rename it to `target`."""
    if isinstance(origin, Path) and (size := origin.stat().st_size) != source.size:
        # Told by its size, so that a huge file is neither read nor copied.
        raise WrongBytesError(f"wrong checksum: expected {source.digest} ({source.size} bytes), found {size} bytes")
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb") as copy:
            if isinstance(origin, Path):
                with open(origin, "rb") as stream:
                    shutil.copyfileobj(stream, copy)
            else:
                left = source.size + 1  # a small archive may hold an endless file
                while left > 0 and (chunk := origin.read(min(left, 1 << 20))):
                    copy.write(chunk)
                    left -= len(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        if found := mismatch(part, source):
            raise WrongBytesError(found)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _as_folder(mirror: str) -> Path:
    """The folder a mirror means: a path, or a `file:` address."""
    parts = urlsplit(mirror)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if parts.scheme:
        shown = without_credentials(mirror)
        raise ValueError(f"data mirror is {shown!r}; a folder or an address with http, https or file is allowed")
    return Path(mirror).expanduser()
