"""Claims about how much better an algorithm is on average: relative improvement over baselines."""

import numpy as np
import pandas as pd

from silodp.federation.rng import Streams
from silodp.verdicts.claims.base import Finding, RunFolder, lacking, within
from silodp.verdicts.claims.models import Claim, RelativeImprovement
from silodp.verdicts.statistics import CONFIDENCE, RESAMPLES
from silodp.verdicts.words import Verdict, together


def relative_improvement(claim: Claim, run: RunFolder) -> list[Finding]:
    """The stated averages against mean (baseline − target)/baseline over experiments, settings and ε, in percent.

    The interval is the percentile one of a bootstrap over trials: a trial's split is shared by all settings and ε of an
    experiment, so its trials are drawn together.
    """
    statistic = claim.statistic
    assert isinstance(statistic, RelativeImprovement)
    found = _group(claim, statistic, run, claim.experiments, "")
    if not found:
        found = [Finding("", f"mean relative improvement: {lacking(claim.experiments)}", Verdict.NOT_TESTABLE)]
    beside = _group(claim, statistic, run, claim.surrogates, "surrogates") if claim.surrogates else []
    return found + beside + _readings(claim, statistic, run)


def _readings(claim: Claim, statistic: RelativeImprovement, run: RunFolder) -> list[Finding]:
    tables = [table for name in claim.experiments if (table := run.reported(name)) is not None]
    readings = sorted({reading for table in tables for reading in table["reading"].unique() if reading})
    return [one for reading in readings for one in _group(claim, statistic, run, claim.experiments, "", reading)]


def _group(
    claim: Claim, statistic: RelativeImprovement, run: RunFolder, experiments: list[str], part: str, reading: str = ""
) -> list[Finding]:
    """One finding a baseline under the one that puts them together; none where no experiment has the numbers."""
    details: list[Finding] = []
    evidence: set[str] = set()
    gaps: set[str] = set()
    thinned = run.gaps(experiments, *statistic.epsilons) if not reading else []
    part = " ".join(word for word in (part, f"[{reading}]" if reading else "") if word)
    for baseline, stated in statistic.stated.items():
        errors = {}
        for name in experiments:
            table = run.reported(name)
            cut = None if table is None else _errors(table, reading, statistic.target, baseline)
            if cut is None:
                gaps.add(name)
            else:
                errors[name] = cut
                evidence.update(run.evidence(claim, {"experiment": name}))
        if not errors:
            continue
        value, low, high = _interval(list(errors.values()), f"{claim.id} {part} {baseline}")
        verdict = within((low, high), stated - statistic.tolerance, stated + statistic.tolerance)
        points = sum(cut.shape[1] for cut in errors.values())
        text = (
            f"mean relative improvement of {statistic.target} over {baseline} in percent, stated {stated:g} ± "
            f"{statistic.tolerance:g}, over {points} (setting, ε) of {', '.join(errors)}"
        )
        where = f"{part}, {baseline}" if part else baseline
        details.append(Finding(where, text, verdict, value, low, high, tuple(sorted(evidence))))
    if not details:
        return []
    verdict = together([one.verdict for one in details])
    text = f"stated averages that lie within the tolerance: {sum(one.verdict == Verdict.CONFIRMED for one in details)}"
    text += f" of {len(statistic.stated)}"
    if (gaps or thinned) and not part:
        text += f"; {lacking([*(name for name in experiments if name in gaps), *thinned])}"
        # Of fewer experiments than the paper's the average is another number.
        verdict = Verdict.INCONCLUSIVE
    return [Finding(part, text, verdict, evidence=tuple(sorted(evidence))), *details]


def _errors(table: pd.DataFrame, reading: str, target: str, baseline: str) -> np.ndarray | None:
    """Test errors (trials, points, 2) of target and baseline at every (M, R, ε) that has both; None without any."""
    own = table[(table["reading"] == reading) & table["epsilon"].notna()]
    wide = own.pivot_table(index="trial", columns=["algorithm", "M", "R", "epsilon"], values="test_error", dropna=False)
    if not {target, baseline} <= set(wide.columns.get_level_values(0)):
        return None
    one, two = wide[target], wide[baseline]
    points = one.columns.intersection(two.columns)
    both = np.stack([one[points].to_numpy(), two[points].to_numpy()], axis=-1)
    both = both[~np.isnan(both).all(axis=(1, 2))]
    return both if both.shape[1] else None


def _interval(errors: list[np.ndarray], name: str) -> tuple[float, float, float]:
    """Improvement in percent with its bootstrap interval; NaN where an error is not finite."""
    if not all(np.isfinite(one).all() for one in errors):
        return np.nan, np.nan, np.nan
    generator = Streams(0).generator("claims", name)

    def improvement(means: list[np.ndarray]) -> float:
        ratios = np.concatenate([1 - mean[:, 0] / mean[:, 1] for mean in means])
        return 100 * float(ratios.mean())

    value = improvement([one.mean(axis=0) for one in errors])
    drawn = [
        improvement([one[generator.integers(0, len(one), len(one))].mean(axis=0) for one in errors])
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(drawn, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)])
    return value, float(low), float(high)
