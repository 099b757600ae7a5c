"""Claims that one algorithm has a smaller test error than another: paired differences over trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from silodp.files import NON_PRIVATE
from silodp.verdicts.claims.base import (
    Finding,
    RunFolder,
    counted,
    group_name,
    holm,
    lacking,
    merged,
    one_sided,
    place_of,
    with_gaps,
)
from silodp.verdicts.claims.models import Claim, Pair, PairedDifference
from silodp.verdicts.comparisons import compare
from silodp.verdicts.statistics import Interval, mean_interval
from silodp.verdicts.words import Verdict

SUPPORTS, OPEN, CONTRADICTS = "support", "open", "contradict"


@dataclass
class Line:
    """The comparisons of one pair in one (experiment, reading, M, R), one an ε."""

    experiment: str
    reading: str
    M: int
    R: int
    pair: Pair
    rows: pd.DataFrame
    mean: Interval

    @property
    def p(self) -> list[float]:
        """p-value of every ε against "the first is not worse"."""
        return [one_sided(*row) for row in self.rows[["difference", "low", "high", "trials"]].to_numpy()]

    @property
    def outcomes(self) -> list[str]:
        """What each ε's interval says; a contradiction counts only if `holm` keeps it."""
        low, high, tolerance = self.rows["low"], self.rows["high"], self.pair.tolerance
        # "Smaller" leaves out 0; "not larger by more than the tolerance" does not.
        supports = high <= tolerance if tolerance else high < 0
        return np.select([low > 0, supports], [CONTRADICTS, SUPPORTS], OPEN).tolist()


def paired_difference(claim: Claim, run: RunFolder) -> list[Finding]:
    """The claim under the default reading, on surrogates, under other readings, and every (setting, pair) of each."""
    statistic = claim.statistic
    assert isinstance(statistic, PairedDifference)
    lines = [line for name in [*claim.experiments, *claim.surrogates] for line in _lines(name, statistic, run)]
    here = {line.experiment for line in lines}
    missing = [name for name in claim.experiments if name not in here]
    thinned = run.gaps([name for name in claim.experiments if name in here], *statistic.epsilons, claim.protocol)
    groups: dict[tuple[bool, str], list[Line]] = {}
    under = {line.experiment for line in lines if line.reading == claim.protocol} - set(claim.surrogates)
    for line in lines:
        groups.setdefault((line.experiment in claim.surrogates, line.reading), []).append(line)
        # Where some experiments have the paper's protocol as a reading, it is the default one of the others.
        if under and not line.reading and line.experiment not in {*under, *claim.surrogates}:
            groups.setdefault((False, claim.protocol), []).append(line)
    found: list[Finding] = []
    for (surrogate, reading), group in sorted(groups.items(), key=lambda item: item[0]):
        details = [_detail(claim, statistic, line, run) for line in group]
        # An alternative reading need not be run on every experiment; it does not decide the claim either.
        gaps = [] if surrogate or reading not in ("", claim.protocol) else list(missing)
        gaps += thinned if reading == claim.protocol and not surrogate else []
        whole = replace(_whole(group_name(reading, surrogate), statistic, group, details, gaps), reading=reading)
        found += [whole, *(row for row in details if row.reading == reading)]
    if (False, "") not in groups:
        return [Finding("", f"paired differences: {lacking(missing)}", Verdict.NOT_TESTABLE), *found]
    # What is missing has a row of its own, which says what it would take.
    return found + [
        Finding(name, f"paired differences: {lacking([name])}", Verdict.NOT_TESTABLE) for name in [*missing, *thinned]
    ]


def _lines(experiment: str, statistic: PairedDifference, run: RunFolder) -> list[Line]:
    reported = run.reported(experiment)
    if reported is None:
        return []
    lines = []
    for pair in statistic.pairs:
        try:
            rows = compare(reported, pair.first, pair.second)
        except ValueError:  # the experiment does not have both
            continue
        rows = rows[rows["epsilon"].between(*statistic.epsilons)]
        for (reading, M, R), part in rows.groupby(["reading", "M", "R"], sort=False):
            mean = _mean(reported, reading, (M, R), pair, part["epsilon"].to_numpy())
            lines.append(Line(experiment, str(reading), int(M), int(R), pair, part, mean))
    return lines


