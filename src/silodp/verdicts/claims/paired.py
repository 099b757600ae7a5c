"""Claims that one algorithm has a smaller test error than another: paired differences over trials.

Each data set has one test, of the mean over its settings and ε in every trial; the grid's comparisons stand beside it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from silodp.verdicts.claims.base import (
    DATA_SET,
    LEVEL,
    MISSING,
    SETTING,
    SURROGATES,
    ClaimFinding,
    RunFolder,
    count_findings,
    counted,
    data_set,
    holm,
    lacking,
    scope_of,
    with_gaps,
)
from silodp.verdicts.claims.claim_file import Claim, Pair, PairedDifference
from silodp.verdicts.comparisons import AHEAD, BEHIND, SAME, compare, outcome_of
from silodp.verdicts.pairs import paired_differences
from silodp.verdicts.statistics import PairedTest, paired_test
from silodp.verdicts.words import Verdict

SUPPORTS, OPEN, CONTRADICTS = "support", "open", "contradict"


@dataclass
class Line:
    """The comparisons of one pair in one (experiment, reading, M, R), one an ε; the ε of `same` do not count.

    `differences` has a row a trial and a column an ε.
    """

    experiment: str
    reading: str
    M: int
    R: int
    pair: Pair
    rows: pd.DataFrame
    same: list[float]
    differences: pd.DataFrame

    @property
    def outcomes(self) -> list[str]:
        """What each ε's interval says; a contradiction counts only if `holm` keeps it."""
        low, high, tolerance = self.rows["low"], self.rows["high"], self.pair.tolerance
        # "Smaller" leaves out 0; "not larger by more than the tolerance" does not.
        supports = high <= tolerance if tolerance else high < 0
        return np.select([low > 0, supports], [CONTRADICTS, SUPPORTS], OPEN).tolist()


@dataclass
class Mean:
    """The one test of some lines of a pair: of the mean over their settings and ε, in the trials that all have."""

    lines: list[Line]
    test: PairedTest

    @property
    def text(self) -> str:
        """The pair and the data set, the mean with its interval, and what that says."""
        line, (value, low, high, *_) = self.lines[0], self.test
        word = outcome_of(low, high, line.pair.tolerance)
        pair = " − ".join(_names(line.pair))
        return f"{pair} on {data_set(line.experiment)} {value:+.4f} [{low:+.4f}, {high:+.4f}], {word}"


def _means(lines: Sequence[Line]) -> list[Mean]:
    groups: dict[tuple, list[Line]] = {}
    for line in lines:
        if len(line.rows):
            groups.setdefault((data_set(line.experiment), _names(line.pair)), []).append(line)
    cells = [pd.concat([line.differences for line in group], axis=1).dropna() for group in groups.values()]
    return [Mean(group, paired_test(cell.mean(axis=1))) for group, cell in zip(groups.values(), cells, strict=True)]


