"""Downloads from a server that does what none should: right bytes or one line, in time, with nothing left behind."""

import contextlib
import hashlib
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from measured import Tried

from silodp.datasets import sources as sources_module
from silodp.datasets.fetch import FetchError, fetch
from silodp.datasets.sources import read_sources

SEED = 20261122
STORM = 120
CONTENT = random.Random(7).randbytes(60_000)
FILE = "insurance/insurance.csv"
SECRET = "hunter2token"
DEADLINE = 1.0
LENGTH = f"Content-Length: {len(CONTENT)}\r\n".encode()
OK = b"HTTP/1.1 200 OK\r\n"


def drips_bytes(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + LENGTH + b"\r\n")
    while True:
        to.sendall(b"x")
        time.sleep(0.05)


def drips_head(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK)
    while True:
        to.sendall(b"X: y\r\n"[rng.randrange(6) :][:1] or b"x")
        time.sleep(0.05)


def continues_for_ever(to: socket.socket, rng: random.Random) -> None:
    while True:
        to.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.001)


def says_nothing(to: socket.socket, rng: random.Random) -> None:
    time.sleep(3 * DEADLINE)


def resets(to: socket.socket, rng: random.Random) -> None:
    to.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def sends_noise(to: socket.socket, rng: random.Random) -> None:
    to.sendall(rng.randbytes(rng.randrange(1, 3000)))


def sends_wrong_bytes(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + LENGTH + b"\r\n" + rng.randbytes(len(CONTENT)))


def sends_too_little(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + LENGTH + b"\r\n" + CONTENT[: rng.randrange(len(CONTENT))])


def sends_without_end(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + b"\r\n")
    while True:
        to.sendall(bytes(65536))


def sends_a_page(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + LENGTH + b"\r\n" + b"  <HTML><body>log in</body>".ljust(len(CONTENT)))


def redirects_in_a_circle(to: socket.socket, rng: random.Random) -> None:
    host = f"127.0.0.1:{to.getsockname()[1]}"
    to.sendall(f"HTTP/1.1 302 Found\r\nLocation: http://u:{SECRET}@{host}/?t={SECRET}\r\n".encode())
    to.sendall(b"Content-Length: 0\r\nConnection: close\r\n\r\n")


def breaks_chunks(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffffffff\r\n" + CONTENT[:5000] + b"\r\nzz\r\n")


def lies_about_length(to: socket.socket, rng: random.Random) -> None:
    told = rng.choice([b"-1", b"99999999999999999999", b"0", b"ten", b"60000, 60001"])
    to.sendall(OK + b"Content-Length: " + told + b"\r\n\r\n" + CONTENT)


def sends_another_range(to: socket.socket, rng: random.Random) -> None:
    to.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/60000\r\nContent-Length: 5\r\n\r\nabcde")


def sends_a_flood_of_headers(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 900) for i in range(300)) + b"\r\n")


def sends_the_file(to: socket.socket, rng: random.Random) -> None:
    to.sendall(OK + LENGTH + b"Connection: close\r\n\r\n" + CONTENT)


MISDEEDS: list[Callable[[socket.socket, random.Random], None]] = [
    drips_bytes,
    drips_head,
    continues_for_ever,
    says_nothing,
    resets,
    sends_noise,
    sends_wrong_bytes,
    sends_too_little,
    sends_without_end,
    sends_a_page,
    redirects_in_a_circle,
    breaks_chunks,
    lies_about_length,
    sends_another_range,
    sends_a_flood_of_headers,
]


