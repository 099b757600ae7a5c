"""Who sends, how often, with which noise: every combination is refused in one line, or covers what its run reveals.

docs/privacy.md, "Which option goes with which accountant", is the table that this walks. What a run reveals is worked
out here from the plan's numbers alone, for two neighbours that are few enough to write down: a record of gradient +L in
a silo of gradients −L, or −L as they. Their transcripts' laws are composed on a lattice whose losses are rounded down.
"""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
import small
from scipy.stats import binom, norm

from silodp.algorithms import ALGORITHMS
from silodp.config.errors import ConfigError
from silodp.experiments.task import Task
from silodp.experiments.true_epsilon_guard import unproven
from silodp.experiments.validation import check
from silodp.privacy.message_counts import counts_of
from silodp.privacy.true_epsilon import ends

N, SIZES, DELTA = 4, [5, 5, 5, 8], 1e-3
BASE = {
    "dataset": "diabetes",
    "label": "target",
    "silos": {"scheme": "iid", "count": N},
    "model": {"name": "linear"},
    "epsilons": [0.5],
    "delta": DELTA,
    "phase_lengths": [2],
}
SETTINGS = [{"M": N, "R": 3}, {"M": 2, "R": 3}, {"M": 2, "R": 3, "participants": [1, 3]}]
READINGS = {
    "records": ("equal", "own"),
    "sampler": ("replacement", "subset"),
    "summation": ("ideal", "shuffled"),
    "clipping": ("record", "per_tensor", "batch_mean"),
}
NOISES = ("moments", "theorem", 0.7, "calibrated")
_STEP = 2.0**-9


def combinations():
    """(setting, readings, noise) of the whole product."""
    values = itertools.product(SETTINGS, itertools.product(*READINGS.values()), NOISES)
    return [(setting, dict(zip(READINGS, of, strict=True)), noise) for setting, of, noise in values]


def refusals(name, setting, readings, noise):
    """Keys that the table refuses, of which a message names one."""
    kind, found = ALGORITHMS[name], set()
    if kind.trust != "nothing":
        found |= {"settings[0].participants"} if "participants" in setting else set()
        found |= {"readings.records"} if readings["records"] == "own" else set()
    if kind.trust == "sum" and readings["summation"] == "shuffled":
        found |= {"readings.summation"} if readings["clipping"] != "record" or noise != "moments" else set()
    if noise in ("theorem", 0.7) and "noise" not in {field.name for field in dataclasses.fields(kind)}:
        found.add(f"algorithms.{name}.noise")
    return found


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_combination_is_refused_or_covers_what_its_run_reveals(name):
    """Of 192 combinations each; noise is calibrated only where nothing else is unusual, as that takes a search."""
    accepted, held = 0, {}
    for setting, readings, noise in combinations():
        algorithms = {name: {"noise": noise, "private": "private"}}
        config = small.experiment(**BASE, settings=[setting], readings=readings, algorithms=algorithms)
        refused = refusals(name, setting, readings, noise)
        if refused:
            with pytest.raises(ConfigError) as raised:
                check("walk", config, lambda key: f"file: {key}")
            said = str(raised.value)
            assert "\n" not in said
            assert any(said.startswith(f"file: {key}: ") for key in refused), said
            continue
        check("walk", config, lambda key: f"file: {key}")
        accepted += 1
        unusual = setting["M"] != N or (readings["records"], readings["clipping"]) != ("equal", "record")
        if noise == "calibrated" and unusual:
            continue
        task = Task("walk", config, name, config.settings[0])
        for plan in dict.fromkeys(task.plans(0.5, 2, SIZES)):
            counted = repr(counts_of([plan]) if plan.private else None)
            held.setdefault((counted, plan.trusted_sum, plan.shuffler, plan.shuffled_sum), plan)
    assert accepted
    for plan in held.values():
        below, upper = reached(plan), ends([plan]).upper
        assert below is None or below <= upper, plan
        # What covers too much would hide what covers too little; behind a shuffler the theorems are that far apart.
        if below is not None and plan.shuffler is None and upper > 0.1:
            assert below > 0.8 * upper, plan


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("reading", [{"resample": True}, {"clip_rule": "max_norm"}])
def test_readings_without_a_proof_may_not_claim(name, reading):
    changes = {"settings": SETTINGS[:1], "epsilons": [0.01], "allow_unproven": False, "readings": reading}
    config = small.experiment(**(BASE | changes), algorithms={name: {"private": "private"}})
    assert "true epsilon in [0, inf]" in unproven("walk", config, SIZES)


