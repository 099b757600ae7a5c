"""Audit: a lower bound on ε, with a confidence level, from runs of a trained algorithm on two neighbouring silos.

The audit uses nothing of a mechanism's proof, only what the mechanism sends. A silo holds a canary or its replacement;
the algorithm's rounds are played against an adversarial server, which guesses from the transcript which silo it was. A
mechanism that is (ε, δ)-DP bounds how well any guess can do, so a better guess shows that it is not. A bound that stays
low proves nothing.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy.stats import binom

from silodp.algorithms.base import Algorithm
from silodp.audit.canary import CLIP, Canary, SeenMessage, Server, canary_for, check_noise, whitened
from silodp.audit.columns import AUDIT_COLUMNS, AUDIT_EXTRA
from silodp.audit.mechanism_test import RUNS, mechanism_test
from silodp.audit.noise_at_size import RUN_SIZE, Size
from silodp.audit.profile import ProfileBound, Rates, pair_bounds, profile_bound, rates_at, transcript
from silodp.audit.stacked_runs import stacked
from silodp.config.experiment import Experiment
from silodp.config.run import TESTED, Run
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import stacks
from silodp.federation.experiment_data import dataset_of
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.models import MODELS
from silodp.privacy.accounting.accountant import upper_epsilon
from silodp.privacy.plan import PrivacyPlan, Release, whitening

CONFIDENCE = 0.99
# Runs played at once: enough that a message's time is its arithmetic, few enough that they fit a core's caches.
STACK = 1000
# Numbers of occurrences beyond which the draw's tail is left out of the statistic.
_TAIL = 1e-12


def epsilon_bounds(rates: Rates, delta: float, confidence: float) -> np.ndarray:
    """Lower bounds on ε, each from one test that says "canary" or not; (2, T), negative where they say nothing.

    (ε, δ)-DP has P(E | one silo) ≤ e^ε P(E | the other) + δ for every event E and both orders. Both rates of a test are
    bounded by Clopper and Pearson at (1 + confidence)/2, so its two bounds hold together at `confidence`. Row 0 is
    from the event "canary", row 1 from its complement.
    """
    least, most = pair_bounds(rates, 1 - confidence)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum([least - delta, 1 - most - delta], 0.0)) - np.log([most, 1 - least])


def lower_epsilon(present: np.ndarray, absent: np.ndarray, delta: float, confidence: float = CONFIDENCE) -> float:
    """Lower bound on ε that holds with probability `confidence`.

    The first half of the runs chooses threshold and event, the second half is counted.

    `present` and `absent` are the statistic of independent runs, (runs,) each, with the canary and its replacement;
    ValueError for fewer than four runs, or unequal numbers of them.
    """
    runs = len(present)
    if runs != len(absent) or runs < 4:
        raise ValueError(f"runs = {runs}, {len(absent)}: must be the same in both worlds, and at least 4")
    half = runs // 2
    places = np.unique(np.concatenate([present[:half], absent[:half]]))
    thresholds = (places[1:] + places[:-1]) / 2 if len(places) > 1 else places
    bounds = epsilon_bounds(rates_at(present[:half], absent[:half], thresholds), delta, confidence)
    side, best = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
    counted = epsilon_bounds(rates_at(present[half:], absent[half:], thresholds[[best]]), delta, confidence)
    return max(float(counted[side, 0]), 0.0)


@dataclass(frozen=True)
class Audited:
    """What runs show of one point, each with the audit's confidence by itself.

    `lower` bounds the ε of any mechanism from below; `profile` is what they leave possible of the plan's noise.
    """

    lower: float
    profile: ProfileBound


def audit(
    algorithm: Algorithm,
    plans: list[PrivacyPlan],
    runs: int,
    streams: Streams,
    *,
    confidence: float = CONFIDENCE,
    messages: type[Messages] = Messages,
) -> list[Audited]:
    """Audited lower bounds on ε of an algorithm at several points that share batch sizes, each at its plan's δ.

    Args:
        plans: the silo's plan at each point; all with noise, the same n and the same draws.
        runs: independent runs with the canary, and as many with its replacement.
        messages: the mechanism under test: the trainer's, or another.

    ValueError: a plan without noise, or too few runs.
    """
    audited = []
    for plan, (present, absent) in zip(plans, scores(algorithm, plans, runs, streams, messages), strict=True):
        lower = lower_epsilon(transcript(present), transcript(absent), plan.budget.delta, confidence)
        audited.append(Audited(lower, profile_bound(plan, present, absent, confidence)))
    return audited


def scores(
    algorithm: Algorithm, plans: list[PrivacyPlan], runs: int, streams: Streams, messages: type[Messages] = Messages
) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """At each point, kind of message → (runs, messages) log-likelihood ratios, with the canary and without.

    Arguments and errors as in `audit`.
    """
    check_noise(algorithm, plans)
    canary = canary_for(plans[0])
    tell = Statistic(canary, plans, messages)
    worlds = []
    for world in (0, 1):
        parts = []
        for start in range(0, runs, STACK):
            size = min(STACK, runs - start)
            server = Server(canary, world, plans, stacked(messages, size), runs=size)
            # Streams of every stack and world are their own, so that runs are independent.
            parts.append(tell(server.play(algorithm, streams.child(world, start)), size))
        worlds.append({kind: np.concatenate([part[kind] for part in parts]) for kind in tell.pulls})
    points = [[{kind: part[:, :, g] for kind, part in world.items()} for world in worlds] for g in range(len(plans))]
    return [(present, absent) for present, absent in points]


class Statistic:
    """Each message's log-likelihood ratio under the plan, from its projection on the canary's direction.

    A message is N(0, 1) with the replacement, after centring and scaling, and Σ_j p_j N(js, 1) with the canary, as that
    is drawn J times. Any statistic makes a sound audit; the sum over the transcript is the best one if the mechanism
    does what the plan says.
    """

    def __init__(self, canary: Canary, plans: list[PrivacyPlan], messages: type[Messages]):
        self.releases = [{release.kind: release for release in plan.releases if release.count} for plan in plans]
        self.n = plans[0].budget.n
        self.pulls = {kind: pull(canary, release, messages) for kind, release in self.releases[0].items()}

    def __call__(self, transcript: list[SeenMessage], runs: int) -> dict[str, np.ndarray]:
        """Kind → (runs, messages, G) of a transcript of stacked runs."""
        ratios = {}
        for kind, (absent, direction, _) in self.pulls.items():
            sent = np.stack([message.content.numpy() for message in transcript if message.kind == kind])
            along = ((sent - self.releases[0][kind].steps * absent) @ direction).reshape(len(sent), runs, -1)
            along = whitened(self.releases[0][kind], along)
            points = [self._log_ratio(along[:, :, g], each[kind]).T for g, each in enumerate(self.releases)]
            ratios[kind] = np.stack(points, axis=2)
        return ratios

    def _log_ratio(self, along: np.ndarray, release: Release) -> np.ndarray:
        # Local steps add up K one-record messages; else a message is the mean of K records.
        scale = release.noise * CLIP * np.sqrt(release.steps)
        x, shift = along / scale, self.pulls[release.kind][2] / scale
        shift /= 1 if release.clipping == "batch_mean" else release.records
        if release.part is not None and release.part[0]:
            return np.zeros_like(x)  # stacked runs have the canary in the first part,
        if release.mixing:  # or in the first message, from where it shows in all by a column of C
            shift = shift * np.array(whitening(release.mixing, len(x)))[:, None]
        if release.sampler in ("disjoint", "all"):
            return shift * x - shift**2 / 2
        j = np.arange(1 + int(binom.isf(_TAIL, release.records_drawn, 1 / self.n)))
        log_p = binom.logpmf(j, release.records_drawn, 1 / self.n)
        ratio = np.full(x.shape, -np.inf)
        for count, log_weight in zip(j, log_p, strict=True):
            ratio = np.logaddexp(ratio, log_weight + count * shift * x - (count * shift) ** 2 / 2)
        return ratio


def pull(canary: Canary, release: Release, messages: type[Messages]) -> tuple[np.ndarray, np.ndarray, float]:
    """What one occurrence of the replacement adds to a sum (d,), the unit vector (d,) from there to what the canary
    adds, and their distance: from noiseless messages of silos of one record."""
    single = Release(release.kind, 1, 1, 0.0, clipping=release.clipping)
    previous = canary.previous[None] if release.gradients > 1 and canary.previous is not None else None
    pulls = []
    for x, y in canary.silos:
        alone = messages(canary.model, [(x[:1], y[:1])], Streams(0))
        clip = canary.weights.new_full((1,), CLIP)
        query = Query(canary.weights[None], 0, release.kind, previous)
        pulls.append(alone.message(query, 0, single, clip, clip * 0)[0].numpy())
    present, absent = pulls
    distance = float(np.linalg.norm(present - absent))
    return absent, (present - absent) / distance, distance


# Columns about one point of an algorithm, whatever experiment it is of.
AUDITED = [*AUDIT_COLUMNS[4:], *AUDIT_EXTRA]


def audit_rows(run: Run, name: str, config: Experiment, sizes: list[int], runs: int | None = None) -> pd.DataFrame:
    """One row for each private algorithm at the smallest, middle and largest ε, and at the longest phase.

    Each algorithm is audited in the first setting of every R (M does not change what a silo sends), under the default
    reading, at the smallest silo. Behind a shuffler the audit sees the silo's own messages, held against their own
    bound. Sums through P_vec have no such messages, and no row; nor has an algorithm whose privacy rests on an
    assumption about the loss.
    """
    runs = runs or run.audit_runs
    first = {setting.R: setting for setting in reversed(config.settings)}
    size = Size(model_size(config), len(sizes), getattr(torch, run.dtype))
    rows = []
    for algorithm, options in config.algorithms.items():
        for setting in first.values() if options.private != "non_private" else ():
            streams = Streams(run.seed).child(name, "audit", algorithm, setting.name)
            rows += _task_rows(Task(name, config, algorithm, setting), sizes, runs, streams, size)
    return pd.DataFrame(rows, columns=[*AUDIT_COLUMNS, *AUDIT_EXTRA])


def model_size(config: Experiment) -> int:
    """d of the experiment's model, from what its data set says of itself."""
    dataset, steps = dataset_of(config), config.preprocess
    features = (steps.pca or dataset.features) + steps.constant_column
    classes = len(dataset.class_counts) if dataset.class_counts else None
    return MODELS[config.model.name](features, classes, **config.model.model_dump(exclude={"name"})).size


