"""Delivered ε: closed forms, dp-accounting's accountants, order, monotony, extremes, and the width of the bracket."""

import math
from dataclasses import dataclass

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.privacy.accounting.accountant import delivered_epsilon, upper_epsilon
from silodp.privacy.accounting.mechanisms import gaussian_epsilon

REPLACE_ONE = dp.NeighboringRelation.REPLACE_ONE


def drawn(records: int, batch: int, noise: float, rounds: int, *, replaced: bool = True) -> dp.SelfComposedDpEvent:
    """`rounds` Gaussian releases on `batch` of `records`, with or without replacement."""
    kind = dp.SampledWithReplacementDpEvent if replaced else dp.SampledWithoutReplacementDpEvent
    return dp.SelfComposedDpEvent(kind(records, batch, dp.GaussianDpEvent(noise)), rounds)


def minibatch_row(records: int, rounds: int, claimed: float) -> tuple[dp.DpEvent, float]:
    """MB-SGD of the non-convex experiments: K = ⌊n√24/(2√R)⌋, σ² = 8L²R ln(2/δ)/(n²ε²), δ = 1/n²."""
    batch, delta = math.floor(records * math.sqrt(24) / (2 * math.sqrt(rounds))), records**-2
    sigma = math.sqrt(8 * rounds * math.log(2 / delta)) / (records * claimed)
    return drawn(records, batch, sigma * batch / 2, rounds), delta


@pytest.mark.parametrize("delta", [1e-3, 1e-12, 1e-200])
def test_gaussians_are_exact_however_they_are_nested(delta: float) -> None:
    event = dp.ComposedDpEvent(
        [
            dp.SelfComposedDpEvent(dp.ComposedDpEvent([dp.GaussianDpEvent(2.0), dp.NoOpDpEvent()]), 5),
            dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(dp.GaussianDpEvent(4.0), 3), 2),
            dp.SampledWithoutReplacementDpEvent(40, 40, dp.GaussianDpEvent(1.0)),
        ]
    )
    delivered = delivered_epsilon(event, delta)
    exact = gaussian_epsilon(delta, math.sqrt(5 / 4 + 6 / 16 + 1))
    assert delivered[:3] == pytest.approx((exact, exact, exact), rel=1e-12)
    assert delivered.method == "Gaussian composition, closed form"
    assert upper_epsilon(event, delta) == delivered.upper


def test_one_record_is_group_privacy() -> None:
    """With one record every draw is that record: K occurrences shift the mean K times as far."""
    assert delivered_epsilon(drawn(1, 7, 14.0, 3), 1e-5).upper == pytest.approx(
        gaussian_epsilon(1e-5, math.sqrt(3) / 2)
    )


def test_one_draw_is_the_same_with_and_without_replacement() -> None:
    assert delivered_epsilon(drawn(300, 1, 0.8, 400), 1e-6) == delivered_epsilon(
        drawn(300, 1, 0.8, 400, replaced=False), 1e-6
    )


def test_sampling_nearly_everything_is_nearly_the_gaussian() -> None:
    delivered = delivered_epsilon(drawn(10**6, 10**6 - 1, 3.0, 10, replaced=False), 1e-5)
    assert delivered.lower == pytest.approx(gaussian_epsilon(1e-5, math.sqrt(10) / 3), rel=1e-3)
    assert delivered.upper == pytest.approx(gaussian_epsilon(1e-5, math.sqrt(10) / 3), rel=1e-3)


@pytest.mark.parametrize(("probability", "noise", "rounds", "delta"), [(0.1, 1.0, 50, 1e-5), (0.5, 4.0, 25, 1e-8)])
def test_poisson_agrees_with_dp_accounting(probability: float, noise: float, rounds: int, delta: float) -> None:
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(probability, dp.GaussianDpEvent(noise)), rounds)
    delivered = delivered_epsilon(event, delta)
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(delta)
    assert delivered.lower == pytest.approx(theirs, rel=1e-3)
    assert delivered.upper == pytest.approx(theirs, rel=1e-3)
    assert "add/remove" in delivered.method


@pytest.mark.parametrize(
    ("records", "batch", "noise", "rounds"), [(1000, 100, 1.0, 50), (1238, 606, 4.5, 25), (500, 1, 0.8, 2000)]
)
def test_without_replacement_is_within_the_renyi_accountants_bound(
    records: int, batch: int, noise: float, rounds: int
) -> None:
    event = drawn(records, batch, noise, rounds, replaced=False)
    delivered = delivered_epsilon(event, 1e-6)
    theirs = RdpAccountant(neighboring_relation=REPLACE_ONE).compose(event).get_epsilon(1e-6)
    assert delivered.lower <= delivered.upper <= theirs


