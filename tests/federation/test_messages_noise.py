"""The noise that a silo's message carries, and the records it is made from."""

import math

import numpy as np
import pytest
import small
import torch
from scipy import stats
from small import DTYPES, MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.federation.messages import Messages
from silodp.federation.rng import Streams
from silodp.privacy.plan import Budget

STREAMS = Streams(11).child("messages")


def noise_of(messages, w, clip, scale, silo, r, kind, K=3, previous=None):
    """A message's noise: what is left when the same message without it is taken away; (G, d)."""
    loud = small.sent(messages, w, silo, K, clip, scale, round=r, kind=kind, previous=previous)
    quiet = small.sent(messages, w, silo, K, clip, scale * 0, round=r, kind=kind, previous=previous)
    return (loud - quiet).double()


def wide(dtype, features=400, silos=3):
    """Least squares on many features with zero records, so that a message is its noise."""
    case = MODEL_CASES["linear"]
    zero = [(torch.zeros((4, features), dtype=dtype), torch.zeros(4, dtype=dtype)) for _ in range(silos)]
    return Messages(case.model(features), zero, STREAMS), torch.zeros((1, features), dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "kinds"), [("minibatch_sgd", ["gradient"]), ("fed_spider", ["gradient", "difference"])]
)
def test_noise_has_the_plans_standard_deviation_and_is_gaussian(name, kinds, dtype):
    """16,000 draws: the deviation within 4 standard errors (2.2 %), Kolmogorov–Smirnov at level 0.001."""
    rounds, clip = 40, 1.7
    method, point = ALGORITHMS[name](rounds), Point(0.8, 0.1, clip)
    messages, w = wide(DTYPES[dtype])
    federation = small.federation(messages.model, messages.silos, small.plans(method, [point], (4, 4, 4)), [point])
    plan = method.plan(Budget(4, rounds, 0.8, 0.02, 9.0))
    for kind in kinds:
        draws = torch.cat(
            [
                federation.message(w, 1, r, kind, previous=w if kind == "difference" else None)[0].double()
                for r in range(rounds)
            ]
        ).numpy()
        sigma = plan[kind].noise * clip
        assert len(draws) == 16_000
        assert draws.std() == pytest.approx(sigma, rel=4 / math.sqrt(2 * len(draws)))
        assert abs(draws.mean()) <= 4 * sigma / math.sqrt(len(draws))
        assert stats.kstest(draws / sigma, "norm").pvalue > 1e-3


def test_a_local_steps_noise_has_the_plans_standard_deviation():
    """On zero records the model moves by −η·σ·Σz over K steps: variance K·(ησ)²."""
    rounds, clip, eta = 40, 1.7, 0.3
    method, point = ALGORITHMS["local_sgd"](rounds), Point(0.8, eta, clip)
    messages, w = wide(torch.float64)
    plans = small.plans(method, [point], (4, 4, 4), batch_records=3)
    federation = small.federation(messages.model, messages.silos, plans, [point])
    draws = torch.cat([federation.local_model(w, 1, r)[0] for r in range(rounds)]).numpy()
    sigma = plans[0][1]["step"].noise * clip * eta * math.sqrt(3)
    assert draws.std() == pytest.approx(sigma, rel=4 / math.sqrt(2 * len(draws)))
    assert stats.kstest(draws / sigma, "norm").pvalue > 1e-3


def test_noise_is_independent_over_silos_rounds_kinds_and_purposes():
    """Correlations of 400 coordinates of 24 messages: none beyond what 276 pairs allow (level 0.001)."""
    messages, w = wide(torch.float64)
    other = Messages(messages.model, messages.silos, STREAMS.child("fresh"))
    scale = torch.tensor([1.0], dtype=torch.float64)
    draws = np.stack(
        [
            noise_of(source, w, scale, scale, silo, r, kind, previous=w)[0].numpy()
            for source in (messages, other)
            for silo in range(3)
            for r in range(2)
            for kind in ("gradient", "difference")
        ]
    )
    correlations = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    assert len(correlations) == 276
    assert np.abs(correlations).max() <= stats.norm.isf(0.001 / 2 / 276) / math.sqrt(400)


@pytest.mark.parametrize("dtype", DTYPES)
def test_points_share_one_draw_up_to_their_scale_and_a_point_without_noise_has_none(dtype):
    case = MODEL_CASES["logistic"]
    model, silos = case.model(), small.records(case, (6,), DTYPES[dtype])
    w = small.start(model, DTYPES[dtype]).expand(4, -1).clone()
    clip = torch.tensor([1.0, 1.0, math.inf, 1.0], dtype=torch.float64).to(DTYPES[dtype])
    scale = torch.tensor([1.0, 2.5, 0.0, 0.0], dtype=torch.float64).to(DTYPES[dtype])
    messages = Messages(model, silos, STREAMS)
    noise = noise_of(messages, w, clip, scale, 0, 3, "gradient")
    assert float(noise[0].norm()) > 0
    torch.testing.assert_close(noise[1], 2.5 * noise[0], rtol=1e-5, atol=1e-6)
    loud = small.sent(messages, w, 0, 3, clip, scale, round=3)
    quiet = small.sent(messages, w, 0, 3, clip, scale * 0, round=3)
    assert torch.equal(loud[2:], quiet[2:])
    stepsize = torch.full_like(clip, 0.1)
    loud = small.stepped(messages, w, 0, 3, clip, scale, stepsize, round=3)
    quiet = small.stepped(messages, w, 0, 3, clip, scale * 0, stepsize, round=3)
    assert torch.equal(loud[2:], quiet[2:])
    assert not torch.isclose(loud[:2], quiet[:2]).any()


def test_records_are_drawn_uniformly_with_replacement():
    """χ² over 5 records in 6,000 draws, and repetitions within a batch larger than the silo."""
    case = MODEL_CASES["linear"]
    x = torch.arange(5, dtype=torch.float64)[:, None].expand(5, 4).contiguous()
    messages = Messages(case.model(), [(x, x[:, 0])], STREAMS)
    counts = torch.zeros(5, dtype=torch.int64)
    for r in range(600):
        features, labels = messages._draw(0, 10, r, "gradient")
        assert torch.equal(features[:, 0], labels)
        counts += torch.bincount(labels.long(), minlength=5)
    assert int(counts.sum()) == 6000
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3
