"""The one look of all figures: labels, colours that differ in grey too, and files that come out the same every time."""

import io
import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from silodp.algorithms import ALGORITHMS, families, traits
from silodp.algorithms.base import Look
from silodp.files import write_atomically
from silodp.report.figures.svg import LEGEND_SIZE, svg_text

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
    "legend.fontsize": LEGEND_SIZE,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.handletextpad": 0.35,
    "legend.columnspacing": 0.55,
    "lines.linewidth": 1.5,
    "lines.markersize": 5.5,
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


def label(algorithm: str, private: bool = True, reading: object = "") -> str:
    """An algorithm's name in figures; `reading` says whether its sums are ideal or by the shuffle protocol P_vec."""
    name, summed, *_ = traits(algorithm)
    if summed:
        sums = "P_vec" if "summation=shuffled" in str(reading) else "ideal sum"
        return f"SDP {name} ({sums})" if private else f"{name} (sums, non-private)"
    return f"ISRL-DP {name}" if private else f"{name} (non-private)"


def short_label(algorithm: object, private: bool = True) -> str:
    """An algorithm's name without the promise that all share."""
    return label(str(algorithm), private).removeprefix("ISRL-DP ")


def in_legend(text: str) -> str:
    """A label without the promise that all share; one of the better of several algorithms says so."""
    text = text.removeprefix("ISRL-DP ")
    for name, members in families(ALGORITHMS).items():
        text = re.sub(rf"^{re.escape(traits(name).label)}(?=,|$)", rf"\g<0> (better of {len(members)})", text)
    return text


def better_of(labels: Iterable[str]) -> str:
    """What the labels' `better of` means, in a sentence; empty where none is of such a family."""
    first = {text.removeprefix("ISRL-DP ").partition(",")[0] for text in labels}
    named = {traits(name).label: members for name, members in families(ALGORITHMS).items()}
    return " ".join(
        f"{name}: at each ε the better of {' and '.join(traits(of).label for of in members)} by training loss."
        for name, members in named.items()
        if name in first
    )


def sort_algorithms(algorithms: Iterable[str]) -> list[str]:
    """Each name once, by the places in their looks, then those without one by name."""
    places = {name: (look.place if (look := traits(name).look) else 99, name) for name in set(algorithms)}
    return sorted(places, key=places.__getitem__)


def looks(algorithms: Iterable[str]) -> dict[str, Look]:
    """A look for each private algorithm; those without one of their own share the spare ones in turn, by name."""
    spare = itertools.cycle(_OTHER_LOOKS)
    return {name: traits(name).look or next(spare) for name in sort_algorithms(algorithms)}


def widths(count: int) -> list[float]:
    """Line widths of `count` curves, each thinner than the one below it: of two that coincide both are seen."""
    return np.linspace(2.6, 1.3, count).tolist() if count > 1 else [1.5] * count


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """`colour` mixed with white; opaque, because hatches in a PDF know no transparency."""
    red, green, blue = (1 - share * (1 - part) for part in matplotlib.colors.to_rgb(colour))
    return red, green, blue


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib's own defaults plus `RC`, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)  # type: ignore[arg-type]
        yield


FORMATS = ("pdf", "png", "svg")


def save(figure: Figure, stem: Path | str, formats: Collection[str] = FORMATS) -> list[Path]:
    """Write `stem.pdf`, `stem.png` (150 dpi) and `stem.svg`, or those in `formats`, each whole or not at all.

    The same figure gives the same bytes with the same matplotlib and Pillow. Returns the paths written.
    """
    # A name may hold dots: with_suffix would cut it.
    paths = {suffix: Path(stem).with_name(f"{Path(stem).name}.{suffix}") for suffix in FORMATS if suffix in formats}
    with styled():
        for suffix, path in paths.items():
            with write_atomically(path) as temporary:
                if suffix == "svg":
                    temporary.write_text(svg_text(figure, path.stem), encoding="utf-8")
                elif suffix == "pdf":
                    metadata = {"CreationDate": None, "ModDate": None, "Creator": "silodp"}
                    figure.savefig(temporary, format="pdf", metadata=metadata)
                else:
                    _save_png(figure, temporary)
    return list(paths.values())


def _save_png(figure: Figure, path: Path) -> None:
    """With 256 colours a PNG file is a third as large."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    with Image.open(drawn) as image:
        # This way of choosing colours keeps white exactly white.
        reduced = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        reduced.save(path, format="png", dpi=(RC["savefig.dpi"],) * 2)
