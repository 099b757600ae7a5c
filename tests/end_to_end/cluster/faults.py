"""The table of faults: what was done to a rebuild, and what came of it."""

from dataclasses import dataclass

BEGIN, END = "<!-- faults: written by make test-slurm -->", "<!-- end of faults -->"


@dataclass
class Fault:
    """A row.

    Attributes:
        fault: what was done.
        happened: what followed.
        redone: the jobs that were started again, in words.
        equal: whether all tables are those of an undisturbed local run.
    """

    fault: str
    happened: str
    redone: str
    equal: bool


def table(rows: list[Fault]) -> str:
    """The rows as a Markdown table."""
    lines = ["| fault | what happened | what was redone | equal |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.fault} | {row.happened} | {row.redone} | {'yes' if row.equal else 'no'} |" for row in rows]
    return "\n".join(lines)


def page_with(rows: list[Fault], text: str) -> str:
    """A page's text with the table between its marks, rows of other faults kept; ValueError where it has none."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"page: marks: must hold {BEGIN} and, after it, {END}, once each")
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    lines = {line.split(" | ")[0]: line for line in (old.strip() or table([])).splitlines()}
    lines |= {line.split(" | ")[0]: line for line in table(rows).splitlines()}
    return "\n".join([f"{before}{BEGIN}", *lines.values(), f"{END}{after}"])
