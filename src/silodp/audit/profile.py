"""The audit against the whole privacy profile: how much noise runs leave possible, and its ε.

The (ε, δ) of a claim is a point far out in the tails; runs show most elsewhere on the curve ε(δ′) that the accountant
gives for the same plan. So the rates of a test are held against that curve at several δ′, for the plan with its noise
scaled by s. A curve that the rates exceed is refuted, and with it all curves of more noise. The least refuted s bounds
the noise from above. The accountant's upper end at that noise is what the mechanism may still have, if it is the plan's
but for the scale of its noise: no lower bound on ε. If s = 1 is refuted, the mechanism, the plan or the accountant is
wrong, without any assumption. For a plan of one Gaussian this is the audit of μ in Gaussian DP.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.stats import beta, norm

from silodp.privacy.accounting.accountant import upper_of
from silodp.privacy.message_counts import counts_of
from silodp.privacy.plan import PrivacyPlan, Release

# Kind of message → (runs, messages) log-likelihood ratios.
Scores = dict[str, np.ndarray]
# A mechanism is called wrong where an honest one would be so with less than this probability.
ALARM = 1e-5
# Share of the runs that chooses what to count; δ′ as shares of a rate; scales of noise tried.
_CHOOSING = 0.3
_SHARES = (0.1, 0.4, 0.75)
_SCALES = 2.0**-6, 2.0**6
_ACCURACY = 1.02
# δ′ are multiples of this, so that few profiles are asked for; any δ′ will do.
_GRID = 2.0**-10
_TRIED = 400


@dataclass(frozen=True)
class ProfileBound:
    """What runs leave possible of a mechanism's noise.

    Attributes:
        noise: the plan's noise times this, or more, is refuted; infinite where the runs show nothing.
        epsilon: the accountant's upper end at that noise, at the claim's δ; 0 where the runs show nothing.
        exceeded: whether the plan's own profile is refuted, at the level `ALARM`.
        as_seen_by_adversary: "transcript", or the kind of message, one of which a test was about.
    """

    noise: float
    epsilon: float
    exceeded: bool
    as_seen_by_adversary: str


class Rates(NamedTuple):
    """How often tests said "canary": `hits` of `runs` where it was, `alarms` of `runs` where it was not; (T,) each."""

    hits: np.ndarray
    alarms: np.ndarray
    runs: int


class Choice(NamedTuple):
    """A threshold, and whether the test's rates are bounded together ("sum") or one by one ("pair")."""

    threshold: float
    form: str
    shift: float


def sum_bound(rates: Rates, level: float) -> np.ndarray:
    """Lower bounds on TPR − FPR, (T,), which is at most δ′ at ε = 0.

    hits + (runs − alarms) is a sum of independent trials; its tail is below that of the binomial law of the same mean
    (Hoeffding 1956, Theorem 4), so the bound is Clopper and Pearson's.
    """
    right = rates.hits + rates.runs - rates.alarms
    least = beta.ppf(level, np.maximum(right, 1), 2 * rates.runs - right + 1)
    return np.where(right > 0, 2 * least - 1, -1.0)


def pair_bounds(rates: Rates, level: float) -> tuple[np.ndarray, np.ndarray]:
    """(TPR at least, FPR at most), (T,) each, by Clopper and Pearson at half the level each."""
    hits, alarms, runs = rates
    least = np.where(hits > 0, beta.ppf(level / 2, np.maximum(hits, 1), runs - hits + 1), 0.0)
    most = beta.ppf(1 - level / 2, np.minimum(alarms, runs - 1) + 1, np.maximum(runs - alarms, 1))
    return least, np.where(alarms < runs, most, 1.0)


def claims_refuted(rates: Rates, form: str, level: float) -> list[tuple[float, float]]:
    """(ε′, δ′) that the rates of one test refute, all of them together but with probability `level`."""
    if form == "sum":
        delta = math.floor(float(sum_bound(rates, level)[0]) / _GRID) * _GRID
        return [(0.0, delta)] if delta > 0 else []
    least, most = (float(bound[0]) for bound in pair_bounds(rates, level))
    hit, alarm = float(rates.hits[0]) / rates.runs, float(rates.alarms[0]) / rates.runs
    # The event "canary" in one order of the two worlds, and its complement in the other.
    sides = (least, most, hit), (1 - most, 1 - least, 1 - alarm)
    tried = [(high, low, round(share * rate / _GRID) * _GRID) for high, low, rate in sides for share in _SHARES]
    refuted = [(high, low, delta) for high, low, delta in tried if high - delta > low and delta > 0]
    return [(math.log((high - delta) / low), delta) for high, low, delta in refuted]


def choose(present: np.ndarray, absent: np.ndarray, level: float) -> Choice:
    """The test whose bounds leave the largest distance between two Gaussians: `shift`, 0 for nothing.

    `present` and `absent` are scores with the canary and without, `level` is that of the bounds.
    """
    thresholds = np.unique(np.quantile(np.concatenate([present, absent]), (np.arange(_TRIED) + 0.5) / _TRIED))
    rates = rates_at(present, absent, thresholds)
    together = 2 * norm.ppf((1 + np.clip(sum_bound(rates, level), 0, 1)) / 2)
    least, most = pair_bounds(rates, level)
    apart = np.where(least > most, norm.ppf(least) - norm.ppf(most), 0.0)
    best, form = max((together, "sum"), (apart, "pair"), key=lambda shifts: shifts[0].max())
    place = int(np.argmax(best))
    return Choice(float(thresholds[place]), form, float(best[place]))