@pytest.mark.parametrize("records", [169, 1238])
@pytest.mark.parametrize("rounds", [25, 50])
@pytest.mark.parametrize("claimed", [0.75, 1, 1.5, 3, 6, 12, 18])
def test_bracket_is_tight_on_every_minibatch_row_of_the_experiments(records: int, rounds: int, claimed: float) -> None:
    delivered = delivered_epsilon(*minibatch_row(records, rounds, claimed))
    assert 0 < delivered.lower <= delivered.estimate <= delivered.upper
    assert delivered.upper / delivered.lower <= (1.05 if records == 1238 else 1.08)


@pytest.mark.parametrize(("rounds", "claimed"), [(25, 0.75), (25, 6), (50, 12)])
def test_bracket_is_as_tight_without_replacement(rounds: int, claimed: float) -> None:
    event, delta = minibatch_row(1238, rounds, claimed)
    batch = event.event
    without = dp.SelfComposedDpEvent(dp.SampledWithoutReplacementDpEvent(1238, batch.sample_size, batch.event), rounds)
    delivered = delivered_epsilon(without, delta)
    assert delivered.upper / delivered.lower <= 1.05
    assert delivered.upper < delivered_epsilon(event, delta).upper


@pytest.mark.parametrize(("noise", "limit"), [(1.6, 1.04), (0.84, 1.03), (0.1, 1.02), (0.03, 1.01)])
def test_bracket_of_local_steps(noise: float, limit: float) -> None:
    delivered = delivered_epsilon(drawn(1238, 1, noise, 15_150), 1238**-2)
    assert delivered.upper / delivered.lower <= limit


def test_two_kinds_of_messages_cost_more_than_either_and_at_most_their_sum() -> None:
    first, second = drawn(500, 100, 3.0, 13), drawn(500, 50, 1.5, 12)
    delta = 1e-6
    both = delivered_epsilon(dp.ComposedDpEvent([first, second]), delta)
    alone = [delivered_epsilon(event, delta / 2) for event in (first, second)]
    assert max(delivered_epsilon(event, delta).lower for event in (first, second)) < both.lower
    assert both.upper < alone[0].upper + alone[1].upper
    assert both.upper / both.lower < 1.08


def test_kinds_that_differ_in_name_only_add_up() -> None:
    split = dp.ComposedDpEvent([drawn(400, 90, 2.0, 9), drawn(400, 90, 2.0, 6)])
    assert delivered_epsilon(split, 1e-6) == delivered_epsilon(drawn(400, 90, 2.0, 15), 1e-6)


EVENTS = st.tuples(
    st.integers(2, 3000),
    st.floats(0.0005, 1.1),
    st.floats(0.05, 60),
    st.integers(1, 400),
    st.floats(-30, -2),
    st.booleans(),
)


Setting = tuple[int, float, float, int, float, bool]


@given(EVENTS)
@settings(deadline=None, max_examples=40)
def test_upper_is_never_below_lower(setting: Setting) -> None:
    records, share, noise, rounds, log_delta, replaced = setting
    batch = max(int(records * share), 1)
    event = drawn(records, batch if replaced else min(batch, records), noise, rounds, replaced=replaced)
    delivered = delivered_epsilon(event, math.exp(log_delta))
    assert 0 <= delivered.lower <= delivered.upper * (1 + 1e-9) < math.inf
    assert delivered.estimate == (delivered.lower + delivered.upper) / 2


@given(EVENTS)
@settings(deadline=None, max_examples=5)
def test_more_noise_fewer_rounds_a_larger_delta_and_smaller_batches_are_more_private(setting: Setting) -> None:
    is_monotone(setting)


@pytest.mark.slow
@given(EVENTS)
@settings(deadline=None, max_examples=50)
def test_so_it_is_for_many_more(setting: Setting) -> None:
    is_monotone(setting)


