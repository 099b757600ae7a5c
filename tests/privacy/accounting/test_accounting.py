"""Delivered ε: closed forms, dp-accounting's accountants, order, refusals, and the width of the bracket."""

import math

import dp_accounting as dp
import numpy as np
import pytest
from events import delivered_epsilon, upper_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.privacy.accounting.accountant import end_of_round_epsilon
from silodp.privacy.accounting.mechanisms import gaussian_epsilon


def drawn(records: int, batch: int, noise: float, rounds: int, *, replaced: bool = True) -> dp.SelfComposedDpEvent:
    """`rounds` Gaussian releases on `batch` of `records`, with or without replacement."""
    kind = dp.SampledWithReplacementDpEvent if replaced else dp.SampledWithoutReplacementDpEvent
    return dp.SelfComposedDpEvent(kind(records, batch, dp.GaussianDpEvent(noise)), rounds)


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


def test_one_draw_is_the_same_with_and_without_replacement() -> None:
    first, second = (drawn(300, 1, 0.8, 400, replaced=replaced) for replaced in (True, False))
    assert delivered_epsilon(first, 1e-6) == delivered_epsilon(second, 1e-6)


@pytest.mark.parametrize("records", [169, 1238])
@pytest.mark.parametrize("rounds", [25, 50])
@pytest.mark.parametrize("claimed", [0.75, 1, 1.5, 3, 6, 12, 18])
def test_bracket_is_tight_on_every_minibatch_row_of_the_experiments(records: int, rounds: int, claimed: float) -> None:
    """MB-SGD of the non-convex experiments: K = ⌊n√24/(2√R)⌋, σ² = 8L²R ln(2/δ)/(n²ε²), δ = 1/n²."""
    batch, delta = math.floor(records * math.sqrt(24) / (2 * math.sqrt(rounds))), records**-2
    sigma = math.sqrt(8 * rounds * math.log(2 / delta)) / (records * claimed)
    delivered = delivered_epsilon(drawn(records, batch, sigma * batch / 2, rounds), delta)
    assert 0 < delivered.lower <= delivered.estimate <= delivered.upper
    assert delivered.upper / delivered.lower <= (1.05 if records == 1238 else 1.08)


def test_two_kinds_of_messages_cost_more_than_either_and_at_most_their_sum() -> None:
    first, second = drawn(500, 100, 3.0, 13), drawn(500, 50, 1.5, 12)
    delta = 1e-6
    both = delivered_epsilon(dp.ComposedDpEvent([first, second]), delta)
    alone = [delivered_epsilon(event, delta / 2) for event in (first, second)]
    assert max(delivered_epsilon(event, delta).lower for event in (first, second)) < both.lower
    assert both.upper < alone[0].upper + alone[1].upper
    assert both.upper / both.lower < 1.08


@given(
    records=st.integers(2, 3000),
    share=st.floats(0.0005, 1.1),
    noise=st.floats(0.05, 60),
    rounds=st.integers(1, 400),
    log_delta=st.floats(-30, -2),
    replaced=st.booleans(),
)
@settings(deadline=None, max_examples=12)
def test_upper_is_never_below_lower(records, share, noise, rounds, log_delta, replaced) -> None:
    batch = max(int(records * share), 1)
    event = drawn(records, batch if replaced else min(batch, records), noise, rounds, replaced=replaced)
    delivered = delivered_epsilon(event, math.exp(log_delta))
    assert 0 <= delivered.lower <= delivered.upper * (1 + 1e-9) < math.inf
    assert delivered.estimate == (delivered.lower + delivered.upper) / 2


@given(n=st.integers(20, 3000), share=st.floats(0.01, 0.5), noise=st.floats(0.3, 20), rounds=st.integers(2, 100))
@settings(deadline=None, max_examples=6)
def test_epsilon_falls_with_noise_records_and_delta_and_grows_with_rounds_and_batch(n, share, noise, rounds) -> None:
    """In the noise on the sum, σK: a batch twice as large is worse at the same multiplier."""
    batch, delta = max(int(n * share), 1), 1e-6
    here = delivered_epsilon(drawn(n, batch, noise, rounds), delta)
    slack = 1e-3 * here.upper + 1e-5  # the lattices differ
    for other in (
        delivered_epsilon(drawn(n, batch, 1.2 * noise, rounds), delta),
        delivered_epsilon(drawn(n, batch, noise, rounds * 2 // 3), delta),
        delivered_epsilon(drawn(n, batch, noise, rounds), 4 * delta),
        delivered_epsilon(drawn(n, max(batch // 2, 1), noise, rounds), delta),
        delivered_epsilon(drawn(2 * n, batch, noise, rounds), delta),
    ):
        assert other.lower <= here.upper
        assert other.upper <= here.upper + slack


def test_degenerate_events() -> None:
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
    ("event", "message"),
    [
        (dp.GaussianDpEvent(-1.0), "noise multiplier = -1.0: must be 0, infinite or in"),
        (dp.GaussianDpEvent(math.nan), "noise multiplier = nan: must be 0, infinite or in"),
        (dp.GaussianDpEvent(1e-300), r"noise multiplier = 1e-300: must be 0, infinite or in \[1e-100, 1e\+100\]"),
        (drawn(100, 10, 1e-9, 1), r"noise multiplier = 1e-09: must be 0, infinite or in \[1e-06, 1e\+12\]"),
        (drawn(100, 10, 1e300, 1, replaced=False), r"= 1e\+300: must be 0, infinite or in \[1e-06, 1e\+12\]"),
        (drawn(1000, 10**6, 1.0, 1), "sample of 1000000 out of 1000 records: must be at most 64 n with replacement"),
        (drawn(10, 11, 1.0, 1, replaced=False), "sample of 11 out of 10 records"),
        (dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), -1), "composition count = -1"),
        (dp.LaplaceDpEvent(1.0), "only Gaussian releases are supported"),
        (dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.0)), "only Gaussian releases are supported"),
        (drawn(100, 10, 2.0, 10**8 + 1), "100000001 messages: must be at most 100000000"),
    ],
)
def test_wrong_events_say_what_is_wrong(event: dp.DpEvent, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        delivered_epsilon(event, 1e-5)


def test_a_wrong_delta_is_refused() -> None:
    with pytest.raises(ValueError, match=r"delta = 0.0: must lie strictly between 0 and 1"):
        delivered_epsilon(dp.GaussianDpEvent(1.0), 0.0)


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


def test_a_record_in_every_step_of_its_silo_is_a_plain_gaussian():
    """n = 1: all K steps draw it, so a round shows N(K, K z²) against N(0, K z²): μ = √K/z, with no gap at all."""
    steps, rounds, z = 9, 4, 6.0
    exact = gaussian_epsilon(1e-5, (steps * rounds) ** 0.5 / z)
    found = end_of_round_epsilon(steps, rounds, 1, z, 1e-5)
    assert found.lower == pytest.approx(exact, rel=2e-3)
    assert found.upper == pytest.approx(exact, rel=2e-3)


def test_fewer_looks_show_less():
    """The same 100 steps in fewer rounds: linear losses show less of them."""
    lowers = [end_of_round_epsilon(steps, 100 // steps, 60, 0.5, 1e-4).lower for steps in (1, 5, 25)]
    assert lowers == sorted(lowers, reverse=True)
