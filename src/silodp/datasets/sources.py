"""The table of downloaded files, `config/datasets.csv`: one row a file, with its addresses and its checksum.

Addresses in messages go without the user, password and token of a private mirror.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote, urldefrag, urlsplit, urlunsplit

# In a checkout a link to the table of `config/`.
_TABLE = Path(__file__).with_name("datasets.csv")


@dataclass(frozen=True)
class Source:
    """One file of a data set.

    Attributes:
        file: path of the file below the cache folder, and below a mirror.
        address: official address. A part after "#" is the file's path inside the archive at that address; the archive
            has a row of its own.
        mirrors: further addresses of the same bytes.
        digest: "sha256:…", or "md5:…" for an archive whose publisher gives only an MD5; empty for an archive whose
            publisher gives no checksum, as each of its members has one.
    """

    dataset: str
    version: str
    file: str
    address: str
    mirrors: tuple[str, ...]
    size: int
    digest: str
    licence: str

    @property
    def member(self) -> str:
        """The path inside the archive at the address; empty for a file that has its own address."""
        return urldefrag(self.address).fragment


@dataclass(frozen=True)
class Sources:
    """The files of one data set, and the archives that hold some of them, by the archives' address."""

    files: tuple[Source, ...]
    archives: dict[str, Source]


def read_sources(path: Path) -> dict[str, Sources]:
    """Data set → its files, from the table at `path`; ValueError, in one line that names the table, for a bad row."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            rows = [_source(row) for row in csv.DictReader(stream)]
        return {name: _group([row for row in rows if row.dataset == name]) for name in {row.dataset for row in rows}}
    except (ValueError, csv.Error, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a table of data files: {' '.join(str(error).split())[:300]}") from error


def sources(name: str) -> Sources:
    """The files of the data set `name`; ValueError when the table has none."""
    if name not in _table():
        raise ValueError(f"no dataset called {name!r} is downloaded; config/datasets.csv has {', '.join(_table())}")
    return _table()[name]


def source_of(file: str) -> Source | None:
    """The row of the file at the path `file` below the cache folder; None where the table has none."""
    return next((row for known in _table().values() for row in known.files if row.file == file), None)


@cache
def _table() -> dict[str, Sources]:
    return read_sources(_TABLE)


def _source(row: dict[str, str]) -> Source:
    digest = row["sha256"] if ":" in row["sha256"] or not row["sha256"] else f"sha256:{row['sha256']}"
    if not re.fullmatch("|sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", digest):
        raise ValueError(f"{row['file']}: sha256: {row['sha256'][:80]!r}: must be 64 hex digits, or md5: and 32")
    plain = {key: row[key] for key in ("dataset", "version", "file", "address", "licence")}
    return Source(**plain, mirrors=tuple(row["mirror"].split()), size=int(row["bytes"]), digest=digest)


def _group(rows: list[Source]) -> Sources:
    opened = {urldefrag(row.address).url for row in rows if row.member}
    archives = {row.address: row for row in rows if row.address in opened}
    files = tuple(row for row in rows if row.address not in opened)
    return Sources(files, archives)


# To the next space: a password may hold quotes and brackets.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(\S+)")
# A query without its address, as HTTP libraries put it into their errors.
_QUERY = re.compile(r"\?[^\s=]*=\S*")


def without_credentials(text: str) -> str:
    """`text` with every address in it cut to scheme, host, port and path."""
    # What stands behind the last @ and before a query; a password may hold a slash, a question mark or a hash.
    cut = _ADDRESS.sub(lambda match: match[1] + re.split(r"[?#]", match[2].rpartition("@")[2], maxsplit=1)[0], text)
    return _QUERY.sub("", cut)


def below(address: str, file: str) -> str:
    """The address of `file` under a mirror's address; a token in the mirror's query stays behind the path."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{quote(file)}", parts.query, ""))