class Hostile:
    """Serves every connection by `deed`."""

    def __init__(self) -> None:
        self.deed, self.rng = sends_the_file, random.Random(SEED)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"http://u:{SECRET}@127.0.0.1:{self.listener.getsockname()[1]}/files"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(connection, self.deed), daemon=True).start()

    def _answer(self, connection: socket.socket, deed: Callable[[socket.socket, random.Random], None]) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(65536)
            deed(connection, self.rng)
            connection.close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("SILODP_DATA_MIRROR", "SILODP_DATA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    running = Hostile()
    official = f"{running.address}?token={SECRET}"
    row = f"insurance,1,{FILE},{official},,{len(CONTENT)},{hashlib.sha256(CONTENT).hexdigest()},none"
    head = "dataset,version,file,address,mirror,bytes,sha256,licence"
    (tmp_path / "datasets.csv").write_text(f"{head}\n{row}\n")
    known = read_sources(tmp_path / "datasets.csv")
    monkeypatch.setattr(sources_module, "_table", lambda: known)
    yield running
    running.listener.close()


def get(cache: Path, **options: object) -> list[Path]:
    limits = {"retries": 1, "backoff": 0.01, "timeout": 0.25, "deadline": DEADLINE, "least_speed": 1000.0}
    return fetch("insurance", cache=cache, progress=False, **(limits | options))  # type: ignore[arg-type]


def attempt(server: Hostile, cache: Path) -> str:
    """One hostile download: how it ended, checked to be right bytes or one line in time without anything left."""
    begun = time.monotonic()
    try:
        get(cache)
        said = ""
    except FetchError as error:
        said = str(error)
    assert time.monotonic() - begun < DEADLINE + 0.7, server.deed.__name__
    visible = [path for path in cache.rglob("*") if path.is_file() and not path.name.startswith(".")]
    if said:
        assert "\n" not in said
        assert said.startswith(f"insurance: {FILE}")
        assert visible == [], server.deed.__name__
    else:
        assert [path.read_bytes() for path in visible] == [CONTENT]
    assert SECRET not in said
    return said or "fetched"


@pytest.mark.parametrize("deed", MISDEEDS, ids=lambda deed: deed.__name__)
def test_every_misdeed_ends_in_one_line_and_in_time(server: Hostile, tmp_path: Path, deed, caplog, recwarn) -> None:
    server.deed = deed
    said = attempt(server, tmp_path / "cache")
    # The whole content under a wrong length may be fetched: its checksum is right.
    assert said != "fetched" or deed is lies_about_length
    assert SECRET not in caplog.text
    # What an attack left behind does not spoil the next fetch.
    server.deed = sends_the_file
    assert attempt(server, tmp_path / "cache") == "fetched"


def test_a_slow_server_is_left_for_the_deadline_of_all_attempts(server: Hostile, tmp_path: Path) -> None:
    server.deed = drips_bytes
    with pytest.raises(FetchError, match=r"slower than 1000 bytes a second for 0\.1 s"):
        get(tmp_path, retries=0, timeout=0.1)
    with pytest.raises(FetchError, match=r"not here within 0\.4 s \(\d+ of 60000 bytes\)"):
        get(tmp_path, retries=9, timeout=0.1, deadline=0.4)


def test_a_link_in_the_place_of_the_partial_file_is_not_followed(server: Hostile, tmp_path: Path) -> None:
    for misdeed in (sends_too_little, sends_the_file):
        victim, part = tmp_path / "thesis.tex", tmp_path / "cache/insurance/.insurance.csv.part"
        victim.write_text("years of work")
        part.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        part.symlink_to(victim)
        server.deed = misdeed
        with contextlib.suppress(FetchError):
            get(tmp_path / "cache")
        assert victim.read_text() == "years of work"
    assert (tmp_path / "cache" / FILE).read_bytes() == CONTENT
    # Nor in the place of a copy from a mirror's folder.
    (tmp_path / "cache" / FILE).unlink()
    part.symlink_to(victim)
    (tmp_path / "mirror/insurance").mkdir(parents=True)
    (tmp_path / "mirror" / FILE).write_bytes(CONTENT)
    get(tmp_path / "cache", mirror=tmp_path / "mirror")
    assert victim.read_text() == "years of work"
    assert (tmp_path / "cache" / FILE).read_bytes() == CONTENT


def test_a_mirror_folders_file_of_a_wrong_size_is_not_copied(server, tmp_path, monkeypatch) -> None:
    (tmp_path / "mirror/insurance").mkdir(parents=True)
    with open(tmp_path / "mirror" / FILE, "wb") as file:
        file.truncate(1 << 40)  # a terabyte of holes
    begun = time.monotonic()
    with pytest.raises(FetchError, match=r"\(60000 bytes\), found 1099511627776 bytes"):
        get(tmp_path / "cache", mirror=tmp_path / "mirror")
    assert time.monotonic() - begun < 1


@pytest.mark.slow
def test_a_storm_of_hostile_downloads(server: Hostile, tmp_path: Path, tried: list[Tried]) -> None:
    rng, ends, wrong = random.Random(SEED), Counter(), []
    print(f"seed {SEED}")
    for number in range(STORM):
        deeds = [rng.choice(MISDEEDS)] + [sends_the_file] * (number % 7 == 6)
        for server.deed in deeds:
            try:
                fetched = attempt(server, tmp_path / f"cache{number % 7}") == "fetched"
                assert fetched or server.deed is not sends_the_file
                ends["the right bytes" if fetched else "one line"] += server.deed is not sends_the_file
            except AssertionError as error:
                wrong.append(f"{number}, {server.deed.__name__}: {error}")
    words = ", ".join(f"{number} {end}" for end, number in sorted(ends.items()))
    tried.append(Tried("hostile download", STORM, STORM - len(wrong), f"{words}, within the deadline; seed {SEED}"))
    assert wrong == []
    assert ends["one line"] > 0
