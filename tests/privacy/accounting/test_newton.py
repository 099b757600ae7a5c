"""Where a sum of shifted likelihood ratios takes a value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from silodp.privacy.accounting.newton import where_sum_is

weights = st.lists(st.floats(1e-280, 1.0), min_size=1, max_size=30)


@given(weights, st.floats(1e-3, 5.0), st.lists(st.floats(-600.0, 600.0), min_size=1, max_size=5))
def test_the_sum_takes_the_value_there(weights, shift, goals):
    log_weights, jumps, goals = np.log(weights), shift * np.arange(1, len(weights) + 1), np.array(goals)
    t = where_sum_is(log_weights, jumps, goals)
    found = logsumexp(log_weights - jumps**2 / 2 + jumps * t[:, None], axis=1)
    # The sum moves by at most its largest jump as t moves; t is found to some 1e-12 of itself.
    assert found == pytest.approx(goals, rel=1e-9, abs=1e-9 * jumps.max() * (1 + np.abs(t).max()))


def test_weights_of_zero_count_nothing():
    with np.errstate(divide="ignore"):
        log_weights = np.log(np.array([0.0, 0.5, 0.0, 0.25]))
    jumps, goal = np.array([1.0, 2.0, 3.0, 4.0]), np.array([-3.0, 0.0, 7.0])
    kept = [1, 3]
    assert where_sum_is(log_weights, jumps, goal) == pytest.approx(
        where_sum_is(log_weights[kept], jumps[kept], goal), rel=1e-12
    )


def test_one_term_is_solved_at_once_and_no_goal_gives_nothing():
    assert where_sum_is(np.array([-1.0]), np.array([2.0]), np.array([3.0])).tolist() == [3.0]
    assert where_sum_is(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), np.empty(0)).shape == (0,)