def paired_difference(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
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
    found: list[ClaimFinding] = []
    for (surrogate, reading), group in sorted(groups.items(), key=lambda item: item[0]):
        details = [_detail(claim, statistic, line, run, surrogate) for line in group]
        # An alternative reading need not be run on every experiment; it does not decide the claim either.
        gaps = [] if surrogate or reading not in ("", claim.protocol) else list(missing)
        gaps += thinned if reading == claim.protocol and not surrogate else []
        whole = replace(_whole_finding(statistic, group, details, gaps), **scope_of(reading, surrogate))
        rows = [_of_data_set(statistic, mean, details, surrogate) for mean in _means(group)]
        rows += [row for row in details if row.reading == reading]
        # Where an experiment lacks the protocol its default stands in, with rows of its own already.
        found += [whole, *(row for row in rows if row.row_name not in {other.row_name for other in found})]
    if (False, "") not in groups:
        return [ClaimFinding(f"paired differences: {lacking(missing)}", Verdict.NOT_TESTABLE), *found]
    # What is missing has a row of its own, which says what it would take.
    return found + [
        ClaimFinding(f"paired differences: {lacking([name])}", Verdict.NOT_TESTABLE, scope=MISSING, experiment=name)
        for name in [*missing, *thinned]
    ]


def _lines(experiment: str, statistic: PairedDifference, run: RunFolder) -> list[Line]:
    reported = run.reported(experiment)
    if reported is None:
        return []
    lines, privacy = [], run.privacy()
    for pair in statistic.pairs:
        try:
            rows = compare(reported, pair.first, pair.second, tolerance=pair.tolerance, privacy=privacy)
        except ValueError:  # the experiment does not have both
            continue
        rows = rows[rows["epsilon"].between(*statistic.epsilons)]
        for (reading, M, R), part in rows.groupby(["reading", "M", "R"], sort=False):
            same = part["outcome"] == SAME
            rows, alike = part[~same], part.loc[same, "epsilon"].tolist()
            differences = _differences(reported, reading, (M, R), pair, rows["epsilon"])
            lines.append(Line(experiment, str(reading), int(M), int(R), pair, rows, alike, differences))
    return lines


def _differences(
    reported: pd.DataFrame, reading: str, setting: tuple[int, int], pair: Pair, epsilons: pd.Series
) -> pd.DataFrame:
    """`paired_differences` of a setting at some ε."""
    part = reported[(reported["reading"] == reading) & (reported["M"] == setting[0]) & (reported["R"] == setting[1])]
    return paired_differences(part, pair.first, pair.second)[epsilons.tolist()]


def _decided(
    statistic: PairedDifference, lines: Sequence[Line], means: Sequence[Mean] = ()
) -> tuple[Verdict, dict[str, int], str]:
    """The lines' verdict, how their intervals speak, and that in words: raw and Holm's counts of both tests."""
    outcomes, totals = [line.outcomes for line in lines], [len(line.rows) + len(line.same) for line in lines]
    counts = {word: sum(line.count(word) for line in outcomes) for word in (SUPPORTS, OPEN, CONTRADICTS)}
    p, exact = ([x for line in lines for x in line.rows[name]] for name in ("p", "p_sign_flip"))
    cells, flipped = iter(holm(p)), f"{sum(x <= LEVEL for x in exact)}, Holm keeps {sum(holm(exact))}"
    kept = [[next(cells) and word == CONTRADICTS for word in line] for line in outcomes]
    if statistic.quantifier == "each":
        refuted = any(any(line) for line in kept) or any(holm([mean.test.p for mean in means]))
        confirmed = counts[SUPPORTS] == sum(totals)
    else:
        # At most half of the ε is not most of them.
        refuted = any(2 * sum(line) >= total for line, total in zip(kept, totals, strict=True))
        # Of n ε of which at most half are true, n/2 can each seem so by chance.
        levels = [LEVEL / (total - total // 2) for total in totals]
        clear = [(1 - line.rows["p"] <= level).sum() for line, level in zip(lines, levels, strict=True)]
        confirmed = all(2 * count > total for count, total in zip(clear, totals, strict=True))
    verdict = Verdict.REFUTED if refuted else Verdict.CONFIRMED if confirmed else Verdict.OPEN
    words = f" (Holm keeps {sum(map(sum, kept))} by the t test; by exact sign flips {flipped})"
    text = counted(counts) + words * bool(counts[CONTRADICTS])
    return verdict if any(outcomes) else Verdict.NOT_TESTABLE, counts, text


def _detail(claim: Claim, statistic: PairedDifference, line: Line, run: RunFolder, surrogate: bool) -> ClaimFinding:
    verdict, counts, spoken = _decided(statistic, [line])
    outcomes = dict(zip(line.rows["epsilon"], line.outcomes, strict=True)) | dict.fromkeys(line.same, SAME)
    where = "; ".join(
        f"{word} at ε {', '.join(f'{epsilon:g}' for epsilon, outcome in outcomes.items() if outcome == word)}"
        for word in (*counts, SAME)
        if word in outcomes.values()
    )
    limit = f" ≤ {line.pair.tolerance:g}" if line.pair.tolerance else " < 0"
    text = f"mean over ε of the paired difference {' − '.join(_names(line.pair))} in test error, to be{limit} at "
    text += "every ε" if statistic.quantifier == "each" else "most ε"
    text += f": intervals {where}; {spoken}"
    place: dict[str, Any] = {"experiment": line.experiment, "M": line.M, "R": line.R, "reading": line.reading}
    value, low, high, *_ = paired_test(line.differences.mean(axis=1))
    about = place | _about(statistic, line, surrogate) | {"scope": SETTING}
    return ClaimFinding(text, verdict, value, low, high, run.evidence(claim, place), **about)


def _of_data_set(
    statistic: PairedDifference, mean: Mean, details: Sequence[ClaimFinding], surrogate: bool
) -> ClaimFinding:
    line, (value, low, high, p, exact) = mean.lines[0], mean.test
    verdict, _, spoken = _decided(statistic, mean.lines, [mean])
    text = f"one test: mean over ε and {len(mean.lines)} settings in every trial, {mean.text} (one-sided p for larger: "
    text += f"{p:.2g} by t, {exact:.2g} by exact sign flips); its grid: {spoken}"
    evidence = count_findings(row for row in details if row.experiment in {line.experiment for line in mean.lines})
    about = _about(statistic, line, surrogate) | {"scope": DATA_SET}
    return ClaimFinding(text, verdict, value, low, high, evidence, **about)


def _whole_finding(
    statistic: PairedDifference, lines: Sequence[Line], details: Sequence[ClaimFinding], missing: Sequence[str]
) -> ClaimFinding:
    means = _means(lines)
    verdict, counts, spoken = _decided(statistic, lines, means)
    outcomes = Counter(word for line in lines for word in [*line.rows["outcome"], *[SAME] * len(line.same)])
    text = "; ".join(mean.text for mean in means) or "no comparison counts"
    text += f"; of {outcomes.total()} comparisons {counted(dict(sorted(outcomes.items())))}: {spoken}"
    text, verdict = with_gaps(text, verdict, missing)
    share = counts[SUPPORTS] / max(sum(counts.values()), 1)
    p = np.array([x for line in lines for x in line.rows["p"]])
    neither = outcomes.total() - outcomes[AHEAD] - outcomes[BEHIND] - outcomes[SAME]
    tally = f"{outcomes[AHEAD]} ahead, {outcomes[BEHIND]} behind, {neither} neither"
    tally += f" (Holm: {sum(holm((1 - p).tolist()))} ahead, {sum(holm(p.tolist()))} behind)"
    return ClaimFinding(
        text, verdict, share, evidence=count_findings(details), quantifier=statistic.quantifier, tally=tally
    )


def _names(pair: Pair) -> tuple[str, str]:
    return pair.first, pair.second


def _about(statistic: PairedDifference, line: Line, surrogate: bool) -> dict[str, Any]:
    """The columns of a row about a pair on a data set."""
    about: dict[str, Any] = {
        "reading": line.reading,
        "pair": _names(line.pair),
        "data_set": data_set(line.experiment),
    }
    return about | {"quantifier": statistic.quantifier, "rows": SURROGATES * surrogate}


def by_data_set(rows: pd.DataFrame, reported: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The one test of each data set, for one pair under one reading, beside the counts of its comparisons.

    `rows` are those of comparisons.csv, `reported` maps their experiments to a row a trial. Columns: data_set, first,
    second, tolerance, mean, low, high, outcome, trials, and how many comparisons are ahead, behind, open and same;
    of the open ones `equal` lie within the tolerance, and of the ahead and the behind Holm's method keeps
    `ahead_kept` and `behind_kept` over all rows.
    """
    counted_rows = rows[(rows["outcome"] != SAME) & np.isfinite(rows["difference"])]
    p = counted_rows["p"].to_numpy()
    sides = ((AHEAD, 1 - p), (BEHIND, p))
    kept = {word: pd.Series(holm(side), counted_rows.index, dtype=bool) for word, side in sides}
    found = []
    for name, part in rows.groupby(rows["experiment"].map(data_set), sort=False):
        pair = Pair(first=part["first"].iloc[0], second=part["second"].iloc[0], tolerance=part["tolerance"].max())
        ours = part[part.index.isin(counted_rows.index)]
        cells = [
            _differences(reported[experiment], reading, (M, R), pair, own["epsilon"])
            for (experiment, reading, M, R), own in ours.groupby(["experiment", "reading", "M", "R"], sort=False)
        ]
        test = paired_test(pd.concat(cells, axis=1).dropna().mean(axis=1) if cells else [])
        counts = {word: int((ours["outcome"] == word).sum()) for word in (AHEAD, BEHIND)}
        found.append(
            {"data_set": name, "first": pair.first, "second": pair.second, "tolerance": pair.tolerance}
            | {"mean": test.value, "low": test.low, "high": test.high, "trials": int(part["trials"].min())}
            | {"outcome": outcome_of(test.low, test.high, pair.tolerance), **counts}
            | {"open": len(ours) - sum(counts.values()), "same": len(part) - len(ours)}
            | {"equal": int(ours["outcome"].str.startswith("equal").sum())}
            | {f"{word}_kept": int(flags[ours.index].sum()) for word, flags in kept.items()}
        )
    return pd.DataFrame(found)