def reached(plan):
    """ε at δ of the two neighbours, from below; None for P_vec, whose bits tests/privacy/shuffling counts."""
    if plan.shuffled_sum is not None:
        return None
    if plan.shuffler is not None:
        release = plan.releases[0]
        one = shuffled_losses(release.noise, plan.shuffler.N, plan.shuffler.M, plan.budget.n)
        return epsilon([(one, release.count)])
    parts = []
    for release in plan.releases:
        if release.count:
            # All silos but one add noise and nothing that depends on the record.
            noise = release.noise * math.sqrt(plan.trusted_sum or 1)
            if release.mixing:  # the shift of the first message, in units of the noise's covariance
                rounds, row = range(release.count), dict(enumerate(release.mixing))
                mixed = np.array([[row.get(t - s, 0.0) for s in rounds] for t in rounds])
                noise /= math.sqrt(np.linalg.inv(mixed @ mixed.T)[0, 0])
            count = 1 if release.sampler == "disjoint" else release.count
            parts.append((message_losses(release, noise, plan.budget.n), count))
    if any(release.part for release in plan.releases):  # the record is in one part
        return max(epsilon([part]) for part in parts)
    return epsilon(parts)


def message_losses(release, noise, n):
    """Loss of one message: records drawn as its sampler says, their gradients clipped, averaged, and noised."""
    K = release.records
    if release.sampler in ("disjoint", "all"):
        weights = np.array([0.0, 1.0])
    elif release.sampler == "subset":
        weights = np.array([1 - K / n, K / n])
    else:
        weights = binom.pmf(np.arange(K + 1), K, 1 / n)
    moves = 2 * release.gradients * np.arange(len(weights)) / K
    if release.clipping == "batch_mean":  # one loud record turns the mean round, however often it is drawn
        moves = np.minimum(moves * K, 2 * release.gradients)
    return mixture_losses(tuple(weights), tuple(moves / noise))


@functools.cache
def mixture_losses(weights, means):
    """Lattice law of ln(P/Q) under P = Σ p_j N(mean_j, 1) against Q = N(0, 1)."""
    x = np.linspace(-9, 9 + means[-1], 20_001)
    spread = [weight * norm.pdf(x - mean) for weight, mean in zip(weights, means, strict=True)]
    return lattice(np.sum(spread, axis=0), norm.pdf(x), x[1] - x[0])


@functools.cache
def shuffled_losses(sigma, N, M, n):
    """Of M messages in random order, each N(±1, σ²): of two, or of what the sum of more shows by itself."""
    share = M / (N * n)
    if M == 2:
        x = np.linspace(-1 - 9 * sigma, 1 + 9 * sigma, 700)
        density = norm.pdf(x, -1, sigma)
        told = np.exp(2 * x / sigma**2)
        ratio = 1 - share + share * (told[:, None] + told) / 2
        plain = density[:, None] * density
        return lattice((ratio * plain).ravel(), plain.ravel(), (x[1] - x[0]) ** 2)
    return mixture_losses((1 - share, share), (0.0, 2 / (sigma * math.sqrt(M))))


def lattice(above, below, cell):
    """(first, masses) of ln(above/below), each loss rounded down, which only loses."""
    kept = (above > 1e-300) & (below > 1e-300)
    place = np.floor(np.log(above[kept] / below[kept]) / _STEP).astype(int)
    masses = np.bincount(place - place.min(), above[kept] * cell)
    # Above 1 only by the sum's own error.
    return int(place.min()), masses / max(masses.sum(), 1.0)


def epsilon(parts):
    """ε at δ of composed lattice laws."""
    first, length = 0, 1 + sum(count * (len(masses) - 1) for (_, masses), count in parts)
    transform = np.ones(length // 2 + 1, dtype=complex)
    for (start, masses), count in parts:
        first += count * start
        transform = transform * np.fft.rfft(masses, length) ** count
    composed, losses = np.fft.irfft(transform, length), (first + np.arange(length)) * _STEP
    low, high = 0.0, max(float(losses[-1]), 0.0)
    for _ in range(40):
        middle = (low + high) / 2
        above = losses > middle
        over = composed[above] @ -np.expm1(middle - losses[above]) > DELTA
        low, high = (middle, high) if over else (low, middle)
    return low
