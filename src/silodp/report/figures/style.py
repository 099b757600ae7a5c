"""The one look of all figures: labels, colours that differ in grey too, and files that come out the same every time."""

import gc
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

from silodp.results import write_atomically

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so no machine draws with another font
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
    "savefig.dpi": 150,
}

_PAPER_NAMES = {
    "minibatch_sgd": "MB-SGD",
    "local_sgd": "Local SGD",
    "spider": "SPIDER",
    "fedprox_spider": "FedProx-SPIDER",
    "fed_spider": "FedSPIDER",
    "accelerated_minibatch_sgd": "Acc. MB-SGD",
    "one_pass_accelerated_sgd": "One-pass acc. SGD",
    "shuffled_minibatch_sgd": "Shuffled MB-SGD",
    "prox_sgd": "Prox-SGD",
    "prox_svrg": "Prox-SVRG",
    "prox_pl_svrg": "Prox-PL-SVRG",
    "sdp_prox_sgd": "Prox-SGD",
    "sdp_prox_svrg": "Prox-SVRG",
    "sdp_prox_pl_svrg": "Prox-PL-SVRG",
    "sdp_fedprox_spider": "FedProx-SPIDER",
}
_ACRONYMS = {"sgd": "SGD", "dp": "DP", "mb": "MB", "gd": "GD", "erm": "ERM"}


class Look(NamedTuple):
    """How one algorithm is drawn: `colour` as #rrggbb, matplotlib's `marker` and `line` style."""

    colour: str
    marker: str
    line: Any


# Lightness L* of these steps by at least 10 within a figure, so that a grey print still tells them apart.
_LOOKS = {
    "spider": Look("#004488", "s", "-"),
    "fedprox_spider": Look("#004488", "s", "-"),  # never beside `spider`, of which it is a member
    "fed_spider": Look("#3a9a92", "v", (0, (6, 1.5, 1, 1.5, 1, 1.5))),
    "minibatch_sgd": Look("#b3485a", "o", (0, (5, 1.8))),
    "local_sgd": Look("#d9a62e", "^", (0, (5, 1.5, 1.2, 1.5))),
    "accelerated_minibatch_sgd": Look("#30102f", "D", (0, (1.2, 1.2))),
    "one_pass_accelerated_sgd": Look("#9fd3e6", "X", (0, (3, 1, 1, 1))),
    # Told by their markers beside the four whose colours they share.
    "prox_sgd": Look("#b3485a", "h", (0, (5, 1.8))),
    "prox_svrg": Look("#3a9a92", "<", (0, (6, 1.5, 1, 1.5, 1, 1.5))),
    "prox_pl_svrg": Look("#d9a62e", ">", (0, (5, 1.5, 1.2, 1.5))),
}
# An SDP form has the colour and marker of its ISRL-DP form, and this line.
_SDP_LINE = (0, (1, 1.3))
_OTHER_LOOKS = [
    Look("#30102f", "D", (0, (1.2, 1.2))),
    Look("#6b4a9c", "P", (0, (8, 2))),
    Look("#9fd3e6", "X", (0, (3, 1, 1, 1))),
]
# Non-private: colour of the line, its dashes, and the hatch of its band.
_BASELINE_LOOKS = [
    ("#000000", (0, (7, 2, 1, 2)), "////"),
    ("#6e6e6e", (0, (1, 1.5)), "\\\\\\\\"),
    ("#3c3c3c", (0, (3, 2)), "...."),
    ("#969696", (0, (9, 3)), "xxxx"),
]


class BaselineLook(NamedTuple):
    """How one non-private algorithm is drawn: a horizontal line and a hatched band."""

    colour: str
    line: Any
    hatch: str


def label(algorithm: str, private: bool = True, reading: object = "") -> str:
    """The papers' name of a known algorithm, else one read off its identifier: `noisy_gd` gives "ISRL-DP Noisy GD".

    `reading` says by which sums an SDP algorithm was run: handed over exactly, or by the shuffle protocol P_vec.
    """
    words = [_ACRONYMS.get(word, word[:1].upper() + word[1:]) for word in algorithm.split("_") if word]
    name = _PAPER_NAMES.get(algorithm, " ".join(words))
    if algorithm.startswith("sdp_"):
        sums = "P_vec" if "summation=shuffled" in str(reading) else "ideal sum"
        return f"SDP {name} ({sums})" if private else f"{name} (sums, non-private)"
    return f"ISRL-DP {name}" if private else f"{name} (non-private)"


def in_order(algorithms: Iterable[str]) -> list[str]:
    """Each name once: MB-SGD, Local SGD, the SPIDERs, then others by name."""
    known = list(_PAPER_NAMES)
    return sorted(set(algorithms), key=lambda name: (known.index(name) if name in known else len(known), name))


def looks(algorithms: Iterable[str]) -> dict[str, Look]:
    """A look for each private algorithm; those without one of their own share the spare ones in turn, by name."""
    names = in_order(algorithms)
    others = [name for name in names if name not in _LOOKS]
    spare = {name: _OTHER_LOOKS[i % len(_OTHER_LOOKS)] for i, name in enumerate(others)}
    found = {name: _LOOKS.get(name) or spare[name] for name in names}
    for name in names:
        own = _LOOKS.get(name.removeprefix("sdp_"))
        if name not in _LOOKS and own is not None:
            found[name] = own._replace(line=_SDP_LINE)
    return found


def baseline_looks(algorithms: Iterable[str]) -> dict[str, BaselineLook]:
    """A look for each non-private algorithm, in the order of `in_order`."""
    return {
        name: BaselineLook(*_BASELINE_LOOKS[i % len(_BASELINE_LOOKS)]) for i, name in enumerate(in_order(algorithms))
    }


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """`colour` mixed with white; opaque, because hatches in a PDF know no transparency."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return (1 - share * (1 - red), 1 - share * (1 - green), 1 - share * (1 - blue))


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


def save(figure: Figure, stem: Path | str) -> list[Path]:
    """Write `stem.pdf` and `stem.png` (150 dpi), each whole or not at all, with no date, and return their paths.

    The PNG file has 256 colours of its own, which makes it a third as large. The same figure gives the same bytes with
    the same matplotlib and Pillow.
    """
    # A name may hold dots: with_suffix would cut it.
    pdf, png = (Path(stem).with_name(Path(stem).name + suffix) for suffix in (".pdf", ".png"))
    with styled():
        with write_atomically(pdf) as temporary:
            dates = {"CreationDate": None, "ModDate": None, "Creator": "silodp"}
            figure.savefig(temporary, format="pdf", metadata=dates)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png")
    with Image.open(drawn) as image, write_atomically(png) as temporary:
        # This way of choosing colours keeps white exactly white.
        reduced = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        reduced.save(temporary, format="png", dpi=(RC["savefig.dpi"],) * 2)
    return [pdf, png]
