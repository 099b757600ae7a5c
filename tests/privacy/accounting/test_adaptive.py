"""The reacting neighbours' lower bound against a plain dynamic programme, and between the other two bounds."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from silodp.privacy.accounting.accountant import adaptive_lower_epsilon
from silodp.privacy.accounting.losses import (
    Composition,
    chernoff_order,
    epsilon_at,
    pair_losses,
    replace_one_losses,
)
from silodp.privacy.message_counts import Occurrences, with_replacement


def programme(occurrences: Occurrences, count: int, delta: float) -> tuple[float, float]:
    """(best reaction's ε, plain pair's ε) by quadrature and interpolation, without any care for the side of errors."""
    p, s = occurrences.weights, occurrences.shift
    j = np.arange(len(p))
    y = np.linspace(-8, 8 + s * len(p), 1200)
    edges = np.append(y - (y[1] - y[0]) / 2, y[-1] + (y[1] - y[0]) / 2)
    with np.errstate(divide="ignore"):
        loss = np.logaddexp.reduce(np.log(p) + j * s * y[:, None] - (j * s) ** 2 / 2, axis=1)
    under_p = np.diff(ndtr(edges[:, None] - j * s) @ p)
    under_q = np.diff(ndtr(edges))
    x = np.linspace(-14, 26, 5001)
    best = plain = np.maximum(-np.expm1(x), 0)

    def ahead(value: np.ndarray, masses: np.ndarray, losses: np.ndarray) -> np.ndarray:
        kept = masses > 1e-14
        total = np.zeros_like(x)
        for mass, shift in zip(masses[kept], losses[kept], strict=True):
            total += mass * np.interp(x - shift, x, value, left=1.0, right=0.0)
        return total

    for _ in range(count):
        best = np.maximum(ahead(best, under_p, loss), ahead(best, under_q, -loss))
        plain = ahead(plain, under_p, loss)
    return tuple(float(np.interp(-math.log(delta), -np.log(np.maximum(value, 1e-300)), x)) for value in (best, plain))


@pytest.mark.parametrize(("n", "drawn", "noise", "count", "delta"), [(20, 10, 1.0, 5, 1e-3), (5, 2, 2.0, 3, 1e-2)])
def test_agrees_with_a_plain_dynamic_programme(n: int, drawn: int, noise: float, count: int, delta: float) -> None:
    occurrences = with_replacement(n, drawn, noise, 1e-12)
    best, plain = programme(occurrences, count, delta)
    step, top = 1e-3, 40.0
    plain_pair = Composition([(pair_losses(occurrences, step, top, upper=False), count)])
    static = epsilon_at(plain_pair, delta, upper=False)
    upper = epsilon_at(Composition([(replace_one_losses(occurrences, step, top), count)]), delta, upper=True)
    order = chernoff_order(plain_pair.log_moment, delta)[0]
    found = adaptive_lower_epsilon(occurrences, count, delta, order=order, step=step, top=top, upper=upper)
    assert static == pytest.approx(plain, rel=2e-3)
    assert found == pytest.approx(best, rel=3e-3)
    assert static < found < upper
