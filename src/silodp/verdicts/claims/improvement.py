"""Claims about the relative improvement of an algorithm over baselines, and about the price of privacy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from silodp.federation.streams import Streams
from silodp.files import NON_PRIVATE
from silodp.verdicts.claims.base import (
    BASELINE,
    READING,
    SETTING,
    SURROGATES,
    ClaimFinding,
    RunFolder,
    count_findings,
    data_set,
    holm,
    lacking,
    scope_of,
    with_gaps,
)
from silodp.verdicts.claims.claim_file import Claim, PriceOfPrivacy, RelativeImprovement
from silodp.verdicts.comparisons import CELL, same_algorithm
from silodp.verdicts.pairs import paired_differences, paired_errors
from silodp.verdicts.statistics import CONFIDENCE, RESAMPLES, Interval, mean_interval, paired_test
from silodp.verdicts.words import Verdict, combine_verdicts


def relative_improvement(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """The stated averages against mean (baseline − target)/baseline over experiments, settings and ε, in percent.

    The interval is the percentile one of a bootstrap over trials: a trial's split is shared by all settings and ε of an
    experiment, so its trials are drawn together.
    """
    found = _group(claim, run, claim.experiments)
    if not found:
        found = [ClaimFinding(f"mean relative improvement: {lacking(claim.experiments)}", Verdict.NOT_TESTABLE)]
    found += _group(claim, run, claim.surrogates, surrogate=True)
    tables = [table for name in claim.experiments if (table := run.reported(name)) is not None]
    readings = sorted({reading for table in tables for reading in table["reading"].unique() if reading})
    return found + [row for reading in readings for row in _group(claim, run, claim.experiments, reading)]


def _group(
    claim: Claim, run: RunFolder, experiments: Sequence[str], reading: str = "", *, surrogate: bool = False
) -> list[ClaimFinding]:
    """One finding a baseline under the one that puts them together; none where no experiment has the numbers."""
    statistic = claim.statistic
    assert isinstance(statistic, RelativeImprovement)
    details: list[ClaimFinding] = []
    evidence: set[str] = set()
    gaps: set[str] = set()
    about, privacy = scope_of(reading, surrogate), run.privacy()
    part = " ".join(filter(None, (about["rows"], f"[{reading}]" * bool(reading))))
    for baseline, stated in statistic.stated.items():
        errors, alike = {}, 0
        for name in experiments:
            table, itself = run.reported(name), 0
            if table is not None and privacy is not None:
                same = same_algorithm(table, privacy, statistic.target, baseline)
                itself = sum(cell[1] == reading for cell in same)
                table = table[~pd.MultiIndex.from_frame(table[CELL]).isin(same)]
            cut = None if table is None else _errors(table, reading, statistic.target, baseline)
            alike += itself
            if cut is None and not itself:
                gaps.add(name)
            elif cut is not None:
                errors[name] = cut
                evidence.update(run.evidence(claim, {"experiment": name}))
        if not errors:
            continue
        interval = _interval(list(errors.values()), f"{claim.id} {part} {baseline}")
        points = sum(cut.shape[1] for cut in errors.values())
        text = (
            f"mean relative improvement of {statistic.target} over {baseline} in percent, stated {stated:g} ± "
            f"{statistic.tolerance:g}, over {points} (setting, ε) of {', '.join(errors)}"
        )
        verdict = Verdict.OPEN
        if np.isfinite(interval).all():
            from silodp.verdicts.checks.base import judge_interval  # loads PyTorch

            verdict = judge_interval(interval, stated - statistic.tolerance, stated + statistic.tolerance)
        if alike:
            # Over fewer (setting, ε) than the paper's the average is another number.
            text, verdict = f"{text}; at {alike} more they are the same algorithm", Verdict.OPEN
        of_pair = about | {"scope": BASELINE, "pair": (statistic.target, baseline)}
        details.append(ClaimFinding(text, verdict, *interval, tuple(sorted(evidence)), **of_pair))
    if not details:
        return []
    verdict = combine_verdicts([detail.verdict for detail in details])
    text = "stated averages that lie within the tolerance: "
    text += f"{sum(detail.verdict == Verdict.CONFIRMED for detail in details)} of {len(statistic.stated)}"
    missing = [name for name in experiments if name in gaps] + run.gaps(experiments, *statistic.epsilons)
    if missing and not part:
        # Of fewer experiments than the paper's the average is another number.
        text, verdict = f"{text}; {lacking(missing)}", Verdict.OPEN
    return [ClaimFinding(text, verdict, evidence=tuple(sorted(evidence)), **about), *details]


def _errors(table: pd.DataFrame, reading: str, target: str, baseline: str) -> np.ndarray | None:
    """Test errors (trials, points, 2) of target and baseline at every (M, R, ε) that has both; None without any."""
    rows = table[table["reading"] == reading]
    settings = [paired_errors(part, target, baseline) for _, part in rows.groupby(["M", "R"])]
    pairs = [pd.concat(tables, axis=1) for tables in zip(*settings, strict=True)]
    return np.stack(pairs, axis=-1) if pairs and pairs[0].size else None


def _interval(errors: list[np.ndarray], name: str) -> Interval:
    """Improvement in percent with its bootstrap interval; NaN where an error is not finite."""
    if not all(np.isfinite(part).all() for part in errors):
        return Interval(np.nan, np.nan, np.nan)
    generator = Streams(0).generator("claims", name)

    def improvement(means: list[np.ndarray]) -> float:
        ratios = np.concatenate([1 - mean[:, 0] / mean[:, 1] for mean in means])
        return 100 * float(ratios.mean())

    value = improvement([part.mean(axis=0) for part in errors])
    drawn = [
        improvement([part[generator.integers(0, len(part), len(part))].mean(axis=0) for part in errors])
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(drawn, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)])
    return Interval(value, float(low), float(high))


def price_of_privacy(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """Whether the price at the large ε is nothing but the tolerance, and smaller than at the small ε."""
    statistic = claim.statistic
    assert isinstance(statistic, PriceOfPrivacy)
    growth: dict[ClaimFinding, float] = {}
    for name in [*claim.experiments, *claim.surrogates]:
        growth |= _experiment(claim, statistic, run, name)
    parts, beside = (
        [part for part in growth if part.experiment in names] for names in (claim.experiments, claim.surrogates)
    )
    missing = run.missing_parts(claim, parts)
    default = [part for part in parts if not part.reading]
    whole = ClaimFinding(f"price of privacy: {lacking(missing)}", Verdict.NOT_TESTABLE)
    if default:
        text = f"share of {len(default)} settings, each of an algorithm, whose price at ε = {statistic.large:g} is gone"
        text, verdict = with_gaps(text, _combine_parts(default, growth), missing)
        share = sum(part.verdict == Verdict.CONFIRMED for part in default) / len(default)
        whole = ClaimFinding(text, verdict, share, evidence=count_findings(default))
    verdict = _combine_parts(beside, growth)
    about: dict[str, Any] = {"scope": READING, "rows": SURROGATES}
    small = [ClaimFinding("the same in small", verdict, evidence=count_findings(beside), **about)] if beside else []
    return [whole, *small, *parts, *(replace(part, rows=SURROGATES) for part in beside)]


def _combine_parts(parts: Sequence[ClaimFinding], growth: Mapping[ClaimFinding, float]) -> Verdict:
    """The verdict of all parts, where one contradicts only if Holm's method keeps the growth of its price."""
    kept = holm([growth[part] for part in parts])
    refuted = [part.verdict == Verdict.REFUTED for part in parts]
    alone = [one and not keeps for one, keeps in zip(refuted, kept, strict=True)]
    return combine_verdicts([Verdict.OPEN if one else part.verdict for part, one in zip(parts, alone, strict=True)])