def rates_at(present: np.ndarray, absent: np.ndarray, thresholds: np.ndarray) -> Rates:
    """Rates of "score above the threshold", for thresholds (T,)."""
    hits, alarms = (len(x) - np.searchsorted(np.sort(x), thresholds, side="right") for x in (present, absent))
    return Rates(hits, alarms, len(present))


def message_plan(plan: PrivacyPlan, kind: str) -> PrivacyPlan:
    """The plan of one message of a kind. K local steps whose gradients do not depend on the model show their sum."""
    return replace(plan, releases=(replace(_as_sums(plan[kind]), count=1),))


def seen_plan(plan: PrivacyPlan) -> PrivacyPlan:
    return replace(plan, releases=tuple(_as_sums(release) for release in plan.releases if release.count))


def _as_sums(release: Release) -> Release:
    K = release.steps
    noise = release.noise / math.sqrt(K)
    return replace(release, count=release.count // K, records=K * release.records, noise=noise, steps=1)


@functools.lru_cache(maxsize=4096)
def delivered_at(plan: PrivacyPlan, scale: float, delta: float) -> float:
    """Upper end of the ε at δ of the plan with all noise times `scale`."""
    return upper_of(counts_of([plan.with_noise_times(scale)]), delta)


def profile_bound(plan: PrivacyPlan, present: Scores, absent: Scores, confidence: float) -> ProfileBound:
    """Bound on the noise of a mechanism, from scores of its messages.

    `plan` is what the mechanism should be; `present` and `absent` are scores with the canary and without.
    """
    level, best = 1 - confidence, ProfileBound(math.inf, 0.0, False, "transcript")
    worlds = []
    for world in (present, absent):
        several = {kind: scores for kind, scores in world.items() if scores.shape[1] > 1}
        worlds.append({"transcript": transcript(world)} | several)
    # The first runs choose the tests, the later ones are counted.
    first = round(_CHOOSING * len(worlds[0]["transcript"]))
    early = [{seen: scores[:first] for seen, scores in world.items()} for world in worlds]
    tests = _tests(early[0], early[1], level / 2)
    for seen, test in tests.items():
        plan_seen = seen_plan(plan) if seen == "transcript" else message_plan(plan, seen)
        later = [world[seen][first:].ravel() for world in worlds]
        rates = rates_at(later[0], later[1], np.array([test.threshold]))
        claims, alarms = (claims_refuted(rates, test.form, each / len(tests)) for each in (level, ALARM))
        noise = _least_noise(plan_seen, claims) if claims else math.inf
        exceeded = best.exceeded or any(_exceeds(plan_seen, 1.0, *claim) for claim in alarms)
        best = ProfileBound(noise, 0.0, exceeded, seen) if noise < best.noise else replace(best, exceeded=exceeded)
    if math.isinf(best.noise):
        return best
    return replace(best, epsilon=delivered_at(plan, best.noise, plan.budget.delta))


def _tests(present: Scores, absent: Scores, level: float) -> dict[str, Choice]:
    """A test of the transcript, and one of the kind of message that shows most where there are several messages."""
    tried = {seen: choose(present[seen].ravel(), absent[seen].ravel(), level) for seen in present}
    # A message is one of many, which together show as much as a transcript if their distance grows by the root.
    kinds = [kind for kind in tried if kind != "transcript"]
    best = sorted(kinds, key=lambda kind: tried[kind].shift * math.sqrt(present[kind].shape[1]))[-1:]
    return {seen: tried[seen] for seen in ("transcript", *best)}


def transcript(world: Scores) -> np.ndarray:
    """Log-likelihood ratios of whole transcripts, (runs,)."""
    return np.sum([scores.sum(1) for scores in world.values()], axis=0)


def _exceeds(plan: PrivacyPlan, scale: float, epsilon: float, delta: float) -> bool:
    """Whether a mechanism that is not (ε, δ)-DP is not the plan with its noise times `scale` either."""
    return delivered_at(plan, scale, delta) <= epsilon


def _least_noise(plan: PrivacyPlan, claims: list[tuple[float, float]]) -> float:
    """Least noise, a multiple of the plan's, that the refuted (ε′, δ′) farthest beyond the plan's profile refutes."""
    epsilon, delta = max(claims, key=lambda claim: claim[0] / max(delivered_at(plan, 1.0, claim[1]), 1e-9))
    low, high = 1.0, 1.0
    if _exceeds(plan, 1.0, epsilon, delta):
        while low > _SCALES[0] and _exceeds(plan, low / 2, epsilon, delta):
            low /= 2
        low, high = low / 2, low
    else:
        while high < _SCALES[1] and not _exceeds(plan, high * 2, epsilon, delta):
            high *= 2
        if high >= _SCALES[1]:
            return math.inf
        low, high = high, high * 2
    while high > _ACCURACY * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _exceeds(plan, middle, epsilon, delta) else (middle, high)
    return high
