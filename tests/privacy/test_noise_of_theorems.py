"""Noise that theorems print, against the exact accountant: how much less noise their claim would allow.

Full batches, so that a message is a Gaussian mechanism and a transcript is one of the root of summed squares. A factor
of two in a variance moves a slack by 1.41.
"""

from math import log, sqrt

import pytest

from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.theory import THEOREMS, AssumptionError

EPSILON, DELTA = 0.8, 1e-6
R, N, L, SMOOTHNESS, Q, S, E = 30, 1000, 0.5, 2.0, 3, 2, 10
POINT = {"epsilon": EPSILON, "delta": DELTA, "n": N, "R": R, "L": L, "K": N, "beta": SMOOTHNESS, "sensitivity": 1.0}


def of(key: str, **more):
    point = POINT | more
    return THEOREMS[key](**{name: point[name] for name in THEOREMS[key].parameters if name in point})


def spent(*messages: tuple[float, float, float]) -> float:
    """Sensitivity over noise of a transcript: of (count, sensitivity, variance)."""
    return sqrt(sum(count * size**2 / variance for count, size, variance in messages))


def spider(reading: str) -> float:
    found = of("nonconvex-3.1-noise", q=Q, reading=reading)
    fresh, rounds = -(-found.terms["messages"] // Q), found.terms["messages"]
    return spent((fresh, 2 * L / N, found.value), (rounds - fresh, 4 * L / N, found.terms["sigma2_hat_squared"]))


def svrg() -> float:
    terms = of("nonconvex-2.2-noise", S=S, E=E, Q=Q).terms
    # E full-batch gradients of size 2L/n in a restart, and E·Q differences of size 4L/n.
    full, differences = (S * E, 2 * L / N), (S * E * Q, 4 * L / N)
    return spent((*full, terms["sigma1_squared"]), (*differences, terms["sigma2_squared"]))


# What is spent -> how many times the least noise that is private, by the accountant.
SLACKS = {
    "convex-gaussian": (lambda: spent((1, 1.0, of("convex-gaussian").value ** 2)), 1.274),
    "convex-2.3-noise": (lambda: spent((1, 2 * L, of("convex-2.3-noise").value)), 1.274),
    "nonconvex-D.2": (lambda: spent((1, 1.0, of("nonconvex-D.2").terms["sigma"] ** 2)), 1.788),
    "nonconvex-2.1-noise": (lambda: spent((1, 2 * L, of("nonconvex-2.1-noise", K=1).value)), 1.788),
    "convex-2.1-noise": (lambda: spent((R, 2 * L / N, of("convex-2.1-noise").value)), 31.2),
    "convex-2.1-moments": (lambda: spent((R, 2 * L / N, of("convex-2.1-moments").value)), 1.264),
    "nonconvex-2.2-noise": (svrg, 22.6),
    "nonconvex-3.1-noise": (lambda: spider("right"), 1.788),
    "nonconvex-3.1-noise, printed": (lambda: spider("printed"), 1.345),
}


@pytest.mark.parametrize("name", SLACKS)
def test_a_theorems_noise_has_the_slack_that_the_accountant_finds(name):
    transcript, slack = SLACKS[name]
    assert gaussian_mu(EPSILON, DELTA) / transcript() == pytest.approx(slack, rel=0.05)


def test_the_moments_forms_range_of_K_has_the_noise_per_record_that_errata_derive():
    """Noise over the sensitivity 2L/K: ½/√ε at the lower end of the range, √(ln(1/δ)/(2ε)) at its upper end."""
    terms = of("convex-2.1-moments").terms
    ratios = [terms["sigma"] * terms[end] / (2 * L) for end in ("K_above", "K_at_most")]
    assert ratios == pytest.approx([0.5 / sqrt(EPSILON), sqrt(log(1 / DELTA) / (2 * EPSILON))])


def test_theorem_2_2_is_twice_theorem_2_1_and_the_gap_of_an_envelope():
    point = {"d": 4, "M": 100, "D": 1.0}
    plain = of("convex-2.1", **point).value
    found = of("convex-2.2", **point)
    ratios = [found.value / plain, found.terms["with_lipschitz_L"] / plain]
    assert ratios == pytest.approx([2 + 1 / 272, 1 + 0.5 / 272])


ENDS = {  # of the printed range of ε, in ln(1/δ) or as a number
    "convex-gaussian": 1.0,
    "convex-2.3-noise": 1.0,
    "convex-2.1-moments": 2 * log(1 / DELTA),
    "nonconvex-D.2": 2 * log(1 / DELTA),
    "nonconvex-3.1-noise": 2 * log(1 / DELTA),
}


@pytest.mark.parametrize("key", ENDS)
def test_a_range_of_epsilon_ends_where_it_is_printed(key):
    of(key, q=Q, epsilon=ENDS[key] * 0.999)
    with pytest.raises(AssumptionError, match="epsilon"):
        of(key, q=Q, epsilon=ENDS[key] * 1.001)
