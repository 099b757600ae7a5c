"""Local steps of silos side by side, as a device makes them, are those of each silo by itself."""

import pytest
import torch

from silodp.federation import clipped_sums
from silodp.federation.clipped_sums import Start, StepNoise, local_steps
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