def _mean(reported: pd.DataFrame, reading: str, setting: tuple[int, int], pair: Pair, epsilons: np.ndarray) -> Interval:
    """Difference averaged over ε in every trial: its mean over trials with the interval of Student's t."""
    part = reported[(reported["reading"] == reading) & (reported["M"] == setting[0]) & (reported["R"] == setting[1])]

    def errors(name: str) -> pd.Series:
        rows = part[part["algorithm"] == name.removesuffix(NON_PRIVATE)]
        rows = rows[rows["epsilon"].isna()] if name.endswith(NON_PRIVATE) else rows[rows["epsilon"].isin(epsilons)]
        return rows.groupby("trial")["test_error"].mean()

    with np.errstate(invalid="ignore"):
        difference = (errors(pair.first) - errors(pair.second)).dropna()
    if len(difference) < 2 or not np.isfinite(difference).all():
        return Interval(math.nan, math.nan, math.nan)
    return mean_interval(difference.to_numpy())


def _verdict(statistic: PairedDifference, lines: Sequence[Line]) -> tuple[Verdict, dict[str, int], int]:
    """Verdict of some lines together, how the intervals speak, and how many contradictions Holm's method keeps."""
    outcomes = [line.outcomes for line in lines]
    counts = {word: sum(line.count(word) for line in outcomes) for word in (SUPPORTS, OPEN, CONTRADICTS)}
    flags = iter(holm([p for line in lines for p in line.p]))
    kept = [[next(flags) and word == CONTRADICTS for word in line] for line in outcomes]
    if statistic.quantifier == "each":
        refuted = any(any(line) for line in kept)
        confirmed = all(word == SUPPORTS for line in outcomes for word in line)
    else:
        # At most half of the ε is not most of them.
        refuted = any(2 * sum(line) >= len(line) for line in kept)
        confirmed = all(2 * line.count(SUPPORTS) > len(line) for line in outcomes)
    verdict = Verdict.REFUTED if refuted else Verdict.CONFIRMED if confirmed else Verdict.INCONCLUSIVE
    return verdict, counts, sum(map(sum, kept))


def _detail(claim: Claim, statistic: PairedDifference, line: Line, run: RunFolder) -> Finding:
    verdict, counts, kept = _verdict(statistic, [line])
    outcomes = dict(zip(line.rows["epsilon"], line.outcomes, strict=True))
    where = "; ".join(
        f"{word} at ε {', '.join(f'{epsilon:g}' for epsilon, outcome in outcomes.items() if outcome == word)}"
        for word in counts
        if word in outcomes.values()
    )
    limit = f" ≤ {line.pair.tolerance:g}" if line.pair.tolerance else " < 0"
    text = f"mean over ε of the paired difference {_name(line.pair)} in test error, to be{limit} at "
    text += "every ε" if statistic.quantifier == "each" else "most ε"
    text += f": intervals {where}" + (f"; {kept} kept by Holm" if counts[CONTRADICTS] else "")
    value, low, high = line.mean
    place = {"experiment": line.experiment, "M": line.M, "R": line.R, "reading": line.reading}
    part = place_of(line.experiment, line.M, line.R, line.reading, _name(line.pair))
    evidence = run.evidence(claim, place)
    return Finding(part, text, verdict, value, low, high, evidence, experiment=line.experiment, reading=line.reading)


def _whole(
    part: str, statistic: PairedDifference, lines: Sequence[Line], details: Sequence[Finding], missing: Sequence[str]
) -> Finding:
    verdict, counts, kept = _verdict(statistic, lines)
    total = sum(counts.values())
    text = f"share of {total} paired comparisons that support: {counted(counts)}"
    if counts[CONTRADICTS]:
        text += f" ({kept} kept by Holm over all {total})"
    text, verdict = with_gaps(f"{text}; {_sizes(lines)}", verdict, missing)
    return Finding(part, text, verdict, counts[SUPPORTS] / total, evidence=merged(details), reading=lines[0].reading)


def _sizes(lines: Sequence[Line]) -> str:
    """Of each pair the mean difference over settings and ε, and how many of its intervals lie on either side of 0.

    Settings of an experiment share trials, so that the ends of the mean's interval are the means of theirs: as wide as
    if all moved together.
    """
    sizes = []
    for pair in dict.fromkeys((line.pair.first, line.pair.second) for line in lines):
        of_pair = [line for line in lines if (line.pair.first, line.pair.second) == pair]
        value, low, high = np.mean([line.mean for line in of_pair], axis=0)
        rows = pd.concat([line.rows for line in of_pair])
        below, above = int((rows["high"] < 0).sum()), int((rows["low"] > 0).sum())
        sizes.append(
            f"{pair[0]} − {pair[1]} {value:+.4f} [{low:+.4f}, {high:+.4f}] in the mean, "
            f"clearly smaller at {below} and clearly larger at {above} of {len(rows)}"
        )
    return "; ".join(sizes)


def _name(pair: Pair) -> str:
    return f"{pair.first} − {pair.second}"
