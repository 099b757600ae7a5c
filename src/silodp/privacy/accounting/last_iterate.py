"""Upper ε where only the last local iterate of steps that cannot expand distances is seen (docs/accounting.md)."""

import math

import numpy as np

from silodp.privacy.accounting.losses import Composition, connected_losses, epsilon_at
from silodp.privacy.accounting.mechanisms import gaussian_log_profile
from silodp.privacy.message_counts import with_replacement

_NEGLIGIBLE = 1e-7  # share of δ spent on rounds that draw the record more often than is looked at
_RATIO = 1.02  # of neighbouring exponents on the grid; exponents are rounded up
_STEP = 0.01  # of the lattice of losses,
_POINTS = 1 << 14  # of which there are no more, whatever accuracy that leaves
_HALVINGS = 45


def last_iterate_epsilon(steps: int, rounds: int, n: int, noise_multiplier: float, delta: float) -> float:
    """Upper ε at δ of `rounds` last iterates of K one-record steps each; σ/(2L) is a step's noise multiplier.

    Each step draws one of n records uniformly, with replacement; replace-one neighbours. ValueError for K or n below 1.
    """
    if min(steps, rounds, n) < 1:
        raise ValueError(f"steps = {steps}, rounds = {rounds}, n = {n}: must be at least 1")
    level = _NEGLIGIBLE * delta / rounds
    mechanism = occurrence_exponents(steps, n, level)
    shift = 1 / noise_multiplier
    reach = shift * math.sqrt(mechanism[1][-1])
    coarse = np.linspace(0, reach**2 / 2 + reach * math.sqrt(-2 * math.log(level)), 100)[1:]
    # Losses beyond which one round's profile is negligible are not looked at.
    top = coarse[np.argmax(last_iterate_profile(mechanism, shift, coarse) <= 2 * level)]
    step = max(_STEP, top / _POINTS)
    profile = last_iterate_profile(mechanism, shift, np.arange(math.ceil(top / step) + 2) * step)
    losses = connected_losses(np.minimum.accumulate(profile), step)
    return epsilon_at(Composition([(losses, rounds)]), delta, upper=True)


def occurrence_exponents(steps: int, n: int, tail: float) -> tuple[float, np.ndarray, np.ndarray, float]:
    """(p₀, e, weights, tail): the law of e(T) over the steps T of a round that draw the record, from above.

    With m₁ < m₂ < … the steps left from each draw on, its own included, e(T) = min_j j + Σ_{i>j} (2i − 1)/mᵢ; p₀
    is the probability of no draw, the last value that of more draws than are looked at, at most `tail` more than it has
    to be.
    """
    most = len(with_replacement(n, steps, 1.0, tail).weights) - 1
    exact = np.concatenate([1 / np.arange(1, steps + 1), np.arange(1, most + 1)])
    spread = np.geomspace(1 / steps, max(most, 1), 2 + math.ceil(math.log(steps * max(most, 1)) / math.log(_RATIO)))
    grid = np.unique(np.concatenate([[0.0], exact, spread]))
    share, beyond = 1 / n, 0.0
    mass = np.zeros((most + 1, len(grid)))
    mass[0, 0] = 1.0
    # From the last step of a round to the first, so that mᵢ grows with i.
    for left in range(1, steps + 1):
        beyond += share * mass[most].sum()
        new = mass * (1 - share)
        for j in range(most):
            raised = np.minimum(grid + (2 * j + 1) / left, j + 1)
            places = np.searchsorted(grid, raised * (1 - 1e-14))
            new[j + 1] += share * np.bincount(places, mass[j], minlength=len(grid))
        mass = new
    weights = mass[1:].sum(0)
    some = weights > 0
    return float(mass[0, 0]), grid[some], weights[some], beyond


def last_iterate_profile(
    mechanism: tuple[float, np.ndarray, np.ndarray, float], shift: float, epsilon: np.ndarray
) -> np.ndarray:
    """Upper bound on δ(ε) of one round, for ε ≥ 0 of shape (E,), both orders of any neighbours.

    `mechanism` is what `occurrence_exponents` gives, `shift` 2L/σ. A round with exponent e counts as a Gaussian with
    μ = shift·√e; of the mass e^ε of the other neighbour each takes the share max(e^ε, e^(tμ − μ²/2)), with the t at
    which all shares together use what rounds without the record leave over.
    """
    none, exponents, weights, tail = mechanism
    mu = shift * np.sqrt(exponents)
    epsilon = np.asarray(epsilon, dtype=float)[:, None]
    budget = -np.expm1(-epsilon[:, 0]) * none
    low, high = np.zeros(len(epsilon)), np.full(len(epsilon), 1.0)

    def used_mass(t: np.ndarray) -> np.ndarray:
        return np.expm1(np.minimum(np.maximum(0, t[:, None] * mu - mu**2 / 2 - epsilon), 700)) @ weights

    while (short := used_mass(high) <= budget).any() and high.max() < 1e9:
        high = np.where(short, 2 * high, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = used_mass(middle) <= budget
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    log_share = np.maximum(epsilon, low[:, None] * mu - mu**2 / 2)
    return np.minimum(tail + np.exp(gaussian_log_profile(log_share, mu)) @ weights, 1.0)
