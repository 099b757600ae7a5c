"""Both ends of the true ε of a mechanism that is given as data.

One unit's data move an entry by `moves`; over the noise's standard deviation that is μ. Messages on all records are
composed exactly; Poisson-sampled steps by privacy loss distributions. Where only the message after the local steps is
seen, the upper end counts every step, and the lower one is reached by a linear loss, whose message is the noisy sum.
"""

import logging
import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import binom

from silodp.privacy.accounting.accountant import Bracket, delivered_epsilon, upper_epsilon
from silodp.privacy.accounting.composition import Composition, epsilon_at
from silodp.privacy.accounting.losses import LossPmf, pair_losses
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.accounting.profiles import Occurrences
from silodp.privacy.calibration import noise_multiplier

if TYPE_CHECKING:
    from silodp.atlas.mechanism import Mechanism, ReleasedEntry

# Orders that its series does not reach are left out, which it says each time.
logging.getLogger("absl").setLevel(logging.ERROR)

_LEVELS = 20  # into which the weight of a step in a message with momentum is rounded down
_TAIL = 1e-15
_CELLS = 50  # of the line between the centres of Laplace noise, at least


class EpsilonEnds(NamedTuple):
    """Proven ends of ε, and the key of the witness where both are ∞."""

    lower: float
    upper: float
    witness: str = ""


class Answer(NamedTuple):
    """What a mechanism gives away: the interval, the entry that dominates, and the entries of special runs."""

    claimed: float | None
    delta: float
    interval: EpsilonEnds
    entry: str
    special: tuple[tuple[str, str, str], ...]  # name, when, witness


@dataclass(frozen=True)
class _Entry:
    """An entry as numbers; μ = moves over noise, at least and at most."""

    name: str
    laplace: bool
    least: float
    most: float
    coordinates: tuple[float, float]


def _steps(z: float, rate: float, steps: float) -> dp_event.DpEvent:
    return dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(z)), int(steps))


@cache
def _rdp(z: float, rate: float, steps: float, delta: float) -> float:
    accountant = RdpAccountant()
    accountant.compose(_steps(z, rate, steps))
    return float(accountant.get_epsilon(delta))


@cache
def _rdp_noise(epsilon: float, delta: float, rate: float, steps: float) -> float:
    return math.exp(brentq(lambda z: _rdp(math.exp(z), rate, steps, delta) - epsilon, -2, 7, xtol=1e-9))


@cache
def _noise(epsilon: float, delta: float, rate: float, steps: float) -> float:
    return noise_multiplier(lambda z: _steps(z, rate, steps), epsilon, delta)


# What settings and claims may call, over Poisson-sampled steps: ε of a Rényi accountant and of the tight one here, and
# the noise at which each reports ε.
FUNCTIONS: dict[str, Callable[..., float]] = {
    "rdp": _rdp,
    "rdp_noise": _rdp_noise,
    "noisy": lambda z, rate, steps, delta: upper_epsilon(_steps(z, rate, steps), delta),
    "noise": _noise,
}


def bound_mechanism(
    mechanism: "Mechanism", rounds: int | None = None, changed: dict[str, float] | None = None, louder: float = 1.0
) -> Answer:
    """The true ε over all rounds; `changed` replaces settings, `louder` multiplies all noise."""
    names = mechanism.names(rounds, changed or {}, FUNCTIONS)
    claimed, delta = names.get("epsilon"), names["delta"]
    entries: list[_Entry] = []
    special = []
    for place, released in enumerate(mechanism.released):
        if released.counts_records and mechanism.claim.adjacency == "replace":
            continue
        why = _unbounded(mechanism, released, names["R"])
        if released.when is not None:
            special.append((released.name, released.when, why))
        elif why:
            return Answer(claimed, delta, EpsilonEnds(math.inf, math.inf, why), released.name, tuple(special))
        else:
            entries.append(_entry(mechanism, place, names, louder))
    exact = mechanism.sampling.records in ("full", "fixed_once") and names["silos"] == 1
    if exact and not any(entry.laplace for entry in entries):
        # All Gaussian and on all records: one Gaussian. No pair of neighbours is known that moves every entry at once.
        least, most = max(one.least for one in entries), math.hypot(*(one.most for one in entries))
        total = replace(entries[0], least=least, most=most)
        whole = _interval(mechanism, total, names, delta)
    else:
        parts = [_interval(mechanism, one, names, delta / len(entries)) for one in entries]
        lowers = [_interval(mechanism, one, names, delta) for one in entries] if len(entries) > 1 else parts
        whole = EpsilonEnds(max(part.lower for part in lowers), sum(part.upper for part in parts))
    dominant = max(entries, key=lambda one: one.most * one.coordinates[1])
    return Answer(claimed, delta, whole, dominant.name, tuple(special))


