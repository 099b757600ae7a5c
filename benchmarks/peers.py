"""The two ways in which a user would otherwise train: one run at a time, with PyTorch's own per-record gradients.

Both make the same message as `silodp.federation.messages`: draw K records with replacement, clip each record's
gradient over the whole parameter vector, average, add Gaussian noise; and take the same minibatch SGD step. Parameters
are a tuple of tensors, which both are faster with than with slices of one flat vector, whose derivatives are padded to
full length.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from workload import Workload

Parameters = tuple[Tensor, ...]
Gradients = Callable[[Parameters, Tensor, Tensor], Parameters]


def losses(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of each record, (K,)."""
    w, b, v, c = parameters
    logits = functional.linear(torch.relu(functional.linear(x, w, b)), v, c)
    return functional.cross_entropy(logits, y, reduction="none")


def _loss(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
    return losses(parameters, x[None], y[None])[0]


def by_vmap(parameters: Parameters, x: Tensor, y: Tensor, chunk: int | None = None) -> Parameters:
    """Gradient of every record, (K, …) for each tensor: `torch.func.vmap` over `torch.func.grad` of one record's loss.

    `chunk` is the number of records differentiated at once, None for all.
    """
    return torch.func.vmap(torch.func.grad(_loss), in_dims=(None, 0, 0), chunk_size=chunk)(parameters, x, y)


def by_jacobian(parameters: Parameters, x: Tensor, y: Tensor) -> Parameters:
    """The same as the Jacobian of the batch's vector of losses, in one vectorised reverse pass over its K rows."""
    return torch.autograd.functional.jacobian(lambda *p: losses(p, x, y), parameters, vectorize=True)


def clipped_sum(gradients: Parameters, clip: float) -> Parameters:
    """Sum over records of gradients scaled to norm at most `clip`, the norm being over all tensors."""
    squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0)
    factors = (clip * torch.rsqrt(squares)).clamp_(max=1.0)
    return tuple((factors @ g.flatten(1)).reshape(g.shape[1:]) for g in gradients)


class SingleRun:
    """Minibatch SGD at one point of the grid, with `gradients` as per-record gradients."""

    def __init__(self, workload: Workload, gradients: Gradients, point: int = 0):
        self.workload, self.gradients = workload, gradients
        epsilon, self.clip = workload.epsilons[point], workload.clips[point]
        self.stepsize = workload.stepsizes[point]
        release = workload.plan("minibatch_sgd", epsilon)["gradient"]
        self.records, self.noise = release.records_drawn, release.noise * self.clip
        self.start = self.parameters(workload.start)
        self.generator = torch.Generator().manual_seed(0)

    def parameters(self, flat: Tensor) -> Parameters:
        """The tensors of a flat parameter vector."""
        return tuple(flat[b.start : b.stop].reshape(b.shape) for b in self.workload.model.blocks)

    def message(self, parameters: Parameters, silo: int) -> Parameters:
        """The silo's noisy minibatch gradient."""
        x, y = self.workload.silos[silo]
        index = torch.randint(len(x), (self.records,), generator=self.generator)
        total = clipped_sum(self.gradients(parameters, x[index], y[index]), self.clip)
        return tuple(
            t / self.records + self.noise * torch.randn(t.shape, generator=self.generator, dtype=t.dtype) for t in total
        )

    def round(self, silos: int | None = None) -> Parameters:
        """One round of all silos, or of the first `silos` only, from the starting point."""
        count = silos or self.workload.size.silos
        average = self.message(self.start, 0)
        for silo in range(1, count):
            average = tuple(a + m for a, m in zip(average, self.message(self.start, silo), strict=True))
        return tuple(w - self.stepsize * a / count for w, a in zip(self.start, average, strict=True))


def vmap_run(workload: Workload, chunk: int | None) -> SingleRun:
    """A single run by `by_vmap`."""
    return SingleRun(workload, partial(by_vmap, chunk=chunk))


def jacobian_run(workload: Workload) -> SingleRun:
    """A single run by `by_jacobian`."""
    return SingleRun(workload, by_jacobian)


def disagreement(workload: Workload, records: int = 64, chunk: int | None = None) -> float:
    """Largest relative distance of the peers' clipped gradient sums from the stack's, over a few points of the grid.

    Each point has weights of its own, and clips run from one that scales most records to one that scales none.
    """
    model, generator = workload.model, torch.Generator().manual_seed(1)
    x, y = (tensor[:records] for tensor in workload.silos[0])
    clip = torch.tensor([0.05, 1.0, 1e4], dtype=workload.dtype)
    moves = 0.3 * torch.randn((len(clip), model.size), generator=generator, dtype=workload.dtype)
    weights = workload.start + moves
    stack = model.clipped_gradient_sum(weights, x, y, clip)
    worst = 0.0
    for run in (vmap_run(workload, chunk), jacobian_run(workload)):
        for g in range(len(clip)):
            found = clipped_sum(run.gradients(run.parameters(weights[g]), x, y), clip[g].item())
            flat = torch.cat([part.flatten() for part in found])
            worst = max(worst, ((flat - stack[g]).norm() / stack[g].norm()).item())
    return worst
