"""Clipped sums are those of autograd, and local steps of silos side by side, as on a device, each silo's own."""

import pytest
import small
import textbook
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.federation import clipped_sums
from silodp.federation.clipped_sums import Points, Start, StepNoise, clipped_sum, local_steps
from silodp.models.linear import Linear

G, D = 3, 2


class WithChains(Linear):
    """A model whose form for a device is its steps silo by silo."""

    def chain_steps(self, weights, x, y, clip, stepsize, scale, draws, *, contracted=False):
        assert len(x) == len(y) == len(scale)  # a row a silo, all with as many records
        parts = [
            self.local_steps(
                weights,
                x[s],
                y[s],
                clip,
                stepsize,
                scale[s],
                None if draws is None else draws[s],
                contracted=contracted,
            )
            for s in range(len(x))
        ]
        return torch.stack(parts)


class WithoutChains(Linear):
    def chain_steps(self, *_, **__):
        return None


@pytest.fixture
def on_a_device(monkeypatch):
    monkeypatch.setattr(clipped_sums.gpu, "runs_on_host", lambda _: False)


@pytest.mark.usefixtures("on_a_device")
@pytest.mark.parametrize("noisy", ["all", "some", "none"])
@pytest.mark.parametrize("lengths", [(4,), (4, 4, 4), (4, 2, 4), (1, 2, 3)])
@pytest.mark.parametrize("model", [WithChains, WithoutChains])
def test_silos_side_by_side_are_silos_one_by_one(lengths, noisy, model):
    generator = torch.Generator().manual_seed(3)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    start = Start(normal(G, D), torch.tensor([0.5, 1.0, 5.0]), torch.tensor([0.1, 0.2, 0.3]).double())
    silos = [(normal(K, D), normal(K)) for K in lengths]
    noise = [
        None if noisy == "none" or (noisy == "some" and place) else StepNoise(normal(G).abs(), normal(K, D))
        for place, K in enumerate(lengths)
    ]
    together = local_steps(model.build(D, None), start, silos, noise)
    alone = [
        local_steps(Linear.build(D, None), start, [silo], [added])[0] for silo, added in zip(silos, noise, strict=True)
    ]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-12, atol=0)


def plain_sum(case, w, silos, clip, clipping):
    """The sum over all silos, record by record."""
    total = torch.zeros_like(w)
    for x, y in silos:
        each = [textbook.gradient(case.loss, w, *record) for record in zip(x, y, strict=True)]
        if clipping == "batch_mean":
            total += len(x) * textbook.clip_to(sum(each) / len(x), clip)
        elif clipping == "record":
            total += sum(textbook.clip_to(g, clip) for g in each)
        for g in each if clipping == "per_tensor" else ():
            for block in case.model().blocks:
                part = slice(block.start, block.stop)
                total[part] += textbook.clip_to(g[part], clip)
    return total


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["record", "per_tensor", "batch_mean"]),
    st.sampled_from(sorted(small.MODEL_CASES)),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.floats(-3, 1),
    st.booleans(),
    st.integers(0, 99),
)
def test_a_sum_of_any_clipping_is_that_of_autograd_record_by_record(clipping, name, sizes, log_clip, difference, seed):
    case, clip = small.MODEL_CASES[name], 10**log_clip
    silos = small.records(case, sizes, torch.float64, seed)
    generator = torch.Generator().manual_seed(seed)
    w, before = torch.randn(2, case.model().size, generator=generator, dtype=torch.float64)
    clips = torch.tensor([clip], dtype=torch.float64)
    points = Points(w[None], clips, before[None] if difference else None, clipping=clipping)
    wanted = plain_sum(case, w, silos, clip, clipping)
    wanted -= plain_sum(case, before, silos, clip, clipping) if difference else 0
    torch.testing.assert_close(clipped_sum(case.model(), points, silos)[0], wanted, rtol=1e-8, atol=1e-10)
