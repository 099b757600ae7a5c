"""The lattice's price: raised noise covers how far rounding moves two neighbours apart."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.silos.lattice import SLACK, lattice_step, raise_noise, steps_of_noise

RELEASE = Release("gradient", 3, 2, 1.0)


def plan(noise):
    return PrivacyPlan("minibatch_sgd", Budget(10, 3, 1.0, 1e-5, 1.0), (replace(RELEASE, noise=noise),))


@given(noise=st.floats(1e-3, 1e3), size=st.integers(1, 10_000))
def test_raised_noise_is_the_plans_beside_a_sensitivity_with_all_roundings(noise, size):
    (raised,) = raise_noise(plan(noise), size).releases
    step = lattice_step(raised.noise)
    assert 2.0**-21 < step / raised.noise <= 2.0**-20
    assert raised.noise <= steps_of_noise(raised.noise) * step < raised.noise + step
    reached = raised.sensitivity * (1 + SLACK) + math.sqrt(size) * step
    assert raised.noise / reached >= noise / raised.sensitivity * (1 - 1e-15)
    # And no more than a lattice of twice the step asks for.
    assert raised.noise / (reached + math.sqrt(size) * step) <= noise / raised.sensitivity


def test_noise_whose_lattice_is_coarse_beside_the_clip_is_refused():
    with pytest.raises(ValueError, match=r"d = 4: noise of 'gradient' is too large"):
        raise_noise(plan(2.0**20 / 3 * RELEASE.sensitivity), 4)


def test_rounding_may_be_half_of_the_sensitivity_and_no_more():
    largest = 2.0**19 * RELEASE.sensitivity
    raise_noise(plan(largest), 1)
    with pytest.raises(ValueError, match=r"d = 1: noise of 'gradient' is too large"):
        raise_noise(plan(math.nextafter(largest, math.inf)), 1)