def _task_rows(task: Task, sizes: list[int], runs: int, streams: Streams, size: Size) -> list[dict]:
    smallest = sizes.index(min(sizes))
    rows = []
    for number, (points, plans, algorithm) in enumerate(stacks(task, _points(task), sizes)):
        audited = [plan[smallest] for plan in plans]
        if audited[0].shuffled_sum is not None or audited[0].assumption:
            continue
        results = point_rows(algorithm, audited, runs, streams.child(number), min(runs, TESTED), size)
        for point, row in zip(points.to_dict("records"), results, strict=True):
            names = {"experiment": task.experiment, "algorithm": task.algorithm, "setting": task.setting.name}
            rows.append(names | {"phase_length": int(point["phase_length"])} | row)
    return rows


def point_rows(
    algorithm: Algorithm,
    plans: list[PrivacyPlan],
    runs: int,
    streams: Streams,
    tested: int = RUNS,
    size: Size = RUN_SIZE,
) -> list[dict]:
    """`AUDITED` of points that share batch sizes; arguments as in `audit` and `mechanism_test`, of `tested` runs."""
    audited = audit(algorithm, plans, runs, streams)
    mechanisms = mechanism_test(algorithm, plans, streams.child("mechanism"), runs=tested, size=size)
    rows = []
    for plan, bounds, mechanism in zip(plans, audited, mechanisms, strict=True):
        delivered = upper_epsilon(plan, plan.budget.delta)
        rows.append(
            {
                "claimed_epsilon": plan.budget.epsilon,
                "delta": plan.budget.delta,
                "delivered_epsilon": delivered,
                "audited_lower": bounds.lower,
                "confidence": CONFIDENCE,
                "runs": runs,
                "holds": bounds.lower <= delivered,
                "audited_profile": bounds.profile.epsilon,
                "noise_below": bounds.profile.noise if bounds.profile.epsilon else math.nan,
                "profile_holds": not bounds.profile.exceeded,
                "mechanism": mechanism.verdict_text,
                "mechanism_p": mechanism.p,
            }
        )
    return rows


def _points(task: Task) -> pd.DataFrame:
    """The audited points, one for each privacy plan, which does not depend on step size and clip."""
    epsilons = task.config.epsilons
    wanted = {min(epsilons), sorted(epsilons)[len(epsilons) // 2], max(epsilons)}
    grid = task.grid()
    grid = grid[grid["epsilon"].isin(wanted) & (grid["phase_length"] == grid["phase_length"].max())]
    return grid.drop_duplicates(["epsilon", "phase_length"])[POINT].reset_index(drop=True)