def is_monotone(setting: Setting) -> None:
    """In the noise on the sum, σK, at one draw more or less: a batch twice as large is worse at the same multiplier."""
    records, share, noise, rounds, log_delta, _ = setting
    noise = max(noise, 0.3)
    batch, delta = max(int(records * min(share, 0.5)), 1), math.exp(log_delta)
    here = delivered_epsilon(drawn(records, batch, noise, rounds), delta)
    slack = 1e-3 * here.upper + 1e-5  # the lattices differ
    for other in (
        delivered_epsilon(drawn(records, batch, 1.2 * noise, rounds), delta),
        delivered_epsilon(drawn(records, batch, noise, max(rounds * 2 // 3, 1)), delta),
        delivered_epsilon(drawn(records, batch, noise, rounds), min(delta * 4, 0.9)),
        delivered_epsilon(drawn(records, max(batch // 2, 1), noise, rounds), delta),
        delivered_epsilon(drawn(2 * records, batch, noise, rounds), delta),
    ):
        assert other.lower <= here.upper
        assert other.upper <= here.upper + slack


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (drawn(1238, 606, 0.2, 25), 1e-6),
        (drawn(1238, 1, 0.03, 60_000), 1e-6),
        (drawn(100, 100, 0.01, 100), 1e-9),
        (drawn(1000, 400, 5.0, 30), 1e-12),
        (drawn(1000, 400, 0.5, 30, replaced=False), 1e-15),
    ],
)
def test_large_epsilon_and_tiny_delta_are_finite_and_bracketed(event: dp.DpEvent, delta: float) -> None:
    delivered = delivered_epsilon(event, delta)
    assert 0 < delivered.lower <= delivered.upper < math.inf
    assert delivered.upper / delivered.lower < 1.1


def test_large_epsilon_is_what_it_has_to_be() -> None:
    """With hardly any noise, a record in every message costs about Σ(J/z)²/2 at the likely worst numbers of draws."""
    delivered = delivered_epsilon(drawn(10, 10, 0.01, 1, replaced=False), 1e-5)
    assert delivered.upper == pytest.approx(gaussian_epsilon(1e-5, 100))
    assert delivered.upper > 5000


def test_large_delta_costs_nothing() -> None:
    assert delivered_epsilon(drawn(1000, 1, 30.0, 10), 0.5)[:3] == (0, 0, 0)


@dataclass
class Plan:
    event: dp.DpEvent


def test_plans_and_degenerate_events() -> None:
    event = drawn(100, 10, 2.0, 5)
    assert delivered_epsilon(Plan(event), 1e-4) == delivered_epsilon(event, 1e-4)
    assert upper_epsilon(Plan(event), 1e-4) == delivered_epsilon(event, 1e-4).upper
    assert delivered_epsilon(dp.NoOpDpEvent(), 1e-5) == (0, 0, 0, "nothing is released")
    assert upper_epsilon(dp.NoOpDpEvent(), 1e-5) == 0
    for event in (
        dp.NonPrivateDpEvent(),
        dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.NonPrivateDpEvent()]),
        drawn(10, 2, 0.0, 3),
    ):
        assert delivered_epsilon(event, 1e-5) == (math.inf, math.inf, math.inf, "not private")
        assert upper_epsilon(event, 1e-5) == math.inf


@pytest.mark.parametrize(
    ("event", "delta", "message"),
    [
        (dp.GaussianDpEvent(1.0), 0.0, "delta = 0.0: must lie strictly between 0 and 1"),
        (dp.GaussianDpEvent(-1.0), 1e-5, "noise multiplier = -1.0: must not be negative"),
        (dp.GaussianDpEvent(math.nan), 1e-5, "noise multiplier = nan: must not be negative"),
        (drawn(10, 11, 1.0, 1, replaced=False), 1e-5, "sample of 11 out of 10 records"),
        (dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), -1), 1e-5, "composition count = -1"),
        (dp.LaplaceDpEvent(1.0), 1e-5, "only Gaussian releases are supported"),
        (dp.PoissonSampledDpEvent(1.5, dp.GaussianDpEvent(1.0)), 1e-5, "sampling probability = 1.5"),
        (
            dp.ComposedDpEvent([drawn(10, 2, 1.0, 1), dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.0))]),
            1e-5,
            "cannot join replace-one sampling",
        ),
    ],
)
def test_wrong_events_say_what_is_wrong(event: dp.DpEvent, delta: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        delivered_epsilon(event, delta)


def test_lower_end_is_reached_by_simulated_transcripts_of_two_silos() -> None:
    """Vectors, not scalars: the first silo's record points one way, all others the other way; so does the second's."""
    records, batch, noise, rounds, delta = 12, 5, 1.2, 4, 0.03
    rng = np.random.default_rng(11)
    trials = 100_000
    picks = rng.integers(0, records, (trials, rounds, batch))
    direction = np.array([0.6, -0.8])
    sums = (np.where(picks == 0, 1.0, -1.0).sum(axis=2))[..., None] * direction
    sigma = 2 * noise  # the sum's sensitivity is 2 for one occurrence
    seen = sums + sigma * rng.standard_normal((trials, rounds, 2))
    counts = np.arange(batch + 1)
    weights = np.array([math.comb(batch, k) * (1 / records) ** k * (1 - 1 / records) ** (batch - k) for k in counts])

    def density(means: np.ndarray, shares: np.ndarray) -> np.ndarray:
        along = seen @ direction
        return np.exp(-((along[..., None] - means) ** 2) / (2 * sigma**2)) @ shares

    losses = np.log(density(2.0 * counts - batch, weights) / density(np.array([-batch]), np.ones(1))).sum(axis=1)
    epsilon = delivered_epsilon(drawn(records, batch, noise, rounds), delta)
    gains = [np.maximum(-np.expm1(np.minimum(end - losses, 0)), 0) for end in (epsilon.lower, epsilon.upper)]
    errors = [4 * gain.std() / math.sqrt(trials) for gain in gains]
    assert gains[0].mean() >= 0.9 * delta - errors[0]
    assert gains[1].mean() <= delta + errors[1]
