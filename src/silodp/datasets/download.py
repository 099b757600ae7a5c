"""One file from one address: resumed when it breaks off, tried again when that may help, never a page in its place.

What has arrived so far is kept in a hidden file that ends in `.part`, so that the next attempt, or the next run, asks
for the rest only. No server can hold a download up: it ends by its deadline whatever arrives, or does not.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from tqdm import tqdm

# Its warnings show whole addresses, a mirror's token included, and tracebacks; what matters of them is told here.
logging.getLogger("urllib3").setLevel(logging.CRITICAL)
_CHUNK = 1 << 16
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})


class TransferError(Exception):
    """A transfer failed; the text says why, in a few words."""


class WrongBytesError(TransferError):
    """The bytes are not those of the file."""


class _Passing(TransferError):
    """A failure that may not happen again, such as a connection that breaks."""


class _Connections:
    """The sockets of a download, so that another thread can end it where a timeout between two bytes never comes."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.over = threading.Event()

    def add(self, one: socket.socket | None) -> None:
        if one is not None:
            self.sockets.append(one)
            if self.over.is_set():
                self.end()

    def end(self) -> None:
        self.over.set()
        for one in self.sockets:
            with contextlib.suppress(OSError):
                # The plain socket's: that of TLS would wait for the other side.
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self.end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class _Noting(HTTPAdapter):
    """A transport that tells `connections` of every socket it opens."""

    def __init__(self, connections: _Connections):
        self.connections = connections
        super().__init__()

    def get_connection_with_tls_context(self, *arguments: Any, **named: Any) -> Any:
        pool = super().get_connection_with_tls_context(*arguments, **named)
        connections, plain = self.connections, type(pool).ConnectionCls

        class Noted(plain):  # type: ignore[misc, valid-type]
            def _new_conn(self) -> socket.socket:
                opened = super()._new_conn()
                connections.add(opened)
                return opened

            def connect(self) -> None:
                super().connect()
                connections.add(self.sock)  # over TLS another one than above

        pool.ConnectionCls = Noted
        return pool


