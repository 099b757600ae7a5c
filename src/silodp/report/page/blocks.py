"""What a report page consists of: sections with paragraphs, tables, figures and folded parts, shown by one template."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

# Words of a link and its address; None where the file is missing.
Link = tuple[str, str | None]


@dataclass(frozen=True)
class Text:
    """A paragraph; `style` is empty or one of `settings`, `missing`, `alarm` (page.css)."""

    kind: ClassVar[str] = "text"
    text: str
    style: str = ""
    links: Sequence[Link] = ()


@dataclass(frozen=True)
class Table:
    """Texts in rows; a `Word` is shown with its sign and colour. Rows in `alarms` are coloured."""

    kind: ClassVar[str] = "table"
    caption: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    alarms: Collection[int] = ()


@dataclass(frozen=True)
class Figure:
    """A figure at `anchor`: words `about` its experiment, above and below, `svg` (None: missing), and a `note`.

    With `panels` the picture is several, which flow.
    """

    anchor: str
    about: str
    heading: str
    caption: str
    svg: str | None
    files: Sequence[Link]
    note: str = ""
    legend: str = ""
    panels: bool = False

    @property
    def label(self) -> str:
        return ", ".join(words for words in (self.about, self.heading, self.caption) if words)


@dataclass(frozen=True)
class Figures:
    """Figures beside each other; with a `summary` a reader opens them."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure]
    summary: str = ""


@dataclass(frozen=True)
class Key:
    """The legend of all figures of a section, as a picture, and its words."""

    kind: ClassVar[str] = "key"
    svg: str
    label: str


@dataclass(frozen=True)
class Numbered:
    """A figure of a paper by its number: `tabs` of a word and a figure, the `command` that makes it, its `csv`."""

    kind: ClassVar[str] = "numbered"
    anchor: str
    heading: str
    command: str
    csv: str
    tabs: Sequence[tuple[str, Figure]]


Block = Text | Table | Figures | Key | Numbered


@dataclass(frozen=True)
class Section:
    """A heading with blocks and, below them, sections of their own; with `folded` a reader opens it."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    sections: Sequence["Section"] = ()
    folded: bool = False

    def figures(self) -> Iterator[Figure]:
        for block in self.blocks:
            if isinstance(block, Numbered):
                yield from (replace(figure, about=block.heading) for _, figure in block.tabs)
            yield from block.figures if isinstance(block, Figures) else ()
        for section in self.sections:
            yield from section.figures()
