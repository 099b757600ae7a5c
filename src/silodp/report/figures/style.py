"""The one look of all figures: labels, colours that differ in grey too, and files that come out the same every time."""

import gc
import io
import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from silodp.algorithms import traits
from silodp.algorithms.base import Look
from silodp.files import write_atomically, write_text
from silodp.report.figures.svg import svg_text

RC: dict[str, Any] = {
    # The first ships with matplotlib, so no machine measures with another font; browsers that lack it take the others.
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 3.4,
    "lines.linewidth": 1.5,
    "lines.markersize": 5.5,
    "hatch.linewidth": 0.6,
    "pdf.fonttype": 3,  # text can be searched; 42, which some publishers ask for, doubles the time of a figure
    "svg.hashsalt": "silodp",
    "svg.fonttype": "none",  # text stays text: searched, read aloud, and small
    "savefig.dpi": 150,
}

# For algorithms that bring no look of their own, which come last, by name.
_OTHER_LOOKS = [
    Look(99, "#30102f", "D", (0, (1.2, 1.2))),
    Look(99, "#6b4a9c", "P", (0, (8, 2))),
    Look(99, "#9fd3e6", "X", (0, (3, 1, 1, 1))),
]
# Non-private: colour of the line, its dashes, and the hatch of its band.
_BASELINE_LOOKS = [
    ("#000000", (0, (7, 2, 1, 2)), "////"),
    ("#6e6e6e", (0, (1, 1.5)), "\\\\\\\\"),
    ("#3c3c3c", (0, (3, 2)), "----"),
    ("#969696", (0, (9, 3)), "||||"),
]


class BaselineLook(NamedTuple):
    """How one non-private algorithm is drawn: a horizontal line and a hatched band."""

    colour: str
    line: Any
    hatch: str


def label(algorithm: str, private: bool = True, reading: object = "") -> str:
    """An algorithm's name in figures.

    `reading` says by which sums an algorithm for sums was run: handed over exactly, or by the shuffle protocol P_vec.
    """
    name, summed, *_ = traits(algorithm)
    if summed:
        sums = "P_vec" if "summation=shuffled" in str(reading) else "ideal sum"
        return f"SDP {name} ({sums})" if private else f"{name} (sums, non-private)"
    return f"ISRL-DP {name}" if private else f"{name} (non-private)"


def in_order(algorithms: Iterable[str]) -> list[str]:
    """Each name once, by the places in their looks, then those without one by name."""
    places = {name: (look.place if (look := traits(name).look) else 99, name) for name in set(algorithms)}
    return sorted(places, key=places.__getitem__)


def looks(algorithms: Iterable[str]) -> dict[str, Look]:
    """A look for each private algorithm; those without one of their own share the spare ones in turn, by name."""
    spare = itertools.cycle(_OTHER_LOOKS)
    return {name: traits(name).look or next(spare) for name in in_order(algorithms)}


def baseline_looks(algorithms: Iterable[str]) -> dict[str, BaselineLook]:
    """A look for each non-private algorithm, in the order of `in_order`."""
    return {
        name: BaselineLook(*_BASELINE_LOOKS[i % len(_BASELINE_LOOKS)]) for i, name in enumerate(in_order(algorithms))
    }


def widths(count: int) -> list[float]:
    """Line widths of `count` curves, each thinner than the one below it: of two that coincide both are seen."""
    return np.linspace(2.6, 1.3, count).tolist() if count > 1 else [1.5] * count


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """`colour` mixed with white; opaque, because hatches in a PDF know no transparency."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return (1 - share * (1 - red), 1 - share * (1 - green), 1 - share * (1 - blue))


def inside(colour: str) -> str:
    """White or black, whichever is seen inside a marker of `colour`."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.6 else "black"


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib's own defaults plus `RC`, whatever the user's matplotlibrc says."""
    thresholds = gc.get_threshold()
    # Drawing makes millions of objects that live until the file is written: searching them takes a sixth of the time.
    gc.set_threshold(100_000, 20, 100)
    try:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            for name, value in RC.items():
                matplotlib.rcParams[name] = value  # type: ignore[index]
            yield
    finally:
        gc.set_threshold(*thresholds)


FORMATS = ("pdf", "png", "svg")


def save(figure: Figure, stem: Path | str, formats: Collection[str] = FORMATS) -> list[Path]:
    """Write `stem.pdf`, `stem.png` (150 dpi) and `stem.svg`, each whole or not at all, without a date.

    The PNG file has 256 colours of its own, which makes it a third as large. The same figure gives the same bytes with
    the same matplotlib and Pillow.

    Args:
        figure: from one of this package's functions.
        stem: path without a suffix.
        formats: those of `FORMATS` that are wanted.

    Returns:
        The files' paths, in the order of `FORMATS`.
    """
    # A name may hold dots: with_suffix would cut it.
    paths = {one: Path(stem).with_name(f"{Path(stem).name}.{one}") for one in FORMATS if one in formats}
    with styled():
        if "pdf" in paths:
            with write_atomically(paths["pdf"]) as temporary:
                dates = {"CreationDate": None, "ModDate": None, "Creator": "silodp"}
                figure.savefig(temporary, format="pdf", metadata=dates)
        if "svg" in paths:
            write_text(svg_text(figure, Path(stem).name), paths["svg"])
        if "png" in paths:
            _save_png(figure, paths["png"])
    return list(paths.values())


def _save_png(figure: Figure, path: Path) -> None:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    with Image.open(drawn) as image, write_atomically(path) as temporary:
        # This way of choosing colours keeps white exactly white.
        reduced = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        reduced.save(temporary, format="png", dpi=(RC["savefig.dpi"],) * 2)
