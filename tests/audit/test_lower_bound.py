"""The audit: sound where the mechanism is what its plan says, and loud where it is not."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import small
import torch
from events import delivered_epsilon
from plants import PLANTS
from scipy.stats import binom

from silodp.algorithms import ALGORITHMS
from silodp.audit.canary import CLIP, linear_canary, perceptron_canary
from silodp.audit.columns import AUDIT_COLUMNS, AUDIT_EXTRA
from silodp.audit.lower_bound import audit, audit_rows, epsilon_bounds, lower_epsilon, model_size, scores
from silodp.audit.profile import Rates
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.plan import Budget

N, R, DELTA = 20, 4, 0.05
# So many that the least share of ε found over a dozen seeds is 0.56; of 4,000 one seed in six shows less than half.
# A fault shows at once.
RUNS, FAULTY = 12_000, 4000
# Records of the silo: one local step a round has to draw the canary now and then.
SIZES = {"local_sgd": 3}
STREAMS = Streams(31).child("audit")


def made(name, epsilon=1.5, n=N):
    """An algorithm and its plan for a silo of n records."""
    case = small.ALGORITHM_CASES[name]
    algorithm = case.make(R).fitted(n, None)
    # One local step a round: then what a silo sends shows every step, which is what the accountant counts.
    K = 1 if case.registered == "local_sgd" else None
    return algorithm, algorithm.plan(Budget(n, R, epsilon, DELTA, 4.0, K))


@functools.cache
def audited(fault, name):
    """Of a mechanism with one fault; of the trainer's own for None."""
    algorithm, plan = made(name, n=SIZES.get(name, N))
    mechanism = PLANTS[fault].mechanism if fault else Messages
    runs = FAULTY if fault else RUNS
    return audit(algorithm, [plan], runs, STREAMS.child(fault, name), messages=mechanism, confidence=0.95)[0]


@functools.cache
def delivered(name):
    return delivered_epsilon(made(name, n=SIZES.get(name, N))[1], DELTA)


@pytest.mark.parametrize("name", small.ALGORITHM_CASES)
def test_audited_bound_never_exceeds_delivered_epsilon(name):
    """Behind a shuffler too: the audit sees the silo's own messages, and `event` is about those."""
    algorithm, plan = made(name)
    found = audit(algorithm, [plan], 300, STREAMS.child(name))[0]
    assert found.lower <= delivered_epsilon(plan, DELTA).upper
    assert not found.profile.exceeded


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd", "fed_spider", "one_pass_accelerated_sgd"])
def test_audit_finds_a_good_share_of_epsilon(name):
    """It would be worth nothing if it never rose: thousands of runs show half of a small ε, of local SGD too."""
    found = audited(None, name)
    assert 0.2 * delivered(name).lower < found.lower <= delivered(name).upper
    assert 0.5 * delivered(name).upper < found.profile.epsilon <= delivered(name).upper


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("half the noise", "minibatch_sgd"),
        ("half the noise", "local_sgd"),
        ("half the noise", "fed_spider"),
        ("half the noise", "one_pass_accelerated_sgd"),
        ("each tensor clipped by itself", "minibatch_sgd"),
        ("only the mean clipped", "minibatch_sgd"),
    ],
)
def test_a_broken_mechanism_is_caught(fault, name):
    """Noise halved, one L for each of four tensors (√4 times the sensitivity), or only the mean clipped."""
    found = audited(fault, name)
    assert found.lower > delivered(name).upper
    assert found.profile.exceeded
    assert found.profile.epsilon > delivered(name).upper


def test_bound_by_hand():
    """Clopper and Pearson by their definition: the tails of the counts at the ends are (1 − confidence)/2."""
    one, other = epsilon_bounds(Rates(np.array([40]), np.array([3]), 100), 0.01, 0.9)[:, 0]
    rates = np.linspace(0, 1, 20001)
    most = rates[np.argmax(binom.cdf(3, 100, rates) <= 0.05)]
    least = rates[np.argmax(binom.sf(39, 100, rates) > 0.05)]
    assert one == pytest.approx(math.log((least - 0.01) / most), abs=1e-3)
    assert other == pytest.approx(math.log((1 - most - 0.01) / (1 - least)), abs=1e-3)


def test_the_runs_that_choose_a_threshold_are_not_counted():
    """A first half that tells the worlds apart, and a second half that does not."""
    first, second, none = np.ones(200), np.zeros(200), np.zeros(400)
    assert lower_epsilon(np.concatenate([first, second]), none, DELTA) == 0
    assert lower_epsilon(np.concatenate([first, first]), none, DELTA) > 3


def test_bound_holds_as_often_as_it_says():
    """Two Gaussians at distance 1 are exactly (ε, δ)-DP: at 80 % the bound may fail in at most a fifth of audits."""
    generator = np.random.default_rng(4)
    epsilon = gaussian_epsilon(DELTA, 1.0)
    audits = [
        lower_epsilon(generator.normal(1, 1, 400), generator.normal(0, 1, 400), DELTA, confidence=0.8)
        for _ in range(300)
    ]
    failed = sum(bound > epsilon for bound in audits)
    assert binom.sf(failed - 1, 300, 0.2) > 1e-3
    assert max(audits) > 0


