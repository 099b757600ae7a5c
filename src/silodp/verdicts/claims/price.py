"""Claims about the price of privacy: private minus non-private test error of the same algorithm as ε grows."""

import numpy as np
import pandas as pd

from silodp.verdicts.claims.base import SURROGATES, Finding, RunFolder, lacking, merged, place_of, with_gaps
from silodp.verdicts.claims.models import Claim, PriceOfPrivacy
from silodp.verdicts.statistics import Interval, mean_interval
from silodp.verdicts.words import Verdict, together


def price_of_privacy(claim: Claim, run: RunFolder) -> list[Finding]:
    """Whether the price at the large ε is nothing but the tolerance, and smaller than at the small ε."""
    statistic = claim.statistic
    assert isinstance(statistic, PriceOfPrivacy)
    parts, beside = (
        [part for name in names for part in _experiment(claim, statistic, run, name)]
        for names in (claim.experiments, claim.surrogates)
    )
    missing = run.missing(claim, parts)
    default = [part for part in parts if not part.reading]
    whole = Finding("", f"price of privacy: {lacking(missing)}", Verdict.NOT_TESTABLE)
    if default:
        text = f"share of {len(default)} settings, each of an algorithm, whose price at ε = {statistic.large:g} is gone"
        text, verdict = with_gaps(text, together([part.verdict for part in default]), missing)
        share = sum(part.verdict == Verdict.CONFIRMED for part in default) / len(default)
        whole = Finding("", text, verdict, share, evidence=merged(default))
    verdict = together([part.verdict for part in beside])
    small = [Finding(SURROGATES, "the same in small", verdict, evidence=merged(beside))] if beside else []
    return [whole, *small, *parts, *beside]


def _experiment(claim: Claim, statistic: PriceOfPrivacy, run: RunFolder, experiment: str) -> list[Finding]:
    table = run.reported(experiment)
    if table is None:
        return []
    found = []
    for (reading, M, R), part in table.groupby(["reading", "M", "R"], sort=False):
        for algorithm in statistic.algorithms:
            rows = part[part["algorithm"] == algorithm]
            small, large = (_price(rows, epsilon) for epsilon in (statistic.small, statistic.large))
            if small is None or large is None:
                continue
            verdict, value = _verdict(small, large, statistic.tolerance)
            text = f"private − non-private test error at ε = {statistic.large:g}, to be ≤ {statistic.tolerance:g}"
            text += f" and below that at ε = {statistic.small:g} ({small.mean():.4g})"
            evidence = run.evidence(claim, {"experiment": experiment, "M": M, "R": R, "reading": reading})
            name = place_of(experiment, int(M), int(R), str(reading), algorithm)
            found.append(Finding(name, text, verdict, *value, evidence, experiment=experiment, reading=str(reading)))
    return found


def _price(rows: pd.DataFrame, epsilon: float) -> np.ndarray | None:
    """Paired over trials; None where a form is missing or fewer than two trials have both."""
    private = rows[rows["epsilon"] == epsilon].set_index("trial")["test_error"]
    plain = rows[rows["epsilon"].isna()].set_index("trial")["test_error"]
    with np.errstate(invalid="ignore"):
        difference = (private - plain).dropna()
    return difference.to_numpy() if len(difference) > 1 else None


def _verdict(small: np.ndarray, large: np.ndarray, tolerance: float) -> tuple[Verdict, Interval]:
    """Confirmed: the price at the large ε is at most the tolerance, and has shrunk; refuted: either surely not."""
    if not (np.isfinite(large).all() and np.isfinite(small).all() and len(small) == len(large)):
        return Verdict.INCONCLUSIVE, Interval(np.nan, np.nan, np.nan)
    price, shrunk = mean_interval(large), mean_interval(small - large)
    if price.low > tolerance or shrunk.high < 0:
        return Verdict.REFUTED, price
    return Verdict.CONFIRMED if price.high <= tolerance and shrunk.low > 0 else Verdict.INCONCLUSIVE, price
