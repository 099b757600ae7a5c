"""The measured problem of the convolutional network: the CIFAR-10 experiment's, 74 points over 64 images.

Images and starting points are random: what is timed does not depend on their values.
"""

import numpy as np
import torch

from silodp.models.convnet import ConvNet

# Of one record's clipped gradient at one point: each layer's product forward, for its weights and, but for the first
# layer, for its input; a multiplication and an addition each.
FLOP = 2 * (2 * 28**2 * 6 * 75 + 3 * (10**2 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10))


class Convolution:
    """Network, images and points, and what is timed of them."""

    def __init__(self, quick: bool):
        self.points, self.records = (3, 2) if quick else (74, 64)
        self.net = ConvNet.build(3 * 32 * 32, 10)
        generator = np.random.default_rng(2023)
        weights = [self.net.initial(generator) for _ in range(self.points)]
        self.weights = torch.from_numpy(np.stack(weights)).float()
        self.x = torch.from_numpy(generator.standard_normal((self.records, 3 * 32 * 32))).float()
        self.y = torch.from_numpy(generator.integers(0, 10, self.records))
        self.clip = torch.ones(self.points)
        self.base = torch.from_numpy(generator.standard_normal((self.records, self.net.size))).float()

    def sums(self) -> torch.Tensor:
        """Clipped gradient sums as in training."""
        return self.net.clipped_gradient_sum(self.weights, self.x, self.y, self.clip)

    def plain_sums(self) -> torch.Tensor:
        """The same by tensor operations."""
        return self.net.plain_clipped_gradient_sum(self.weights, self.x, self.y, self.clip)

    def steps(self) -> torch.Tensor:
        """As many noisy one-record steps of local SGD."""
        level = torch.full_like(self.clip, 0.01)
        return self.net.local_steps(self.weights, self.x, self.y, self.clip, level, level, self.base)

    def disagreement(self) -> float:
        """Of the two sums, relative."""
        mine, plain = self.sums(), self.plain_sums()
        return float((mine - plain).norm() / plain.norm())
