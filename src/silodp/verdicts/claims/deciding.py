"""A claim decided by a run: by its statistic, then again under calibrated noise and under each variant of the protocol.

The further verdicts stand beside the claim's and never replace it: the paper's protocol has the paper's noise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from silodp.algorithms import ALGORITHMS, families
from silodp.verdicts.claims.base import (
    AT_CLAIM,
    BASELINE,
    CLAIM,
    DATA_SET,
    DEFAULT,
    PAPER_NOISE,
    READING,
    SAME_ROWS,
    ClaimFinding,
    RunFolder,
    missing_rows_text,
)
from silodp.verdicts.claims.bounds_rows import bounds_verdicts
from silodp.verdicts.claims.claim_file import Claim, RelativeImprovement
from silodp.verdicts.claims.delivered import delivered_epsilon
from silodp.verdicts.claims.expressions import exact_expression, formula_values
from silodp.verdicts.claims.identity import same_iterates
from silodp.verdicts.claims.improvement import price_of_privacy, relative_improvement
from silodp.verdicts.claims.paired import paired_difference
from silodp.verdicts.claims.rows import ABOUT, COLUMNS, FEW
from silodp.verdicts.words import Verdict

# Each decides claims with the statistic of its name; its first finding is the claim as a whole.
STATISTICS: dict[str, Callable[[Claim, RunFolder], list[ClaimFinding]]] = {
    "paired_difference": paired_difference,
    "relative_improvement": relative_improvement,
    "price_of_privacy": price_of_privacy,
    "delivered_epsilon": delivered_epsilon,
    "bounds_verdicts": bounds_verdicts,
    "exact_expression": exact_expression,
    "formula_values": formula_values,
    "same_iterates": same_iterates,
}
_DECISIVE = {Verdict.CONFIRMED, Verdict.REFUTED, Verdict.OPEN}
_CELL = ["M", "R", "epsilon", "algorithm"]


def decide(claims: Iterable[Claim], run: RunFolder) -> pd.DataFrame:
    """Each claim, then its parts: `rows.COLUMNS`, where its name is `N1: <part>`, and `rows.ABOUT`.

    Raises ValueError for a file that cannot be read.
    """
    rows = []
    for claim in claims:
        findings, same = STATISTICS[claim.statistic.name](claim, run), _same_rows(claim, run)
        for finding in [
            *put_protocol_first(claim, findings, same),
            *_decide_each_alone(claim, run),
            *same,
            *_certified(claim, run),
        ]:
            name = f"{claim.id}: {finding.row_name}" if finding.row_name else claim.id
            about = {"claim": name, "source": claim.source, "statement": claim.statement, "kind": claim.kind}
            about |= {"id": claim.id, "pair": finding.compared, "evidence": "; ".join(finding.evidence)}
            rows.append(asdict(finding) | about | {"verdict": word_of(claim, finding.verdict)})
    return pd.DataFrame(rows, columns=[*COLUMNS, *ABOUT])


def word_of(claim: Claim, verdict: Verdict) -> Verdict:
    """What speaks against a claim in the word for its kind: a report, a proof's constant, a misprint, or false."""
    return Verdict(claim.against) if verdict == Verdict.REFUTED else verdict


def put_protocol_first(
    claim: Claim, findings: Sequence[ClaimFinding], same: Sequence[ClaimFinding]
) -> list[ClaimFinding]:
    """The findings with the paper's own protocol first; a verdict that turns under a fair variant depends on it.

    `same` has the verdicts under the protocol on the rows that each variant has: nothing else differs there.
    """
    if claim.protocol:
        wholes = [row for row in findings if row.scope == READING and row.reading == claim.protocol and not row.rows]
        head = wholes[0] if wholes else None
        first = findings[0]
        if head is None:
            text = f"{first.statistic}; the paper's own protocol, {claim.protocol}, was not run"
            head = replace(first, statistic=text, verdict=Verdict.NOT_TESTABLE)
        findings = [replace(head, scope=CLAIM), replace(first, scope=READING), *findings[1:]]
    first, *others = [_depends(claim, row, findings, same) for row in findings]
    if first.verdict == Verdict.DEPENDS and not claim.protocol:
        others.insert(0, replace(findings[0], scope=READING))
    return [first, *others]


def _depends(
    claim: Claim, row: ClaimFinding, findings: Sequence[ClaimFinding], same: Sequence[ClaimFinding]
) -> ClaimFinding:
    """A claim's verdict, or that of its average over a baseline, beside its fair variants'."""
    if row.rows or not (row.scope == CLAIM or (row.scope == BASELINE and not row.reading)):
        return row
    turns, own, scope = [], claim.protocol or DEFAULT, BASELINE if row.scope == BASELINE else READING

    def find_variant(variant: str, rows: str, found: Sequence[ClaimFinding]) -> ClaimFinding | None:
        about = (scope, rows, variant, row.pair)
        return next((one for one in found if (one.scope, one.rows, one.reading, one.pair) == about), None)

    for variant in claim.variants:
        after, base = find_variant(variant, "", findings), find_variant(variant, SAME_ROWS, same)
        if after and base and {after.verdict, base.verdict} <= _DECISIVE and after.verdict != base.verdict:
            before, now = (word_of(claim, one.verdict) for one in (base, after))
            turns.append(f"{before} under {own}, {now} under {variant or DEFAULT}")
    if not turns or row.verdict == Verdict.NOT_TESTABLE:
        return row
    text = f"the paper's own protocol is {own}: on the same rows {'; '.join(turns)}; {row.statistic}"
    return replace(row, verdict=Verdict.DEPENDS, statistic=text)


