"""The claim that averaging all checked-in clients needs no dummy updates and loses only a constant."""

import numpy as np

from silodp.claims.base import CONFIRMED, NOT_TESTABLE, REFUTED, Finding, RunFolder, merged, together
from silodp.claims.models import Claim, EqualBudget

COLUMNS = ("protocol", "epsilon", "dummies_mean", "test_error_mean", "n", "trials")


def equal_budget(claim: Claim, run: RunFolder) -> list[Finding]:
    """Largest ratio of mean test errors over the central ε, an experiment a row; means only, so without interval."""
    statistic = claim.statistic
    assert isinstance(statistic, EqualBudget)
    own, missing = [], []
    for experiment in claim.experiments:
        found = _experiment(claim, statistic, run, experiment)
        if found is None:
            missing.append(experiment)
        else:
            own.append(found)
    beside = [found for name in claim.counterparts if (found := _experiment(claim, statistic, run, name)) is not None]
    needs = f"needs checkins/<experiment>.csv of {', '.join(missing)} (make checkins, or `targets: [checkins]`)"
    if own:
        value = max(one.value for one in own)
        verdict = together([one.verdict for one in own])
        head = Finding("", f"largest ratio of test errors over ε in {len(own)} experiments", verdict, value,
                       evidence=merged(own))  # fmt: skip
    else:
        head = Finding("", f"ratio of test errors at equal central ε: {needs}", NOT_TESTABLE)
    lines = [Finding("counterparts", "the same in small", together([one.verdict for one in beside]),
                     evidence=merged(beside))] if beside else []  # fmt: skip
    return [head, *lines, *own, *beside]


def _experiment(claim: Claim, statistic: EqualBudget, run: RunFolder, experiment: str) -> Finding | None:
    table = run.table(f"checkins/{experiment}.csv", COLUMNS)
    if table is None:
        return None
    one, two = (
        table[table["protocol"] == name].set_index("epsilon") for name in (statistic.protocol, statistic.reference)
    )
    ratios = (one["test_error_mean"] / two["test_error_mean"]).dropna()
    dummies = float(one["dummies_mean"].max())
    text = f"largest ratio of mean test errors {statistic.protocol}/{statistic.reference} over ε = "
    text += (
        f"{', '.join(f'{epsilon:g}' for epsilon in ratios.index)}, to be at most {statistic.factor:g}; dummy updates "
    )
    text += f"{dummies:g} against {float(two['dummies_mean'].max()):g}"
    # Without trials there is no interval: what the means say is the verdict.
    holds = dummies == 0 and len(ratios) > 0 and bool(np.all(ratios <= statistic.factor))
    files = run.evidence(claim, {"experiment": experiment})
    verdict = CONFIRMED if holds else REFUTED
    return Finding(experiment, text, verdict, float(ratios.max()), float(ratios.min()), float(ratios.max()), files)
