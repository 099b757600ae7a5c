"""Figures as SVG: small, the same every time, with the value of a point where a pointer rests on it.

The files stand by themselves and inside the report page: `<title>` says a point's values, `data-series` names what
belongs to one curve, and `data-key` marks the legend's words for it, by which the page's script shows and hides it.
"""

import io
import re
import zlib
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as tree

from matplotlib.figure import Figure, FigureBase
from matplotlib.text import Text

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_SAID, _CROP, _KEY = "_silodp_said", "_silodp_crop", "key:"
# The gid of a title, which the report page leaves out: it has a heading of its own.
TITLE = "text:title"
# What a browser draws anyhow.
_DEFAULTS = ("fill-opacity: 1", "stroke-opacity: 1", "stroke-miterlimit: 100000", "text-anchor: start", "opacity: 1")
_NUMBER = re.compile(r"-?\d*\.\d+(?:e[-+]?\d+)?")


def say(figure: FigureBase | None, gid: str, values: Iterable[str]) -> None:
    """What rests on the points of the artist called `gid`, in their order; of points that are not drawn, nothing."""
    said = getattr(figure, _SAID, None)
    if said is None:
        said = {}
        setattr(figure, _SAID, said)
    said[gid] = list(values)


def crop(figure: Figure, height: float) -> None:
    """Say how many inches at the top of the figure are its title alone."""
    setattr(figure, _CROP, height)


def name_key(text: Text, gid: str | None) -> None:
    """Mark a legend's words as those of the curve called `gid`."""
    if gid:
        text.set_gid(_KEY + _series(gid))


def _series(gid: str) -> str:
    return gid.partition(":")[2] or gid


def svg_text(figure: Figure, name: str) -> str:
    """The figure as SVG without dates; ids begin with a digest of `name`, so that many figures fit into one page."""
    drawn = io.BytesIO()
    # What is paper there is transparent on the report page, which may be dark.
    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set_gid("background:paper")
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    tree.register_namespace("", _SVG)
    tree.register_namespace("xlink", _XLINK)
    root = tree.fromstring(drawn.getvalue())
    for element in list(root):
        if element.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}defs") and not _holds_clips(element):
            root.remove(element)
    said: dict[str, Sequence[str]] = getattr(figure, _SAID, {})
    _name(root, said)
    _flatten(root)
    _shorten(root, f"f{zlib.crc32(name.encode()):08x}")
    root.attrib.pop("width", None)
    root.attrib.pop("height", None)
    if height := getattr(figure, _CROP, 0.0):
        root.set("data-title", f"{72 * height:g}")
    title = tree.Element(f"{{{_SVG}}}title")
    title.text = name
    root.insert(0, title)
    text = tree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text.replace(' style=""', "")) + "\n"


def _holds_clips(element: tree.Element) -> bool:
    return element.find(f"{{{_SVG}}}clipPath") is not None or element.find(f"{{{_SVG}}}pattern") is not None


def _name(root: tree.Element, said: dict[str, Sequence[str]]) -> None:
    """Turn the ids of artists into what page and reader use: series, keys, and the values on their points."""
    for element in root.iter(f"{{{_SVG}}}g"):
        gid = element.get("id", "")
        if gid.startswith(_KEY):
            element.set("data-key", _series(gid))
        elif ":" in gid:
            element.set("data-series", _series(gid))
            points = [one for one in element.iter(f"{{{_SVG}}}use")]
            for point, words in zip(points, said.get(gid, ()), strict=False):
                tree.SubElement(point, f"{{{_SVG}}}title").text = words


def _flatten(element: tree.Element) -> None:
    """Take away groups that say nothing, and hoist what is defined inside them."""
    for child in list(element):
        _flatten(child)
        if child.tag == f"{{{_SVG}}}g":
            child.attrib.pop("id", None)
            if not child.attrib:
                place = list(element).index(child)
                element.remove(child)
                for offset, grandchild in enumerate(list(child)):
                    element.insert(place + offset, grandchild)
        elif child.tag == f"{{{_SVG}}}defs" and len(child) == 0:
            element.remove(child)


def _shorten(root: tree.Element, prefix: str) -> None:
    """Numbers to a hundredth of a point, no style that is the default, and ids that are this figure's own."""
    ids = {one.get("id"): f"{prefix}{i:x}" for i, one in enumerate(e for e in root.iter() if e.get("id"))}
    for element in root.iter():
        element.tail = None
        for key, value in list(element.attrib.items()):
            if key == "id":
                new = ids[value]
            elif key == f"{{{_XLINK}}}href":
                del element.attrib[key]
                key, new = "href", "#" + ids.get(value[1:], value[1:])
            elif key == "style":
                parts = [part.strip() for part in value.split(";")]
                new = ";".join(_rounded(part.replace(": ", ":")) for part in parts if part and part not in _DEFAULTS)
            else:
                new = value if key.startswith("data-") else _rounded(re.sub(r"\s+", " ", value).strip())
            if key == "clip-path" or "url(#" in new:
                new = re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{ids.get(found[1], found[1])})", new)
            element.set(key, new)


def _rounded(text: str) -> str:
    if "url(" in text or "#" in text:
        return text
    return _NUMBER.sub(lambda found: f"{round(float(found[0]), 2):g}", text)
