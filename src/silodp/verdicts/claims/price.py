"""Claims about the price of privacy: private minus non-private test error of the same algorithm as ε grows."""

import numpy as np
import pandas as pd

from silodp.verdicts.claims.base import Finding, RunFolder, lacking, merged, place_of
from silodp.verdicts.claims.models import Claim, PriceOfPrivacy
from silodp.verdicts.statistics import Interval, mean_interval
from silodp.verdicts.words import Verdict, together


def price_of_privacy(claim: Claim, run: RunFolder) -> list[Finding]:
    """Whether the price at the large ε is nothing but the tolerance, and smaller than at the small ε."""
    statistic = claim.statistic
    assert isinstance(statistic, PriceOfPrivacy)
    found: list[Finding] = []
    own = [one for name in claim.experiments for one in _experiment(claim, statistic, run, name)]
    beside = [one for name in claim.surrogates for one in _experiment(claim, statistic, run, name)]
    have = {one.part.split(" ")[0] for one in own}
    missing = [name for name in claim.experiments if name not in have]
    missing += run.gaps([name for name in claim.experiments if name in have], *statistic.epsilons)
    default = [one for one in own if not one.part.endswith("]")]
    if default:
        verdict = together([one.verdict for one in default])
        text = f"share of {len(default)} settings, each of an algorithm, whose price at ε = {statistic.large:g} is gone"
        if missing:
            text += f"; {lacking(missing)}"
            verdict = Verdict.INCONCLUSIVE if verdict == Verdict.CONFIRMED else verdict
        share = sum(one.verdict == Verdict.CONFIRMED for one in default) / len(default)
        found.append(Finding("", text, verdict, share, evidence=merged(default)))
    else:
        found.append(Finding("", f"price of privacy: {lacking(missing)}", Verdict.NOT_TESTABLE))
    if beside:
        verdict = together([one.verdict for one in beside])
        found.append(Finding("surrogates", "the same in small", verdict, evidence=merged(beside)))
    return [*found, *own, *beside]


def _experiment(claim: Claim, statistic: PriceOfPrivacy, run: RunFolder, experiment: str) -> list[Finding]:
    table = run.reported(experiment)
    if table is None:
        return []
    found = []
    for (reading, M, R), part in table.groupby(["reading", "M", "R"], sort=False):
        for algorithm in statistic.algorithms:
            rows = part[part["algorithm"] == algorithm]
            prices = [_price(rows, epsilon) for epsilon in (statistic.small, statistic.large)]
            if prices[0] is None or prices[1] is None:
                continue
            verdict, value = _verdict(prices[0], prices[1], statistic.tolerance)
            first = prices[0].mean()
            text = f"private − non-private test error at ε = {statistic.large:g}, to be ≤ {statistic.tolerance:g}"
            text += f" and below that at ε = {statistic.small:g} ({first:.4g})"
            where = {"experiment": experiment, "M": M, "R": R, "reading": reading}
            name = place_of(experiment, int(M), int(R), str(reading), algorithm)
            found.append(Finding(name, text, verdict, *value, evidence=run.evidence(claim, where)))
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