def test_plans_without_noise_and_noise_by_smoothness_are_refused():
    algorithm, plan = made("minibatch_sgd", epsilon=None)
    with pytest.raises(ValueError, match="no noise"):
        audit(algorithm, [plan], 10, STREAMS)
    smooth = ALGORITHMS["fedprox_spider"].with_options({"rounds": 4, "phase_length": 2, "smoothness": 1.0})
    with pytest.raises(ValueError, match="smoothness"):
        audit(smooth, [smooth.plan(Budget(N, R, 1.0, DELTA, 4.0))], 4, STREAMS)


@pytest.mark.parametrize("make", [linear_canary, perceptron_canary])
def test_canary_pulls_as_far_as_clipping_allows(make):
    """Record 0 sends +Lu, its replacement and all others −Lu, and a difference twice that."""
    canary = make(5)
    for x, y in canary.silos:
        # Where only the batch's mean is clipped, the record outweighs all others.
        no_clip = torch.full((1,), math.inf, dtype=torch.float64)
        alone, batch = (
            canary.model.clipped_gradient_sum(canary.weights[None], x[:k], y[:k], no_clip)[0] for k in (1, 5)
        )
        assert float((batch - alone).norm()) < 0.01 * float(alone.norm())
    clip = torch.full((1,), CLIP, dtype=torch.float64)
    pulls = []
    for x, y in canary.silos:
        for k in (0, 3):
            one = x[k : k + 1], y[k : k + 1]
            at = canary.model.clipped_gradient_sum(canary.weights[None], *one, clip)[0]
            pulls.append(at)
            if canary.previous is not None:
                before = canary.model.clipped_gradient_sum(canary.previous[None], *one, clip)[0]
                torch.testing.assert_close(before, -at)
    canary_pull, other, replacement, same = pulls
    # The perceptron's tensors but one are a thousandth of the gradient or less; the linear model's common feature too.
    torch.testing.assert_close(canary_pull, -other, rtol=0, atol=4e-3 * CLIP)
    torch.testing.assert_close(replacement, same, rtol=0, atol=4e-3 * CLIP)
    for pull in pulls:
        assert float(pull.norm()) == pytest.approx(CLIP)


@pytest.mark.parametrize("runs", [3, 8, 19])
def test_runs_that_fill_no_whole_stack_are_as_many_as_asked_for(runs, monkeypatch):
    monkeypatch.setattr("silodp.audit.lower_bound.STACK", 8)
    algorithm, plan = made("minibatch_sgd")
    ((present, absent),) = scores(algorithm, [plan], runs, STREAMS)
    assert present["gradient"].shape == absent["gradient"].shape == (runs, R)
    assert len(np.unique(np.concatenate([*present.values(), *absent.values()]))) == 2 * runs * R, "each run has its own"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("minibatch_sgd", {"sampler": "replacement"}),
        ("minibatch_sgd", {"sampler": "all", "records": N}),
        ("minibatch_sgd", {"sampler": "all", "records": N, "clipping": "batch_mean"}),
        ("fed_spider", {}),
        ("local_sgd", {}),
        ("one_pass_accelerated_sgd", {}),
    ],
)
def test_the_statistic_is_the_log_likelihood_ratio_of_the_plan(name, changes):
    """E P/Q = 1 without the canary and E Q/P = 1 with it: a shift or a chance of draws that is wrong moves one."""
    algorithm, plan = made(name, n=SIZES.get(name, N))
    releases = [dataclasses.replace(release, **changes) for release in plan.releases]
    quiet = tuple(dataclasses.replace(release, noise=2 * release.sensitivity) for release in releases)
    ((present, absent),) = scores(algorithm, [dataclasses.replace(plan, releases=quiet)], 4000, STREAMS)
    assert set(present) == {release.kind for release in quiet}
    for kind in present:
        for ratios in (np.exp(absent[kind]), np.exp(-present[kind])):
            assert abs(ratios.mean() - 1) < 5 * ratios.std() / math.sqrt(ratios.size)
            assert 0.1 < ratios.std() < 1.5


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"preprocess": {"pca": 7}},
        {"preprocess": {"constant_column": True}},
        {"model": {"name": "perceptron", "hidden": 5}},
    ],
)
def test_the_size_that_noise_is_audited_at_is_the_models(changes):
    config = small.experiment(**changes)
    features = changes.get("preprocess", {}).get("pca", 30) + config.preprocess.constant_column
    hidden = config.model.model_dump()["hidden"]
    assert model_size(config) == features * hidden + hidden + hidden * 2 + 2


def test_algorithms_that_assume_a_smooth_loss_have_no_row():
    """Noise that follows the step is private if every record's loss is as smooth as it says: nothing to be audited."""
    own = {"minibatch_sgd": {}, "fedprox_spider": {"options": {"smoothness": 2.0}}}
    rows = audit_rows(small.run(), "small", small.experiment(algorithms=own), [20, 20], runs=8)
    assert set(rows["algorithm"]) == {"minibatch_sgd"}
    alone = small.experiment(algorithms={"fedprox_spider": own["fedprox_spider"]})
    rows = audit_rows(small.run(), "small", alone, [20, 20], runs=8)
    assert rows.empty
    assert list(rows.columns) == [*AUDIT_COLUMNS, *AUDIT_EXTRA]


@pytest.mark.parametrize(("present", "absent"), [(3, 3), (10, 8)])
def test_runs_must_fit(present, absent):
    with pytest.raises(ValueError, match="runs"):
        lower_epsilon(np.zeros(present), np.zeros(absent), 0.1)