def _experiment(claim: Claim, statistic: PriceOfPrivacy, run: RunFolder, experiment: str) -> dict[ClaimFinding, float]:
    """The price of each setting and algorithm -> one-sided p of "it has not grown"."""
    table = run.reported(experiment)
    if table is None:
        return {}
    found: dict[ClaimFinding, float] = {}
    for (reading, M, R), part in table.groupby(["reading", "M", "R"], sort=False):
        for algorithm in statistic.algorithms:
            prices = paired_differences(part, algorithm, algorithm + NON_PRIVATE)
            small, large = (_privacy_price(prices, epsilon) for epsilon in (statistic.small, statistic.large))
            if small is None or large is None:
                continue
            verdict, value = _verdict(small, large, statistic.tolerance)
            text = f"private − non-private test error at ε = {statistic.large:g}, to be ≤ {statistic.tolerance:g}"
            text += f" and below that at ε = {statistic.small:g} ({small.mean():.4g})"
            place: dict[str, Any] = {"experiment": experiment, "M": int(M), "R": int(R), "reading": str(reading)}
            about = place | {"scope": SETTING, "pair": (algorithm,), "data_set": data_set(experiment)}
            price = ClaimFinding(text, verdict, *value, run.evidence(claim, place), **about)
            found[price] = paired_test(large - small).p if len(small) == len(large) else 1.0
    return found


def _privacy_price(prices: pd.DataFrame, epsilon: float) -> np.ndarray | None:
    """Paired over trials; None where a form is missing or fewer than two trials have both."""
    return prices[epsilon].to_numpy() if epsilon in prices and len(prices) > 1 else None


def _verdict(small: np.ndarray, large: np.ndarray, tolerance: float) -> tuple[Verdict, Interval]:
    """Confirmed: the price at the large ε is at most the tolerance, and has shrunk; refuted: it has surely grown."""
    if not (np.isfinite(large).all() and np.isfinite(small).all() and len(small) == len(large)):
        return Verdict.OPEN, Interval(np.nan, np.nan, np.nan)
    price, shrunk = mean_interval(large), mean_interval(small - large)
    if shrunk.high < 0:
        return Verdict.REFUTED, price
    return Verdict.CONFIRMED if price.high <= tolerance and shrunk.low > 0 else Verdict.OPEN, price