@dataclass
class Download:
    """Transfers a file over HTTP.

    Attributes:
        size: the length the file must have, in bytes, or where that is not known the most it may have.
        part: where the bytes are kept until all have arrived.
        timeout: seconds without a connection, or without a single byte, before an attempt is given up.
        retries: further attempts after the first.
        backoff: seconds before the second attempt; they double from one attempt to the next.
        progress: show a bar, if the error stream is a terminal.
        deadline: seconds for all attempts together.
        least_speed: bytes a second below which, over `timeout` seconds, an attempt is given up.
        exact: whether the length is known; else nothing is kept from one attempt to the next.
        resumed: set when bytes of an earlier attempt were kept.
    """

    size: int
    part: Path
    timeout: float = 30.0
    retries: int = 3
    backoff: float = 1.0
    progress: bool = True
    deadline: float = 3600.0
    least_speed: float = 1000.0
    exact: bool = True
    resumed: bool = False
    connections: _Connections = field(default_factory=_Connections)

    def __call__(self, url: str) -> None:
        """Bring what lies at `url` to `part`; TransferError when that cannot be done."""
        over = self.connections.over
        with self.connections.within(self.deadline):
            for attempt in range(self.retries + 1):
                try:
                    self._attempt(url)
                    return
                except WrongBytesError:
                    raise
                except Exception as error:
                    if over.is_set():
                        held = f"{self._held()} of {self.size} bytes"
                        raise TransferError(f"not here within {self.deadline:g} s ({held})") from None
                    if not isinstance(error, _Passing):
                        raise
                    if attempt == self.retries:
                        raise TransferError(f"{error}, in {attempt + 1} attempts") from None
                    over.wait(self.backoff * 2**attempt)

    def _attempt(self, url: str) -> None:
        # A link in its place, whoever put it there, could have the bytes written to any file of the user's.
        if self.part.is_symlink():
            self.part.unlink()
        held = self._held()
        if held > self.size or (held and not self.exact):
            self.part.unlink()
            held = 0
        if held == self.size:
            self.resumed = True
            return
        # The checksum is that of the file as stored, so no encoding on the way.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={held}-"} if held else {})
        try:
            with requests.Session() as session:
                for scheme in ("http://", "https://"):
                    session.mount(scheme, _Noting(self.connections))
                with session.get(url, headers=headers, stream=True, timeout=self.timeout) as response:
                    start = self._accept(response, held)
                    self.resumed |= start > 0
                    self._receive(response, start)
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema) as error:
            raise TransferError(f"not an address that can be fetched ({error})") from error
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise _Passing(f"no answer for {self.timeout:g} s") from error
        except urllib3.exceptions.ProtocolError as error:
            raise _Passing(f"truncated: the connection broke off after {self._held()} of {self.size} bytes") from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _Passing(f"no connection ({_cause(error)})") from error

    def _held(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _accept(self, response: requests.Response, held: int) -> int:
        """Judge the head of an answer; returns the position of its first byte in the file."""
        status = response.status_code
        if status == 416:
            self.part.unlink(missing_ok=True)
            raise _Passing("the server has no bytes after those already here")
        if status >= 400:
            raise (_Passing if status in _BUSY else TransferError)(f"HTTP status {status} {response.reason}")
        if response.headers.get("Content-Type", "").lower().startswith("text/html"):
            raise TransferError(f"an HTML page in place of the file{_redirection(response)}")
        if status == 206:
            if not response.headers.get("Content-Range", "").startswith(f"bytes {held}-"):
                self.part.unlink(missing_ok=True)
                raise _Passing("the server sent another range than the one asked for")
            return held
        return 0

    def _receive(self, response: requests.Response, start: int) -> None:
        received = start
        bar = tqdm(
            total=self.size if self.exact else None,
            initial=start,
            desc=self.part.name.removeprefix(".").removesuffix(".part"),
            unit="B",
            unit_scale=True,
            disable=None if self.progress else True,
        )
        since, seen = time.monotonic(), received
        with bar, open(self.part, "ab" if start else "wb", opener=_no_link) as stream:
            # read1 hands over what has arrived, so a transfer that breaks off loses nothing.
            while chunk := response.raw.read1(_CHUNK, decode_content=False):
                stream.write(chunk)
                received += len(chunk)
                bar.update(len(chunk))
                if received > self.size:
                    break
                if (passed := time.monotonic() - since) >= self.timeout:
                    if received - seen < self.least_speed * passed:
                        slow = f"slower than {self.least_speed:g} bytes a second for {self.timeout:g} s"
                        raise _Passing(f"{slow}: {received} of {self.size} bytes")
                    since, seen = time.monotonic(), received
            stream.flush()
            os.fsync(stream.fileno())
        if start == 0 and _is_page(self.part):
            self.part.unlink()
            raise TransferError(f"an HTML page in place of the file{_redirection(response)}")
        if received > self.size:
            self.part.unlink()
            raise WrongBytesError(f"more than the {self.size} bytes of the file" + ("" if self.exact else " at most"))
        # An answer that is whole but too short is another file: trying again is no use, its checksum will tell.
        said = response.headers.get("Content-Length")
        whole = said == str(received - start) or (said is None and not self.exact)
        if received < self.size and not whole:
            raise _Passing(f"truncated: {received} of {self.size} bytes")


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _is_page(path: Path) -> bool:
    with open(path, "rb") as stream:
        head = stream.read(256).lstrip().lower()
    return head.startswith((b"<!doctype html", b"<html"))


def _redirection(response: requests.Response) -> str:
    return f", after a redirect to {response.url}" if response.history else ""


def _cause(error: Exception) -> str:
    """The innermost reason, on one line: the libraries wrap it several times."""
    while isinstance(inner := getattr(error, "reason", None) or (error.args[0] if error.args else None), Exception):
        error = inner
    return " ".join(str(error).split()) or type(error).__name__
