"""Figures as SVG: small, the same every time, with the value of a point where a pointer rests on it.

The files stand by themselves and inside the report page: `<title>` says a point's values, and `data-series` names what
belongs to one curve.
"""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree as tree

import matplotlib
from matplotlib.figure import Figure, FigureBase

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
tree.register_namespace("", _SVG)
tree.register_namespace("xlink", _XLINK)
_WORDS = "_silodp_words"
_NOTE = "_silodp_note"
_PANEL = "panel"
# Points of text in a legend below axes, by which it is found.
LEGEND_SIZE = 8.3
_LEGEND = f"font-size: {LEGEND_SIZE}px"
_NUMBER = re.compile(r"-?\d*\.\d{3,}(?:e[-+]?\d+)?")


def say(figure: FigureBase | None, gid: str, values: Iterable[str]) -> None:
    """What rests on the points of the artist called `gid`, in their order; nothing for points that are not drawn."""
    gid_texts(figure)[gid] = list(values)


def say_note(figure: FigureBase | None, note: str) -> None:
    """What a reader must know of a figure beside its legend: its description in SVG, not drawn."""
    setattr(figure, _NOTE, note)


def note_of(figure: FigureBase) -> str:
    return getattr(figure, _NOTE, "")


def gid_texts(figure: FigureBase | None) -> dict[str, Sequence[str]]:
    """What rests on the points of a figure: gid of an artist → words."""
    if not hasattr(figure, _WORDS):
        setattr(figure, _WORDS, {})
    return getattr(figure, _WORDS)


def say_panels(figure: Figure) -> None:
    """Say where panels and legend of a figure stand, so that `panels` finds them: x, y, width and height in points."""
    renderer, scale = figure.canvas.get_renderer(), 72 / figure.dpi  # type: ignore[attr-defined]
    boxes: list[Any] = [(axes, axes.get_tightbbox(renderer), axes.get_window_extent()) for axes in figure.axes]
    # Panels are equally wide, so that their axes stand below each other on a phone.
    before = max(inner.x0 - box.x0 for _, box, inner in boxes)
    width = before + max(box.x1 - inner.x0 for _, box, inner in boxes)
    found: list[Any] = [(axes, inner.x0 - before, width, box) for axes, box, inner in boxes]
    found += [(legend, box.x0, box.width, box) for legend in figure.legends for box in [legend.get_window_extent()]]
    for artist, left, wide, box in found:
        corner = left - 2, figure.bbox.height - box.y1 - 2
        sizes = (*corner, wide + 4, box.height + 4)
        artist.set_gid(f"{_PANEL}:{' '.join(f'{value * scale:.0f}' for value in sizes)}")


def panels(svg: str) -> str:
    """A figure with panels as pictures that flow: a picture each, 1.6 px a point wide; another figure as it is."""
    root = tree.fromstring(svg)
    found = root.findall(".//*[@data-panel]")
    if not found:
        return svg
    parents = {child: parent for parent in root.iter() for child in parent}
    pictures = [root]
    for panel in reversed(found):
        parents[panel].remove(panel)
        box = panel.attrib.pop("data-panel")
        wide = f"width:{1.6 * float(box.split()[2]):.0f}px"
        picture = tree.Element(f"{{{_SVG}}}svg", {"viewBox": box, "style": wide})
        picture.append(panel)
        pictures.insert(1, picture)
    # What is left are the title, which stands above the pictures in words, and shapes that they refer to.
    root.set("class", "shared")
    return "".join(tree.tostring(picture, encoding="unicode") for picture in pictures)


def legend_apart(svg: str) -> tuple[str, str]:
    """A figure cut off above the legend below its axes, and that legend as a picture, "" without one.

    `data-whole` keeps the view of the whole figure. Marks of the legend may refer to shapes in the figure.
    """
    root = tree.fromstring(svg)
    places = [float(text.get("y", 0)) for text in root.findall(f"{{{_SVG}}}text") if _LEGEND in text.get("style", "")]
    if not places:
        return svg, ""
    left, _, width, height = map(float, root.get("viewBox", "").split())
    top = min(places) - 1.2 * LEGEND_SIZE
    parts = list(root)
    start = len(parts)
    while start and (parts[start - 1].tag == f"{{{_SVG}}}defs" or _height(parts[start - 1]) > top):
        start -= 1
    legend = tree.Element(f"{{{_SVG}}}svg", {"viewBox": f"{left:g} {top:g} {width:g} {height - top:g}"})
    legend.extend(part for part in parts[start:] if part.find(f"{{{_SVG}}}clipPath") is None)
    whole = tree.tostring(legend, encoding="unicode")
    root.set("data-whole", root.get("viewBox", ""))
    root.set("viewBox", f"{left:g} 0 {width:g} {top:g}")
    return tree.tostring(root, encoding="unicode"), whole


def _height(part: tree.Element) -> float:
    """Where a text, a mark or a line stands, in points from above; 0 for what has no place."""
    line = re.match(r"M \S+ (\S+)", part.get("d", ""))
    return float(line[1]) if line else float(part.get("y", 0))


def svg_text(figure: Figure, name: str) -> str:
    """The figure as SVG without dates; ids depend on `name`, so that many figures fit into one page."""
    drawn = io.StringIO()
    # What is paper there is transparent on the report page, which may be dark.
    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set_gid("background:paper")
    with matplotlib.rc_context({"svg.hashsalt": name}):
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(drawn, format="svg", metadata=metadata)
    root = tree.fromstring(drawn.getvalue())
    for group in root.iter(f"{{{_SVG}}}g"):
        gid = group.attrib.pop("id", "")
        kind, colon, name_of = gid.partition(":")
        if colon:
            group.set("data-panel" if kind == _PANEL else "data-series", name_of)
            for point, value in zip(group.iter(f"{{{_SVG}}}use"), gid_texts(figure).get(gid, ()), strict=False):
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
    children = []
    for child in element:
        _flatten(child)
        silent = child.tag == f"{{{_SVG}}}g" and not child.attrib
        children += list(child) if silent else [child]
    element[:] = children
