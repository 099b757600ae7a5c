"""What slow tests counted, as rows of the table of faults in docs/reliability.md."""

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- measured: written by the slow tests -->", "<!-- end of measured -->"
HEAD = ["| fault | tries | survived | how they ended |", "| --- | --- | --- | --- |"]


@dataclass(frozen=True)
class Tried:
    """A row: a kind of fault, how often it was tried, how often it ended as it must, and how."""

    fault: str
    tries: int
    survived: int
    ended: str


def page_with(rows: list[Tried], text: str) -> str:
    """A page's text whose table has these rows in the place of those of the same fault; others stay as they are."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"page: marks: must hold {BEGIN} and, after it, {END}, once each")
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in table.strip().splitlines()[len(HEAD) :]}
    lines |= {row.fault: f"| {row.fault} | {row.tries} | {row.survived} | {row.ended} |" for row in rows}
    return "\n".join([f"{before}{BEGIN}", *HEAD, *lines.values(), f"{END}{after}"])
