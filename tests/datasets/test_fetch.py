"""Downloads against a real server on the loopback that breaks off, stalls, lies and redirects as a test scripts it."""

import hashlib
import io
import multiprocessing
import os
import platform
import subprocess
import tarfile
import threading
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from silodp.cli import main
from silodp.datasets import DATASETS
from silodp.datasets import sources as sources_module
from silodp.datasets.cache import FetchError, local_files
from silodp.datasets.fetch import fetch
from silodp.datasets.sources import read_sources

CONTENT = np.random.default_rng(7).bytes(200_000)
FILE = "insurance/insurance.csv"
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


class Server:
    """Answers GET by `answers[path]`, a function of the handler; counts requests and keeps the ranges asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: Counter[str] = Counter()
        self.ranges: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests[self.path] += 1
                outer.ranges.append(self.headers["Range"])
                outer.answers.get(self.path, missing)(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def missing(handler: BaseHTTPRequestHandler) -> None:
    handler.send_error(404)


def sending(content: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with these bytes, as a server without ranges does."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def breaking_off(after: int, times: int = 1000, ranges: bool = True) -> Callable[[BaseHTTPRequestHandler], None]:
    """Close the connection after some bytes of the first few answers; later ones are whole."""
    left = [times]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers["Range"] if ranges else None
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        handler.send_response(206 if asked else 200)
        if asked:
            handler.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        handler.send_header("Content-Length", str(len(CONTENT) - start))
        handler.end_headers()
        left[0] -= 1
        handler.wfile.write(CONTENT[start : start + after] if left[0] >= 0 else CONTENT[start:])

    return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("SILODP_DATA_MIRROR", "SILODP_DATA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    yield running
    running.close()


def write_table(path: Path, *rows: tuple[str, str, str, str, bytes | str, int]) -> None:
    lines = ["dataset,version,file,address,mirror,bytes,sha256,licence"]
    for dataset, file, address, mirror, content, size in rows:
        digest = content if isinstance(content, str) else hashlib.sha256(content).hexdigest()
        lines.append(f"{dataset},1,{file},{address},{mirror},{size},{digest},none")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def table(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The dataset `insurance` as one random file, at /official and at the mirror /second of the server."""
    path = tmp_path / "datasets.csv"
    row = ("insurance", FILE, f"{server.base}/official", f"{server.base}/second", CONTENT, len(CONTENT))
    write_table(path, row)
    known = read_sources(path)
    monkeypatch.setattr(sources_module, "_table", lambda: known)
    return server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def get(cache: Path, mirror: Path | str | None = None, retries: int = 0, timeout: float = 5.0) -> list[Path]:
    return fetch(
        "insurance", cache=cache, mirror=mirror, progress=False, retries=retries, backoff=0.01, timeout=timeout
    )


def visible(cache: Path) -> list[str]:
    """What could be taken for data: files that are neither hidden nor partial."""
    files = [path for path in cache.rglob("*") if path.is_file()]
    return [path.relative_to(cache).as_posix() for path in files if not path.name.startswith(".")]


def failure(cache: Path, **options: object) -> str:
    """The error of a fetch that must fail: one line that names dataset and file; nothing left that looks like data."""
    with pytest.raises(FetchError) as caught:
        get(cache, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"insurance: {FILE}")
    assert visible(cache) == []
    return text


def test_official_address(table: Server, cache: Path) -> None:
    table.answers["/official"] = sending(CONTENT)
    assert get(cache) == [cache / FILE]
    assert (cache / FILE).read_bytes() == CONTENT
    assert visible(cache) == [FILE]
    assert not list(cache.rglob("*.part"))
    get(cache)
    assert table.requests == {"/official": 1}


def test_missing_everywhere_lists_every_address(table: Server, cache: Path) -> None:
    text = failure(cache)
    assert f"{table.base}/official: HTTP status 404" in text
    assert f"{table.base}/second: HTTP status 404" in text
    assert table.requests == {"/official": 1, "/second": 1}


def test_second_address_when_the_first_fails(table: Server, cache: Path) -> None:
    table.answers["/second"] = sending(CONTENT)
    assert get(cache)[0].read_bytes() == CONTENT