def _unbounded(mechanism: "Mechanism", released: "ReleasedEntry", rounds: float) -> str:
    """The witness of an entry that no finite ε covers; "" for any other."""
    if mechanism.standardised_by == "own_records":
        return "unbounded"
    if released.noise == "none":
        return "exact"
    if released.seed == "public":
        return "known"
    same_rounds = "rounds" not in released.independent_across and rounds > 1
    same_silos = "silos" not in released.independent_across and mechanism.silos_seen > 1
    if same_rounds or (same_silos and mechanism.view in ("message", "each_step")):
        return "cancels"
    if released.threshold == "data_dependent":
        return "scale"
    return "unbounded" if released.clip == "none" and released.moves is None else ""


def _entry(mechanism: "Mechanism", place: int, names: dict[str, float], louder: float) -> _Entry:
    released = mechanism.released[place]
    sd = mechanism.numbers(place, "sd", names)[0] * louder
    if sd <= 0:
        raise ValueError(f"released[{place}].sd: {sd:g}: must be positive")
    coordinates = mechanism.numbers(place, "coordinates", names)
    if released.moves is None:
        least = most = _moved(mechanism, released, names)
    else:
        least, most = mechanism.numbers(place, "moves", names)
    return _Entry(released.name, released.noise == "laplace", least / sd, most / sd, coordinates)


def _moved(mechanism: "Mechanism", released: "ReleasedEntry", names: dict[str, float]) -> float:
    """Sensitivity that a clip at C leaves: what is clipped as a whole can turn round, one record's gradient can go."""
    clip = names.get("C")
    if clip is None:
        raise ValueError("settings.C: missing: a clipped entry needs the clip threshold, or `moves`")
    gone = mechanism.claim.adjacency == "add_remove"
    alone = released.clip == "per_record" or mechanism.claim.unit == "silo"
    moved = clip * (1.0 if gone and alone else 2.0)
    if released.clip == "coordinate":
        moved *= names["d"] if released.noise == "laplace" else math.sqrt(names["d"])
    return moved * (math.sqrt(names["tensors"]) if released.tensors == "each" else 1.0)


def _interval(mechanism: "Mechanism", entry: _Entry, names: dict[str, float], delta: float) -> EpsilonEnds:
    rounds, local = int(names["R"]), max(round(names["local"]), 1)
    rate, silos, records = names["rate"], names["silos"], mechanism.sampling.records
    seen = mechanism.view == "each_step"
    if entry.laplace:
        if silos < 1:
            raise ValueError("sampling.silos: below 1 needs Gaussian noise: no lower end is proven for Laplace noise")
        return _laplace(entry, rounds, delta)
    if mechanism.sampling.hidden and silos < 1:
        if mechanism.claim.unit != "silo" or records != "full":
            raise ValueError("sampling.hidden: true: needs claim.unit silo and sampling.records full")
        records, rate, silos, seen = "poisson", silos, 1.0, True
    if records in ("full", "fixed_once"):
        if silos < 1:
            raise ValueError("sampling.silos: below 1 needs sampling.records poisson, or hidden: true")
        count = math.sqrt(rounds * local)
        return EpsilonEnds(gaussian_epsilon(delta, entry.least * count), gaussian_epsilon(delta, entry.most * count))
    if records == "shuffled":
        epochs = local * rate * rounds
        # Whole epochs are over; Σk² over rounds of k turns each is least where they are spread evenly.
        summed = entry.least * math.floor(epochs + 1e-9) / math.sqrt(local * rounds)
        # A record more shifts others over the batches: one is replaced in one batch, and the last gains one.
        shifted = math.sqrt(5) if mechanism.claim.adjacency == "add_remove" else 1.0
        most = entry.most * shifted * math.sqrt(math.ceil(epochs - 1e-9))
        return EpsilonEnds(gaussian_epsilon(delta, summed), gaussian_epsilon(delta, most))
    replaced = mechanism.claim.adjacency == "replace"
    if replaced != (records == "subset"):
        raise ValueError(f"sampling.records: {records!r}: poisson needs add_remove neighbours, subset replaced ones")
    if replaced and silos < 1:
        raise ValueError("sampling.silos: below 1 needs sampling.records poisson")

    def event(mu: float) -> dp_event.DpEvent:
        if not replaced:
            return _steps(1 / mu, rate, rounds * local)
        gaussian, n = dp_event.GaussianDpEvent(1 / mu), int(names["n"])
        drawn = dp_event.SampledWithoutReplacementDpEvent(n, max(round(rate * n), 1), gaussian)
        return dp_event.SelfComposedDpEvent(drawn, rounds * local)

    upper = _sometimes_upper(entry.most, rate, local, silos, rounds, delta) if silos < 1 else 0.0
    upper = upper or upper_epsilon(event(entry.most), delta)
    if silos == 1 and (seen or local == 1):
        return EpsilonEnds(delivered_epsilon(event(entry.least), delta).lower, upper)
    if mechanism.optimizer.name == "adam" or replaced:
        return EpsilonEnds(0.0, upper)
    law = message_occurrences(rate, local, mechanism.optimizer.momentum, entry.least)
    return EpsilonEnds(_sometimes_lower(law, silos, rounds, delta), upper)


