"""Claims that one algorithm has a smaller test error than another: paired differences over trials.

Each data set has one test, of the mean over its settings and ε in every trial; the grid's comparisons stand beside it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from silodp.files import NON_PRIVATE
from silodp.verdicts.claims.base import (
    LEVEL,
    Finding,
    RunFolder,
    counted,
    data_set,
    group_name,
    holm,
    lacking,
    merged,
    one_sided,
    place_of,
    with_gaps,
)
from silodp.verdicts.claims.models import Claim, Pair, PairedDifference
from silodp.verdicts.comparisons import AHEAD, BEHIND, NO_DIFFERENCE, SAME, compare, equal_within
from silodp.verdicts.statistics import Interval, mean_interval, sign_flip
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
    def p(self) -> list[float]:
        """p-value of every ε against "the first is not worse"."""
        return [one_sided(*row) for row in self.rows[["difference", "low", "high", "trials"]].to_numpy()]

    @property
    def p_sign_flip(self) -> list[float]:
        """The same by the exact sign-flip test."""
        return self.rows["p_sign_flip"].div(2).where(self.rows["difference"] > 0, 1.0).fillna(1.0).tolist()

    @property
    def outcomes(self) -> list[str]:
        """What each ε's interval says; a contradiction counts only if `holm` keeps it."""
        low, high, tolerance = self.rows["low"], self.rows["high"], self.pair.tolerance
        # "Smaller" leaves out 0; "not larger by more than the tolerance" does not.
        supports = high <= tolerance if tolerance else high < 0
        return np.select([low > 0, supports], [CONTRADICTS, SUPPORTS], OPEN).tolist()


@dataclass
class Mean:
    """The one test of some lines of a pair: the mean over their settings and ε, in the trials that all of them have."""

    lines: list[Line]
    interval: Interval = field(init=False)
    p: float = 1.0
    p_sign_flip: float = 1.0

    def __post_init__(self) -> None:
        means = pd.concat([line.differences for line in self.lines], axis=1).dropna().mean(axis=1).to_numpy()
        self.interval = Interval(math.nan, math.nan, math.nan)
        if len(means) > 1 and np.isfinite(means).all():
            self.interval = mean_interval(means)
            self.p, self.p_sign_flip = one_sided(*self.interval, len(means)), sign_flip(means)

    @property
    def text(self) -> str:
        """The pair and the data set, the mean with its interval, and what that says."""
        first, (value, low, high) = self.lines[0], self.interval
        tolerance = first.pair.tolerance
        word = AHEAD if high < 0 else BEHIND if low > 0 else NO_DIFFERENCE
        if word == NO_DIFFERENCE and tolerance and -tolerance <= low and high <= tolerance:
            word = equal_within(tolerance)
        return f"{_name(first.pair)} on {data_set(first.experiment)} {value:+.4f} [{low:+.4f}, {high:+.4f}], {word}"


def _data_sets(lines: Sequence[Line]) -> list[Mean]:
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if len(line.rows):
            groups.setdefault((data_set(line.experiment), _name(line.pair)), []).append(line)
    return [Mean(group) for group in groups.values()]


def paired_difference(claim: Claim, run: RunFolder) -> list[Finding]:
    """The claim under the default reading, on surrogates, under other readings, and every (setting, pair) of each."""
    statistic = claim.statistic
    assert isinstance(statistic, PairedDifference)
    lines = [line for name in [*claim.experiments, *claim.surrogates] for line in _lines(name, statistic, run)]
    here = {line.experiment for line in lines}
    missing = [name for name in claim.experiments if name not in here]
    thinned = run.gaps([name for name in claim.experiments if name in here], *statistic.epsilons, claim.protocol)
    groups: dict[tuple[bool, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.experiment in claim.surrogates, line.reading), []).append(line)
    found: list[Finding] = []
    for (surrogate, reading), group in sorted(groups.items(), key=lambda item: item[0]):
        details = [_detail(claim, statistic, line, run) for line in group]
        # An alternative reading need not be run on every experiment; it does not decide the claim either.
        gaps = [] if surrogate or reading else list(missing)
        gaps += thinned if reading == claim.protocol and not surrogate else []
        found += [_whole(group_name(reading, surrogate), statistic, group, details, gaps)]
        found += [_of_data_set(statistic, mean, details, surrogate) for mean in _data_sets(group)] + details
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
            differences = _differences(reported, reading, (M, R), pair, rows["epsilon"].to_numpy())
            lines.append(Line(experiment, str(reading), int(M), int(R), pair, rows, alike, differences))
    return lines


def _differences(
    reported: pd.DataFrame, reading: str, setting: tuple[int, int], pair: Pair, epsilons: np.ndarray
) -> pd.DataFrame:
    """Test error of the first minus the second, a row a trial and a column an ε; ∞ where one of them diverged."""
    part = reported[(reported["reading"] == reading) & (reported["M"] == setting[0]) & (reported["R"] == setting[1])]

    def errors(name: str) -> pd.DataFrame:
        rows = part[part["algorithm"] == name.removesuffix(NON_PRIVATE)]
        if name.endswith(NON_PRIVATE):
            plain = rows[rows["epsilon"].isna()].set_index("trial")["test_error"]
            return pd.DataFrame(dict.fromkeys(epsilons, plain))
        return rows[rows["epsilon"].isin(epsilons)].pivot(index="trial", columns="epsilon", values="test_error")

    first, second = errors(pair.first).align(errors(pair.second), join="inner")
    return (first - second).where(np.isfinite(first) & np.isfinite(second), math.inf)