def test_dead_host(table: Server, cache: Path, tmp_path: Path) -> None:
    dead = Server()
    dead.close()
    table.answers["/official"] = sending(CONTENT)
    assert get(cache, mirror=dead.base)[0].read_bytes() == CONTENT


def test_busy_server_is_asked_again(table: Server, cache: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if table.requests["/official"] < 3:
            handler.send_error(503)
        else:
            sending(CONTENT)(handler)

    table.answers["/official"] = answer
    assert get(cache, retries=2)[0].read_bytes() == CONTENT
    assert table.requests == {"/official": 3}


def test_retries_end(table: Server, cache: Path) -> None:
    table.answers["/official"] = lambda handler: handler.send_error(500)
    assert "HTTP status 500 Internal Server Error, in 3 attempts" in failure(cache, retries=2)
    assert table.requests == {"/official": 3, "/second": 1}


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_page_is_never_data(table: Server, cache: Path, kind: str) -> None:
    table.answers["/official"] = sending(PAGE, **{"Content-Type": kind})
    assert "/official: an HTML page in place of the file" in failure(cache)


def test_page_of_the_right_length_is_never_data(table: Server, cache: Path) -> None:
    table.answers["/official"] = sending(PAGE.ljust(len(CONTENT)))
    assert "an HTML page in place of the file" in failure(cache, retries=3)
    assert table.requests["/official"] == 1


def test_redirect_to_a_page(table: Server, cache: Path) -> None:
    def redirect(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/login")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    table.answers["/official"] = redirect
    table.answers["/login"] = sending(PAGE, **{"Content-Type": "text/html"})
    assert f"an HTML page in place of the file, after a redirect to {table.base}/login" in failure(cache)


def test_wrong_bytes_of_the_right_length(table: Server, cache: Path) -> None:
    wrong = bytes(len(CONTENT))
    table.answers["/official"] = sending(wrong)
    text = failure(cache)
    assert f"expected sha256:{hashlib.sha256(CONTENT).hexdigest()} (200000 bytes)" in text
    assert f"found {hashlib.sha256(wrong).hexdigest()}" in text
    assert not list(cache.rglob("*.part"))


@pytest.mark.parametrize(("content", "reason"), [(CONTENT[:-1], "wrong checksum"), (CONTENT + b"!", "more than the")])
def test_another_file_is_not_asked_for_twice(table: Server, cache: Path, content: bytes, reason: str) -> None:
    table.answers["/official"] = sending(content)
    assert reason in failure(cache, retries=3)
    assert table.requests["/official"] == 1
    assert not list(cache.rglob("*.part"))


def test_truncation_is_no_data_and_resumes_next_time(table: Server, cache: Path) -> None:
    table.answers["/official"] = breaking_off(after=150_000)
    assert f"truncated: the connection broke off after 150000 of {len(CONTENT)} bytes" in failure(cache)
    assert get(cache)[0].read_bytes() == CONTENT
    assert table.ranges[-1] == "bytes=150000-"


def test_resumes_within_one_call(table: Server, cache: Path) -> None:
    table.answers["/official"] = breaking_off(after=90_000, times=2)
    assert get(cache, retries=2)[0].read_bytes() == CONTENT
    assert table.ranges == [None, "bytes=90000-", "bytes=180000-"]


def test_server_without_ranges_starts_again(table: Server, cache: Path) -> None:
    table.answers["/official"] = breaking_off(after=90_000, times=1, ranges=False)
    assert get(cache, retries=1)[0].read_bytes() == CONTENT
    assert table.ranges == [None, "bytes=90000-"]


def test_part_of_another_file_is_dropped(table: Server, cache: Path) -> None:
    part = cache / "insurance" / ".insurance.csv.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(bytes(1000))
    table.answers["/official"] = breaking_off(after=len(CONTENT))
    assert get(cache)[0].read_bytes() == CONTENT
    assert table.ranges == ["bytes=1000-", None]


def test_part_longer_than_the_file_is_dropped(table: Server, cache: Path) -> None:
    part = cache / "insurance" / ".insurance.csv.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(bytes(len(CONTENT) + 1))
    table.answers["/official"] = sending(CONTENT)
    assert get(cache)[0].read_bytes() == CONTENT


def test_what_a_killed_fetch_left_is_taken_up_or_removed(table: Server, cache: Path, tmp_path: Path) -> None:
    """Killed before its first byte, while unpacking a mirror's copy, or while writing the listing."""
    table.answers["/official"] = sending(CONTENT)
    part = cache / "insurance" / ".insurance.csv.part"
    part.parent.mkdir(parents=True)
    (cache / ".insurance.lock").touch()
    dead = subprocess.Popen(["true"])
    dead.wait()
    machine = f"{zlib.crc32(platform.node().encode()):08x}"
    listing = tmp_path / "data" / "insurance.csv"
    listing.parent.mkdir()
    left = listing.with_name(f".insurance.csv.{machine}.{dead.pid}.csv")
    for file in (part, left):
        file.touch()
    assert main(["-q", "fetch", "insurance", "--cache", str(cache), "--listing", str(listing)]) == 0
    assert (cache / FILE).read_bytes() == CONTENT
    assert [path.name for path in listing.parent.iterdir()] == ["insurance.csv"]
    assert [path.name for path in cache.rglob("*") if path.is_file()] == [".insurance.lock", "insurance.csv"]


def test_stall_ends(table: Server, cache: Path) -> None:
    release = threading.Event()

    def stall(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(CONTENT)))
        handler.end_headers()
        handler.wfile.write(CONTENT[:1000])
        handler.wfile.flush()
        release.wait(10)

    table.answers["/official"] = stall
    start = time.monotonic()
    try:
        assert "no answer for 0.2 s" in failure(cache, timeout=0.2)
    finally:
        release.set()
    assert time.monotonic() - start < 5


def _fetch_in_another_process(table: Path, cache: Path, start: object) -> None:
    known = read_sources(table)
    sources_module._table = lambda: known  # type: ignore[assignment]
    start.wait()  # type: ignore[attr-defined]
    get(cache)


def test_two_processes_download_once(table: Server, cache: Path, tmp_path: Path) -> None:
    def slowly(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.5)
        sending(CONTENT)(handler)

    table.answers["/official"] = slowly
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    jobs = [
        context.Process(target=_fetch_in_another_process, args=(tmp_path / "datasets.csv", cache, start))
        for _ in range(2)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    assert [job.exitcode for job in jobs] == [0, 0]
    assert table.requests == {"/official": 1}
    assert (cache / FILE).read_bytes() == CONTENT


def test_mirror_folder_needs_no_network(table: Server, cache: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "insurance").mkdir(parents=True)
    (mirror / FILE).write_bytes(CONTENT)
    assert get(cache, mirror=mirror)[0].read_bytes() == CONTENT
    assert get(tmp_path / "other", mirror=mirror.as_uri())[0].read_bytes() == CONTENT
    assert not table.requests


def test_mirror_from_the_environment(table: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table.answers[f"/pub/{FILE}"] = sending(CONTENT)
    monkeypatch.setenv("SILODP_DATA_MIRROR", f"{table.base}/pub/")
    monkeypatch.setenv("SILODP_DATA_CACHE", str(cache))
    assert fetch("insurance", progress=False) == [cache / FILE]
    assert table.requests == {f"/pub/{FILE}": 1}
    assert local_files("insurance") == {FILE: cache / FILE}


def test_mirror_without_the_file_is_passed_over(table: Server, cache: Path, tmp_path: Path) -> None:
    table.answers["/official"] = sending(CONTENT)
    assert get(cache, mirror=tmp_path / "nowhere")[0].read_bytes() == CONTENT


def test_wrong_file_in_the_mirror_folder_is_an_error(table: Server, cache: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "insurance").mkdir(parents=True)
    (mirror / FILE).write_bytes(CONTENT[:-1])
    table.answers["/official"] = sending(CONTENT)
    text = failure(cache, mirror=mirror)
    assert str(mirror / FILE) in text
    assert f"expected sha256:{hashlib.sha256(CONTENT).hexdigest()} (200000 bytes), found 199999 bytes" in text
    assert not table.requests


def test_wrong_file_at_the_mirror_address_is_an_error(table: Server, cache: Path) -> None:
    table.answers[f"/pub/{FILE}"] = sending(CONTENT[:-1])
    table.answers["/official"] = sending(CONTENT)
    assert "wrong checksum: expected sha256:" in failure(cache, mirror=f"{table.base}/pub")
    assert table.requests == {f"/pub/{FILE}": 1}


def test_mirror_of_an_unknown_kind(table: Server, cache: Path) -> None:
    with pytest.raises(ValueError, match="ftp://x"):
        get(cache, mirror="ftp://x")


def test_wrong_file_in_the_cache_is_replaced_and_never_loaded(table: Server, cache: Path) -> None:
    (cache / "insurance").mkdir(parents=True)
    (cache / FILE).write_bytes(b"age,charges\n")
    with pytest.raises(FetchError, match=r"insurance/insurance.csv in .* is not the published file: wrong checksum"):
        DATASETS["insurance"].load(cache)
    table.answers["/official"] = sending(CONTENT)
    assert get(cache)[0].read_bytes() == CONTENT


def test_wrong_file_in_the_cache_goes_even_when_no_other_is_found(table: Server, cache: Path) -> None:
    (cache / "insurance").mkdir(parents=True)
    (cache / FILE).write_bytes(b"age,charges\n")
    failure(cache)


def test_missing_file_says_what_to_do(table: Server, cache: Path) -> None:
    with pytest.raises(FetchError, match="run `silodp fetch insurance` first"):
        DATASETS["insurance"].load(cache)


def test_unwritable_cache(table: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FetchError, match="insurance: "):
        get(tmp_path / "file" / "cache")


def test_embedded_and_unknown_datasets(cache: Path) -> None:
    assert fetch("digits", cache=cache) == []
    assert not cache.exists()
    with pytest.raises(ValueError, match="no dataset is called 'cifar100'; the datasets are cifar10, "):
        fetch("cifar100", cache=cache)


# An archive: the members are the dataset's files.

MEMBERS = {"data/one": CONTENT[:5000], "data/two": CONTENT[5000:9000]}


def archive(entries: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return stream.getvalue()


def zipped(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return stream.getvalue()


def serve_archive(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, most: int | None = None
) -> None:
    """At /all.tar.gz; with `most` one whose publisher gives no checksum."""
    address = f"{server.base}/all.tar.gz"
    digest = "" if most else "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()
    rows = [
        ("insurance", f"insurance/{name}", f"{address}#{name}", "", data, len(data)) for name, data in MEMBERS.items()
    ]
    size = most or len(content)
    write_table(tmp_path / "a.csv", ("insurance", "insurance/all.tar.gz", address, "", digest, size), *rows)
    known = read_sources(tmp_path / "a.csv")
    monkeypatch.setattr(sources_module, "_table", lambda: known)
    server.answers["/all.tar.gz"] = sending(content)


def test_archive_gives_its_members_and_nothing_else(
    server: Server, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"readme.html": PAGE, "../../escaped": b"out", "/tmp/absolute-escaped": b"out"}
    serve_archive(server, tmp_path, monkeypatch, archive({**MEMBERS, **extra}))
    assert get(cache) == [cache / "insurance" / name for name in MEMBERS]
    assert sorted(visible(cache)) == ["insurance/data/one", "insurance/data/two"]
    assert {name: (cache / "insurance" / name).read_bytes() for name in MEMBERS} == MEMBERS
    assert not list(tmp_path.rglob("escaped"))
    assert not os.path.exists("/tmp/absolute-escaped")
    (cache / "insurance" / "data" / "two").unlink()
    get(cache)
    assert server.requests == {"/all.tar.gz": 2}


@pytest.mark.parametrize("length", [True, False])
def test_a_zip_without_a_checksum_of_its_own_gives_members_that_have_one(
    server: Server, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, length: bool
) -> None:
    content = zipped(MEMBERS | {"../../escaped": b"out"})
    serve_archive(server, tmp_path, monkeypatch, content, most=20_000)
    if not length:

        def plain(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(content)

        server.answers["/all.tar.gz"] = plain
    # What an attempt that broke off has left may be of another archive.
    left = cache / "insurance" / ".all.tar.gz.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    get(cache)
    assert {name: (cache / "insurance" / name).read_bytes() for name in MEMBERS} == MEMBERS
    assert sorted(visible(cache)) == ["insurance/data/one", "insurance/data/two"]
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zipped({**MEMBERS, "data/two": b"wrong"}), "wrong checksum: expected sha256"),
        (zipped({**MEMBERS, "data/two": bytes(5_000_000)}), r"wrong checksum: .* \(4001 bytes\)"),
        (zipped({"data/one": MEMBERS["data/one"]}), "lacks data/two"),
        (zipped(MEMBERS)[:-30], "could not be opened"),
        (zipped(MEMBERS).replace(MEMBERS["data/one"][:4], b"\0\0\0\0"), "Bad CRC"),
        (zipped(MEMBERS | {"more": CONTENT + CONTENT[::-1]}), "more than the 20000 bytes of the file at most"),
    ],
)
def test_a_bad_zip_without_a_checksum(
    server: Server, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, reason: str
) -> None:
    serve_archive(server, tmp_path, monkeypatch, content, most=20_000)
    with pytest.raises(FetchError, match=reason) as caught:
        get(cache)
    assert "\n" not in str(caught.value)
    assert not {"insurance/data/two", "insurance/all.tar.gz"} & set(visible(cache))


def test_only_an_archive_may_lack_a_checksum(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", ("insurance", FILE, "http://x", "", "", 5))
    with pytest.raises(ValueError, match="nothing for an archive only"):
        read_sources(tmp_path / "a.csv")


def test_archive_from_a_mirror_that_has_its_members(
    server: Server, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_archive(server, tmp_path, monkeypatch, archive(MEMBERS))
    for name, content in MEMBERS.items():
        path = tmp_path / "mirror" / "insurance" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    get(cache, mirror=tmp_path / "mirror")
    assert not server.requests


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (archive({"data/one": MEMBERS["data/one"]}), "lacks data/two"),
        (archive({**MEMBERS, "data/two": b"wrong"}), "wrong checksum: expected sha256"),
        (archive({"data/one": MEMBERS["data/one"]}, {"data/two": "/etc/passwd"}), "lacks data/two"),
        (archive(MEMBERS)[:-3000], "Compressed file ended"),
        (b"not an archive", "could not be opened"),
    ],
)
def test_bad_archive(
    server: Server, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, reason: str
) -> None:
    serve_archive(server, tmp_path, monkeypatch, content)
    with pytest.raises(FetchError, match=reason) as caught:
        get(cache)
    assert "\n" not in str(caught.value)
    assert set(visible(cache)) <= {"insurance/data/one"}


def test_table_rows_must_be_usable(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_table(path, ("a", "a/b", "http://x/b", "", "abc", 3))
    with pytest.raises(ValueError, match="64 hex digits"):
        read_sources(path)
    write_table(path, ("a", "../b", "http://x/b", "", b"abc", 3))
    with pytest.raises(ValueError, match="below the cache folder"):
        read_sources(path)
    write_table(path, ("a", "a/b", "http://[x#b", "", b"abc", 3))
    with pytest.raises(ValueError, match=r"t.csv: not a table of data files \(Invalid IPv6 URL\)"):
        read_sources(path)
    write_table(path, ("a", "a/b", "http://x/all.tar#b", "", b"abc", 3))
    with pytest.raises(ValueError, match=r"taken from http://x/all.tar, which has no row"):
        read_sources(path)


def test_real_files_from_a_mirror(needs_data: Callable[[str], Path], cache: Path) -> None:
    paths = fetch("insurance", cache=cache, mirror=needs_data("insurance"), progress=False)
    assert [path.stat().st_size for path in paths] == [55_628]
