"""The table of downloaded files, `config/datasets.csv`: one row a file, with its addresses and its checksum."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urldefrag

# In a checkout the table of `config/`; in a built package the copy that lies beside this file.
_PLACES = (
    Path(__file__).resolve().parents[3] / "config" / "datasets.csv",
    Path(__file__).with_name("datasets.csv"),
)


@dataclass(frozen=True)
class Source:
    """One file of a dataset.

    Attributes:
        dataset: the dataset's name.
        version: the edition of the data.
        file: the path of the file below the cache folder, and below a mirror.
        address: its official address. A part after "#" is the file's path inside the archive at that address, which
            then has a row of its own.
        mirrors: further addresses of the same bytes.
        size: length in bytes; of an archive without a checksum the most that is taken from its address.
        digest: "sha256:…", or "md5:…" for an archive whose publisher gives only that, empty where it gives none (each
            of its members has a SHA-256).
        licence: the terms of the data.
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
    """The files of one dataset, and the archives that they may be taken from, by the archives' address."""

    files: tuple[Source, ...]
    archives: dict[str, Source]


def read_sources(path: Path) -> dict[str, Sources]:
    """Read a table of files; ValueError, in one line that names it, for a row that is not usable."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            rows = [_source(row, path) for row in csv.DictReader(stream)]
        datasets = dict.fromkeys(row.dataset for row in rows)
        return {name: _group([row for row in rows if row.dataset == name], path) for name in datasets}
    except (ValueError, csv.Error, LookupError, TypeError, AttributeError) as error:
        text = " ".join(str(error).split())[:300]
        raise ValueError(
            text if text.startswith(str(path)) else f"{path}: not a table of data files ({text})"
        ) from error


def sources(name: str) -> Sources:
    """The files of the dataset `name`; ValueError when the table has none."""
    table = _table()
    if name not in table:
        raise ValueError(f"no dataset called {name!r} is downloaded; config/datasets.csv has {', '.join(table)}")
    return table[name]


def source_of(file: str) -> Source | None:
    """The row of the file at the path `file` below the cache folder; None where the table has none."""
    return next((row for one in _table().values() for row in one.files if row.file == file), None)


@cache
def _table() -> dict[str, Sources]:
    for place in _PLACES:
        if place.is_file():
            return read_sources(place)
    raise FileNotFoundError(f"the table of data files is missing; it was looked for at {_PLACES[0]} and {_PLACES[1]}")


def _source(row: dict[str, str], path: Path) -> Source:
    digest = row["sha256"] if ":" in row["sha256"] or not row["sha256"] else f"sha256:{row['sha256']}"
    algorithm, _, hexadecimal = digest.partition(":")
    if digest and {"sha256": 64, "md5": 32}.get(algorithm) != len(hexadecimal):
        raise ValueError(
            f"{path}: {row['file']}: sha256 is {row['sha256'][:80]!r}; 64 hex digits or md5: and 32 are allowed"
        )
    relative = Path(row["file"])
    if relative.is_absolute() or ".." in relative.parts:
        raise ValueError(f"{path}: file is {row['file'][:80]!r}; it must be a path below the cache folder")
    return Source(
        dataset=row["dataset"],
        version=row["version"],
        file=row["file"],
        address=row["address"],
        mirrors=tuple(row["mirror"].split()),
        size=int(row["bytes"]),
        digest=digest,
        licence=row["licence"],
    )


def _group(rows: list[Source], path: Path) -> Sources:
    opened = {urldefrag(row.address).url for row in rows if row.member}
    archives = {row.address: row for row in rows if row.address in opened}
    if missing := opened - set(archives):
        raise ValueError(f"{path}: files are taken from {missing.pop()}, which has no row of its own")
    files = tuple(row for row in rows if row.address not in opened)
    if unchecked := [row.file for row in files if not row.digest]:
        raise ValueError(
            f"{path}: {unchecked[0]}: sha256 is ''; 64 hex digits are allowed, nothing for an archive only"
        )
    return Sources(files, archives)