class UnderOneReading(RunFolder):
    """A run's tables as if they had one reading only, as the default one.

    With `other`, without the settings, algorithms and ε that this other reading lacks.
    """

    def __init__(self, run: RunFolder, reading: str, other: str | None = None):
        super().__init__(run.path, run.experiments)
        self.run, self.reading, self.other = run, reading, other

    def reported(self, experiment: str) -> pd.DataFrame | None:
        table = self.run.reported(experiment)
        if table is None:
            return None
        # An experiment without the paper's protocol as a reading of its own has it as the default one.
        own = self.other is None or (table["reading"] == self.reading).any()
        rows = table[table["reading"] == (self.reading if own else "")]
        if self.other is not None:
            cells = pd.MultiIndex.from_frame(table.loc[table["reading"] == self.other, _CELL])
            rows = rows[pd.MultiIndex.from_frame(rows[_CELL]).isin(cells)]
        return None if rows.empty else rows.assign(reading="")

    def privacy(self) -> pd.DataFrame | None:
        table = self.run.privacy()
        return None if table is None else table[table["reading"] == self.reading].assign(reading="")

    def gaps(self, *_: Any) -> list[str]:
        """None: the caller says what was left out of the claim's own experiments."""
        return []

    def evidence(self, claim: Claim, place: Mapping[str, Any]) -> tuple[str, ...]:
        return super().evidence(claim, {**place, "reading": self.reading})


def _decide_on_view(claim: Claim, view: UnderOneReading, experiments: Sequence[str]) -> list[ClaimFinding]:
    """The claim decided on the experiments that a view of the tables has; nothing where it has none."""
    here = [name for name in experiments if view.reported(name) is not None]
    if not here:
        return []
    alone = claim.model_copy(update={"experiments": here, "surrogates": [], "protocol": "", "variants": []})
    return STATISTICS[claim.statistic.name](alone, view)


def _on_rows(findings: Sequence[ClaimFinding], rows: str, reading: str = "") -> list[ClaimFinding]:
    """Findings of a claim that was decided again, as those on other `rows`."""
    return [
        replace(row, rows=rows, reading=reading, scope=READING if row.scope == CLAIM else row.scope) for row in findings
    ]


def _same_rows(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """The claim under its paper's protocol, once for every variant: on the variant's experiments, settings and ε."""
    if claim.kind != "experiment":
        return []
    tables = [table for name in claim.experiments if (table := run.reported(name)) is not None]
    readings = {str(reading) for table in tables for reading in table["reading"].unique()}
    base = claim.protocol if claim.protocol in readings else ""
    found: list[ClaimFinding] = []
    for reading in sorted(readings - {base}):
        if "noise=calibrated" in reading.split(";"):
            continue
        findings = _decide_on_view(claim, UnderOneReading(run, base, reading), claim.experiments)
        if findings and findings[0].verdict != Verdict.NOT_TESTABLE:
            few = len(findings) <= FEW + 2
            kept = [row for row in findings if few or row.scope in (CLAIM, DATA_SET)]
            found += _on_rows(kept, SAME_ROWS, reading)
    return found


def _decide_each_alone(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """A claim about the better of several algorithms again, about each of these alone: as a whole and by data set."""
    found: list[ClaimFinding] = []
    for name, members in families(ALGORITHMS).items():
        for member in members:
            statistic = claim.statistic.with_algorithm(name, member)
            if statistic == claim.statistic:
                continue
            one = claim.model_copy(update={"statistic": statistic, "surrogates": []})
            rows = [row for row in STATISTICS[statistic.name](one, run) if not row.reading and not row.experiment]
            if rows and rows[0].verdict != Verdict.NOT_TESTABLE:
                found += _on_rows([row for row in rows if row.scope == CLAIM or member in row.pair], f"{member} alone")
    return found


def _certified(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """The claim on its certified experiments under calibrated noise, and on the same trials under the paper's."""
    if claim.certified is None:
        return []
    found: list[ClaimFinding] = []
    experiments = claim.certified.experiments
    for calibrated, paper in claim.certified.readings.items():
        for reading, rows in ((calibrated, AT_CLAIM), (paper, PAPER_NOISE)):
            view = UnderOneReading(run, reading)
            findings = _decide_on_view(claim, view, [name for names in experiments.values() for name in names])
            if not findings:
                continue
            whole, *parts = findings
            gaps = [gap for name, names in experiments.items() if (gap := _lacking(claim, name, names, view))]
            if gaps:
                # Of fewer experiments than the paper's an average is another number.
                open_again = whole.verdict == Verdict.CONFIRMED or isinstance(claim.statistic, RelativeImprovement)
                verdict = Verdict.OPEN if open_again else whole.verdict
                whole = replace(whole, statistic=f"{whole.statistic}; without {', '.join(gaps)}", verdict=verdict)
            found += _on_rows([whole, *parts], rows, reading)
    return found


def _lacking(claim: Claim, name: str, names: Sequence[str], view: RunFolder) -> str:
    """The claim's experiment where none of `names` decides it again, else what of it was left out; "" for nothing."""
    tables = [table for trained in names if (table := view.reported(trained)) is not None]
    return missing_rows_text(name, pd.concat(tables), *claim.statistic.epsilons) if tables else name
