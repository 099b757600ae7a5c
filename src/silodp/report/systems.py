"""docs/atlas.md: the table of released systems, a paragraph and a text for the project each, and the figure."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from matplotlib.figure import Figure

from silodp.config.mechanism import SYSTEMS, About, Mechanism, load_mechanism
from silodp.privacy.systems.bounds import Answer, answer
from silodp.privacy.systems.rounding import ends, outward
from silodp.privacy.systems.witnesses import VIEWS, WITNESSES
from silodp.report.figures.style import styled
from silodp.report.figures.svg import say, svg_text

_GROUPS: tuple[str, ...] = get_args(About.model_fields["group"].annotation)
_HEAD = ("system", "version", "claimed ε", "true ε", "rounds", "neighbours", "rests on", "checked", "reply or fix")
_COLOURS = dict(zip(_GROUPS, ("#1b7837", "#5aae61", "#2166ac", "#b2182b", "#67001f"), strict=True))
_MEANING = {
    "keeps": "claim kept",
    "open": "claim within the interval",
    "scope": "claim of a smaller scope than the run",
    "exceeds": "above the claim",
    "unbounded": "∞, with a witness",
}


@dataclass(frozen=True)
class System:
    """A preset, and what it gives away."""

    name: str
    mechanism: Mechanism

    @cached_property
    def answer(self) -> Answer:
        """Both ends over the preset's rounds."""
        return answer(self.mechanism)

    @property
    def about(self) -> About:
        """Version, evidence and words."""
        assert self.mechanism.about is not None, self.name
        return self.mechanism.about

    @property
    def claimed(self) -> str:
        """The claimed ε and its scope."""
        scope = self.mechanism.claim.scope
        return "no number" if self.answer.claimed is None else f"{outward(self.answer.claimed, up=True)} a {scope}"

    @property
    def neighbours(self) -> str:
        """Unit and adjacency."""
        claim = self.mechanism.claim
        return f"{claim.unit} {'replaced' if claim.adjacency == 'replace' else 'added or removed'}"


def systems(folder: Path = SYSTEMS) -> list[System]:
    """All presets: those that keep their claim first, then by name."""
    found = [System(path.stem, load_mechanism(path)) for path in folder.glob("*.yaml")]
    return sorted(found, key=lambda system: (_GROUPS.index(system.about.group), system.name))


def table(rows: Sequence[System]) -> str:
    """The table in Markdown."""
    lines = [f"| {' | '.join(_HEAD)} |", f"|{' --- |' * len(_HEAD)}"]
    for row in rows:
        entry = row.answer.entry
        cells = [f"[{row.about.title}](#{row.name})", row.about.version, row.claimed, ends(*row.answer.interval[:2])]
        cells += [f"{row.mechanism.steps.rounds}", row.neighbours, entry, "ran" if row.about.ran else "read"]
        lines.append(f"| {' | '.join([*cells, row.about.reply])} |")
    return "\n".join(lines)


def paragraph(row: System) -> str:
    """What a row rests on."""
    about, interval = row.about, row.answer.interval
    told = f"Claim: “{about.words}”" + (f" Its documents add: “{about.limits}”" if about.limits else "")
    said = f"{told}\n\nRight: {about.right}\n\nFinding: {about.finding}"
    if interval.witness:
        said += (
            f" As released, {VIEWS[row.mechanism.view]}, can tell two neighbours apart. {_witness(interval.witness)}"
        )
    for name, when, witness in row.answer.special:
        said += f" Where {when}, ε is ∞ by “{name}”: {_witness(witness)}"
    said += f"\n\nEvidence: {about.version}, `{about.evidence}`."
    link = f" [Text for the project](atlas/reports/{row.name}.md)." if about.fix else ""
    command = f"`silodp epsilon --mechanism {row.name} --rounds {row.mechanism.steps.rounds}`"
    return f'### <a id="{row.name}"></a>{about.title}\n\n{said} Command: {command}.{link}'


def _witness(name: str) -> str:
    return WITNESSES[name].words


def report(row: System) -> str:
    """A text ready to send to the project: what, where, reproduction, fix."""
    about, result, claim = row.about, row.answer, row.mechanism.claim
    seen = f"{ends(*result.interval[:2])} at δ = {result.delta:.3g} over {row.mechanism.steps.rounds} rounds"
    why = f"\n{_witness(result.interval.witness)}\n" if result.interval.witness else ""
    for name, when, witness in result.special:
        why += f"\nWhere {when} (“{name}”), ε is ∞. {_witness(witness)}\n"
    ran = "`make atlas` runs the released class on toy updates" if about.ran else "Read in the source, not run"
    return f"""# {about.title}: claimed and true ε

Thank you for this project. Here is a note on what its noise amounts to over a run; please correct what is wrong.

**What works.** {about.right}

**What.** {about.finding}
{why}
Claimed: {row.claimed} (“{about.words}”). True ε for {VIEWS[row.mechanism.view]}, with one {claim.unit}
{"replaced" if claim.adjacency == "replace" else "added or removed"}: {seen}.

**Where.** {about.version}: `{about.evidence}`.

**Reproduction.** `silodp epsilon --mechanism {row.name} --by-round`. {ran}.

**Fix.** {about.fix}
"""


def figure_svg(rows: Sequence[System]) -> str:
    """Claimed ε against the interval of the true one, log-log, names at the edge; ∞ at the top."""
    shown = sorted((row for row in rows if row.answer.claimed), key=lambda row: (row.answer.interval.upper, -row.answer.claimed))
    finite = [row.answer.interval.upper for row in shown if math.isfinite(row.answer.interval.upper)]
    edge = 10.0 ** math.ceil(math.log10(max(finite)) + 1)
    with styled():
        figure = Figure(figsize=(8.2, 6.4), layout="constrained")
        axes = figure.subplots()
        axes.set(xscale="log", yscale="log", xlim=(0.05, 300), ylim=(0.1, edge * 3))
        axes.set_xlabel("claimed ε")
        axes.set_ylabel("true ε over the run")
        axes.plot([0.1, 300], [0.1, 300], color="#888888", linewidth=0.8, zorder=1)
        beside: Counter[str] = Counter()
        drawn: set[str] = set()
        label = -1.0  # decades of ε
        for row in shown:
            (lower, upper, _), group, claimed = row.answer.interval, row.about.group, row.answer.claimed
            assert claimed is not None
            # Equal claims stand side by side.
            x = claimed * 1.12 ** beside[f"{claimed:.2g}"]
            beside[f"{claimed:.2g}"] += 1
            top = min(upper, edge)
            (points,) = axes.plot([x, x], [min(max(lower, 0.1), top), top], color=_COLOURS[group])
            points.set(marker="^" if math.isinf(upper) else "_", label=None if group in drawn else _MEANING[group])
            drawn.add(group)
            points.set_gid(f"system:{row.name}")
            say(figure, f"system:{row.name}", [f"{row.about.title}: claimed {row.claimed}, {ends(lower, upper)}"] * 2)
            label = max(math.log10(top), label + 0.5)
            axes.annotate(
                row.name,
                (x, top),
                (330, 10**label),
                fontsize=7.5,
                color=_COLOURS[group],
                va="center",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": _COLOURS[group], "alpha": 0.6},
            )
        axes.legend(loc=(0.01, 0.6))
        return svg_text(figure, "atlas")