def message_occurrences(rate: float, local: int, momentum: float, mu: float) -> Occurrences:
    """What the message after `local` Poisson-sampled steps shows of a record of constant gradient.

    Step t enters the message with weight w_t = (1 − β^(T−t+1))/(1 − β), the noise with √Σw_t². Weights are rounded down
    to twentieths of the largest, which only lowers ε: the likelihood ratio rises with every shift.
    """
    weights = (1 - momentum ** np.arange(local, 0, -1)) / (1 - momentum)
    levels = _LEVELS if momentum else 1
    units = np.floor(weights / weights.max() * levels + 1e-12).astype(int)
    masses = np.ones(1)
    for unit, count in zip(*np.unique(units, return_counts=True), strict=True):
        times = np.arange(min(int(binom.isf(_TAIL, count, rate)) + 1, count) + 1)
        spread = np.bincount(times * unit, weights=binom.pmf(times, count, rate))
        masses = np.convolve(masses, spread)
    last = len(masses) - int(np.argmax(np.cumsum(masses[::-1]) > _TAIL))
    masses = masses[:last]
    masses[0] += 1 - masses.sum()  # what was cut counts as no occurrence
    shift = mu * weights.max() / levels / math.sqrt(float(np.sum(weights**2)))
    return Occurrences(masses, 0.0, shift)


def _sometimes_lower(law: Occurrences, silos: float, rounds: int, delta: float) -> float:
    """ε from below of `rounds` messages, each sent with probability `silos`, which is seen."""
    bracket = Bracket([(law, rounds)], delta, poisson=True)
    if bracket.nothing or bracket.far:
        return 0.0
    found = []
    for reverse in (False, True):
        losses = pair_losses(law, bracket.step, bracket.tops[0], upper=False, reverse=reverse)
        masses = losses.masses * silos
        # A round without the silo has loss 0: the next lattice loss below.
        masses[int(np.flatnonzero(losses.losses <= 1e-15)[-1])] += 1 - silos
        found.append(epsilon_at(Composition([(replace(losses, masses=masses), rounds)]), delta, upper=False))
    return max(found)


@cache
def _sometimes_upper(mu: float, rate: float, local: int, silos: float, rounds: int, delta: float) -> float:
    grid = max(1e-4, 1e-4 * mu * mu)
    step = pld.from_gaussian_mechanism(1 / mu, sampling_prob=rate, value_discretization_interval=grid)
    one = step.self_compose(local).compute_mixture(pld.identity(grid), silos)
    return float(one.self_compose(rounds).get_epsilon_for_delta(delta))


def _laplace(entry: _Entry, rounds: int, delta: float) -> EpsilonEnds:
    """`coordinates` values, each moved by μ scales, in every round; the upper end is that of pure composition."""
    fewest, most = (round(rounds * count) for count in entry.coordinates)
    composed = Composition([(laplace_losses(entry.least), fewest)])
    lower = epsilon_at(composed, delta, upper=False)
    if fewest * math.log(2) < -math.log(delta):
        # All losses are the largest with probability 2^−k.
        lower = max(lower, entry.least * fewest + math.log1p(-delta * 2.0**fewest))
    return EpsilonEnds(lower, entry.most * most)


def laplace_losses(mu: float) -> LossPmf:
    """Losses of one value moved by μ scales of its Laplace noise, merged into cells of the line: from below.

    Beyond the two centres the loss is ±μ. Between them a cell [a, a + w] (in scales) has the loss 2a + w − μ exactly.
    """
    cells = max(_CELLS, math.ceil(mu * _CELLS))
    edges = np.linspace(0, mu, cells + 1)
    masses = np.zeros(2 * cells + 1)
    masses[1::2] = np.diff(np.exp(edges - mu)) / 2
    masses[0], masses[-1] = math.exp(-mu) / 2, 0.5
    return LossPmf(mu / cells, 0, masses, offset=-mu)


def most_rounds(mechanism: "Mechanism", budget: float, changed: dict[str, float] | None = None) -> int:
    """The most rounds whose upper end is at most `budget`; 0 where none is."""

    def upper(rounds: int) -> float:
        return bound_mechanism(mechanism, rounds, changed).interval.upper

    high = 1
    while high < 1 << 20 and upper(high) <= budget:
        high *= 2
    return bisect_right(range(1, high), budget, key=upper)


def noise_factor(mechanism: "Mechanism", budget: float, rounds: int, changed: dict[str, float] | None = None) -> float:
    """What all noise is to be multiplied by, e⁻⁷ to e¹², so that the upper end is `budget`; ∞ if none does."""

    def excess(log_factor: float) -> float:
        upper = bound_mechanism(mechanism, rounds, changed, math.exp(log_factor)).interval.upper
        return math.log(max(upper, 1e-12) / budget)

    if excess(12.0) > 0:
        return math.inf
    return math.exp(-7.0 if excess(-7.0) <= 0 else float(brentq(excess, -7.0, 12.0, xtol=1e-4)) + 1e-4)
