"""The systems of docs/atlas.md, and their figure."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from matplotlib.figure import Figure

from silodp.atlas.bounds import Answer, bound_mechanism
from silodp.atlas.mechanism import SYSTEMS, About, Mechanism, load_mechanism
from silodp.report.figures.style import styled
from silodp.report.figures.svg import say, svg_text
from silodp.rounding import ends, round_outward

# Group, in the order of the table → colour and meaning.
_GROUPS = {
    "keeps": ("#1b7837", "claim kept"),
    "open": ("#5aae61", "claim within the interval"),
    "scope": ("#2166ac", "claim of a smaller scope than the run"),
    "exceeds": ("#b2182b", "above the claim"),
    "unbounded": ("#67001f", "∞, with a witness"),
}


@dataclass(frozen=True)
class System:
    """A preset, and what it gives away."""

    name: str
    mechanism: Mechanism

    @cached_property
    def answer(self) -> Answer:
        return bound_mechanism(self.mechanism)

    @property
    def about(self) -> About:
        assert self.mechanism.about is not None, self.name
        return self.mechanism.about

    @property
    def claimed(self) -> str:
        scope = self.mechanism.claim.scope
        return (
            "no number" if self.answer.claimed is None else f"{round_outward(self.answer.claimed, up=True)} a {scope}"
        )

    @property
    def neighbours(self) -> str:
        claim = self.mechanism.claim
        return f"{claim.unit} {'replaced' if claim.adjacency == 'replace' else 'added or removed'}"


def systems() -> list[System]:
    """All presets: those that keep their claim first, then by name."""
    found = [System(path.stem, load_mechanism(path)) for path in SYSTEMS.glob("*.yaml")]
    return sorted(found, key=lambda system: ([*_GROUPS].index(system.about.group), system.name))


def figure_svg(rows: Sequence[System]) -> str:
    """Claimed ε against the interval of the true one, log-log, names at the edge; ∞ at the top."""
    shown = [(row, row.answer.claimed, *row.answer.interval[:2]) for row in rows if row.answer.claimed is not None]
    edge = 10.0 ** math.ceil(math.log10(max(upper for *_, upper in shown if math.isfinite(upper))) + 1)
    with styled():
        figure = Figure(figsize=(8.2, 6.4), layout="constrained")
        axes = figure.subplots()
        axes.set(xscale="log", yscale="log", xlim=(0.05, 300), ylim=(0.1, edge * 3))
        axes.set(xlabel="claimed ε", ylabel="true ε over the run")
        axes.plot([0.1, 300], [0.1, 300], color="#888888", linewidth=0.8, zorder=1)
        beside: Counter[str] = Counter()
        drawn: set[str] = set()
        label = -1.0  # decades of ε
        for row, claimed, lower, upper in sorted(shown, key=lambda one: (one[3], -one[1])):
            colour, meaning = _GROUPS[row.about.group]
            # Equal claims stand side by side.
            x = claimed * 1.05 ** beside[f"{claimed:.2g}"]
            beside[f"{claimed:.2g}"] += 1
            top = min(upper, edge)
            (points,) = axes.plot([x, x], [min(max(lower, 0.1), top), top], color=colour)
            points.set(marker="^" if math.isinf(upper) else "_", label=None if meaning in drawn else meaning)
            drawn.add(meaning)
            points.set_gid(f"system:{row.name}")
            say(figure, f"system:{row.name}", [f"{row.about.title}: claimed {row.claimed}, {ends(lower, upper)}"] * 2)
            label = max(math.log10(top), label + 0.5)
            line = {"arrowstyle": "-", "linewidth": 0.4, "color": colour, "alpha": 0.6}
            beyond: dict[str, Any] = {"va": "center", "annotation_clip": False, "arrowprops": line}
            axes.annotate(row.name, (x, top), (330, 10**label), fontsize=7.5, color=colour, **beyond)
        axes.legend(loc=(0.5, 0.56))
        return svg_text(figure, "atlas")
