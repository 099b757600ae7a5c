"""Figures as SVG: small, the same every time, with the value of a point where a pointer rests on it.

The files stand by themselves and inside the report page: `<title>` says a point's values, and `data-series` names what
belongs to one curve.
"""

import io
import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as tree

import matplotlib
from matplotlib.figure import Figure, FigureBase

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_WORDS = "_silodp_words"
_NOTE = "_silodp_note"
_NUMBER = re.compile(r"-?\d*\.\d{3,}(?:e[-+]?\d+)?")


def say(figure: FigureBase | None, gid: str, values: Iterable[str]) -> None:
    """What rests on the points of the artist called `gid`, in their order; nothing for points that are not drawn."""
    words(figure)[gid] = list(values)


def say_note(figure: FigureBase | None, note: str) -> None:
    """What a reader must know of a figure beside its legend: its description in SVG, not drawn."""
    setattr(figure, _NOTE, note)


def note_of(figure: FigureBase) -> str:
    """What `say_note` said of a figure; empty for nothing."""
    return getattr(figure, _NOTE, "")


def words(figure: FigureBase | None) -> dict[str, Sequence[str]]:
    """What rests on the points of a figure: gid of an artist → words."""
    if not hasattr(figure, _WORDS):
        setattr(figure, _WORDS, {})
    return getattr(figure, _WORDS)


def svg_text(figure: Figure, name: str) -> str:
    """The figure as SVG without dates; ids depend on `name`, so that many figures fit into one page."""
    drawn = io.StringIO()
    # What is paper there is transparent on the report page, which may be dark.
    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set_gid("background:paper")
    with matplotlib.rc_context({"svg.hashsalt": name}):
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(drawn, format="svg", metadata=metadata)
    tree.register_namespace("", _SVG)
    tree.register_namespace("xlink", _XLINK)
    root = tree.fromstring(drawn.getvalue())
    for group in root.iter(f"{{{_SVG}}}g"):
        gid = group.attrib.pop("id", "")
        if ":" in gid:
            group.set("data-series", gid.partition(":")[2])
            for point, value in zip(group.iter(f"{{{_SVG}}}use"), words(figure).get(gid, ()), strict=False):
                tree.SubElement(point, f"{{{_SVG}}}title").text = value
    _flatten(root)
    for element in root.iter():
        element.tail = None
        for key, value in element.items():
            if key in ("d", "x", "y", "transform", "viewBox", "style"):
                element.set(key, _NUMBER.sub(lambda number: f"{float(number[0]):.2f}", " ".join(value.split())))
    if note := note_of(figure):
        description = tree.Element(f"{{{_SVG}}}desc")
        description.text = note
        root.insert(0, description)
    del root.attrib["width"], root.attrib["height"]
    return re.sub(r">\s+<", "><", tree.tostring(root, encoding="unicode")) + "\n"


def _flatten(element: tree.Element) -> None:
    """Replace groups that say nothing by what they hold."""
    children = []
    for child in element:
        _flatten(child)
        silent = child.tag == f"{{{_SVG}}}g" and not child.attrib
        children += list(child) if silent else [child]
    element[:] = children