@dataclass
class Decision:
    """Verdict of some lines together, how their intervals speak, and the contradictions that Holm's method keeps."""

    verdict: Verdict
    counts: dict[str, int]
    kept: int
    flipped: int
    kept_flipped: int

    @property
    def text(self) -> str:
        """How many comparisons speak for and against, with raw and corrected counts of both tests."""
        if not self.counts[CONTRADICTS]:
            return counted(self.counts)
        text = f"{counted(self.counts)} (Holm keeps {self.kept} by the t test; by exact sign flips "
        return text + f"{self.flipped}, Holm keeps {self.kept_flipped})"


def _decided(statistic: PairedDifference, lines: Sequence[Line], means: Sequence[Mean] = ()) -> Decision:
    """The lines' verdict; `means`, the tests of data sets, are corrected with them.

    A mean above 0 contradicts a claim about every ε, one of which must then be above 0.
    """
    outcomes, totals = [line.outcomes for line in lines], [len(line.rows) + len(line.same) for line in lines]
    counts = {word: sum(line.count(word) for line in outcomes) for word in (SUPPORTS, OPEN, CONTRADICTS)}
    flags = holm([mean.p for mean in means] + [p for line in lines for p in line.p])
    flips = [p for line in lines for p in line.p_sign_flip]
    kept_flips = holm([mean.p_sign_flip for mean in means] + flips)[len(means) :]
    means_kept, cells = flags[: len(means)], iter(flags[len(means) :])
    kept = [[next(cells) and word == CONTRADICTS for word in line] for line in outcomes]
    if statistic.quantifier == "each":
        refuted = any(any(line) for line in kept) or any(means_kept)
        confirmed = counts[SUPPORTS] == sum(totals)
    else:
        # At most half of the ε is not most of them.
        refuted = any(2 * sum(line) >= total for line, total in zip(kept, totals, strict=True))
        confirmed = all(2 * line.count(SUPPORTS) > total for line, total in zip(outcomes, totals, strict=True))
    verdict = Verdict.REFUTED if refuted else Verdict.CONFIRMED if confirmed else Verdict.INCONCLUSIVE
    if not any(outcomes):
        verdict = Verdict.NOT_TESTABLE
    return Decision(verdict, counts, sum(map(sum, kept)), sum(p <= LEVEL for p in flips), sum(kept_flips))


def _detail(claim: Claim, statistic: PairedDifference, line: Line, run: RunFolder) -> Finding:
    decision = _decided(statistic, [line])
    outcomes = dict(zip(line.rows["epsilon"], line.outcomes, strict=True)) | dict.fromkeys(line.same, SAME)
    where = "; ".join(
        f"{word} at ε {', '.join(f'{epsilon:g}' for epsilon, outcome in outcomes.items() if outcome == word)}"
        for word in (*decision.counts, SAME)
        if word in outcomes.values()
    )
    limit = f" ≤ {line.pair.tolerance:g}" if line.pair.tolerance else " < 0"
    text = f"mean over ε of the paired difference {_name(line.pair)} in test error, to be{limit} at "
    text += "every ε" if statistic.quantifier == "each" else "most ε"
    text += f": intervals {where}; {decision.text}"
    place = {"experiment": line.experiment, "M": line.M, "R": line.R, "reading": line.reading}
    part = place_of(line.experiment, line.M, line.R, line.reading, _name(line.pair))
    evidence = run.evidence(claim, place)
    interval = Mean([line]).interval if len(line.rows) else (math.nan,) * 3
    return Finding(part, text, decision.verdict, *interval, evidence, experiment=line.experiment, reading=line.reading)


def _of_data_set(statistic: PairedDifference, mean: Mean, details: Sequence[Finding], surrogate: bool) -> Finding:
    """The one test of a data set, with what its grid says."""
    first, settings = mean.lines[0], len(mean.lines)
    decision = _decided(statistic, mean.lines, [mean])
    text = f"one test: mean over ε and {settings} settings in every trial, {mean.text} (one-sided p for larger: "
    text += f"{mean.p:.2g} by t, {mean.p_sign_flip:.2g} by exact sign flips); its grid: {decision.text}"
    label = group_name(first.reading, surrogate)
    part = ", ".join(word for word in (data_set(first.experiment), _name(first.pair), label) if word)
    evidence = merged(row for row in details if row.experiment in {line.experiment for line in mean.lines})
    return Finding(part, text, decision.verdict, *mean.interval, evidence, reading=first.reading)


def _whole(
    part: str, statistic: PairedDifference, lines: Sequence[Line], details: Sequence[Finding], missing: Sequence[str]
) -> Finding:
    means = _data_sets(lines)
    decision = _decided(statistic, lines, means)
    words = Counter(word for line in lines for word in [*line.rows["outcome"], *[SAME] * len(line.same)])
    total = sum(words.values())
    counts_of = sum(decision.counts.values())
    text = "; ".join(mean.text for mean in means) or "no data set has a comparison that counts"
    text += f"; of {total} comparisons {counted(words)}; {counts_of} count: {decision.text}"
    text, verdict = with_gaps(text, decision.verdict, missing)
    share = decision.counts[SUPPORTS] / counts_of if counts_of else math.nan
    return Finding(part, text, verdict, share, evidence=merged(details), reading=lines[0].reading)


def _name(pair: Pair) -> str:
    return f"{pair.first} − {pair.second}"
