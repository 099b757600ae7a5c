"""The pure report of a vector: its privacy, its mean, and its closed form at the half-sphere."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gamma

from silodp.privacy.shuffling.unit_vectors import best_cap, cap

EPSILONS = st.floats(0.01, 20)


@given(epsilon0=EPSILONS, d=st.integers(2, 300), height=st.floats(0, 0.9))
@settings(max_examples=50, deadline=None)
def test_the_two_densities_differ_by_the_factor_e_to_epsilon0(epsilon0, d, height):
    one = cap(epsilon0, d, height)
    if one.share > 1e-200:  # an empty cap is never the best
        assert one.hit * (1 - one.share) / (one.share * (1 - one.hit)) == pytest.approx(math.exp(epsilon0), rel=1e-6)


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("d", [2, 5, 32])
def test_the_half_sphere_has_the_known_scale(epsilon0, d):
    known = math.sqrt(math.pi) * gamma((d + 1) / 2) / gamma(d / 2) / math.tanh(epsilon0 / 2)
    assert cap(epsilon0, d, 0.0).scale == pytest.approx(known, rel=1e-12)


@pytest.mark.parametrize("epsilon0", [0.2, 2.0, 8.0])
def test_the_best_cap_beats_its_neighbours_and_the_half_sphere(epsilon0):
    best = best_cap(epsilon0, 33)
    for height in (0.0, best.height * 0.98, best.height * 1.02):
        assert best.scale <= cap(epsilon0, 33, height).scale


@pytest.mark.parametrize(("epsilon0", "d"), [(0.5, 3), (3.0, 33)])
def test_quantiles_have_the_cap_s_probability_and_the_mean_that_the_scale_undoes(epsilon0, d):
    one = best_cap(epsilon0, d)
    grid = (np.arange(200_000) + 0.5) / 200_000
    along = one.projection(grid)
    assert (np.diff(along) <= 0).all()
    assert np.abs(along).max() <= 1
    assert (along >= one.height).mean() == pytest.approx(one.hit, abs=1e-5)
    assert one.scale * along.mean() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("epsilon0", "d", "word"), [(0.0, 5, "epsilon0"), (501, 5, "epsilon0"), (1.0, 1, "d = 1")])
def test_values_without_meaning_are_refused(epsilon0, d, word):
    with pytest.raises(ValueError, match=word):
        best_cap(epsilon0, d)
