"""The standard Gaussian draws that a silo's noise is made of, from named streams."""

import numpy as np
import torch
from torch import Tensor

from silodp.federation.streams import Streams
from silodp.models.threads import side_by_side

# Rows of noise drawn from one stream: the draws are the same however threads share the blocks.
NOISE_ROWS = 64


def standard_normals(
    streams: Streams, silo: int, round: int, kind: str, shape: tuple[int, int], dtype: np.dtype
) -> np.ndarray:
    """Draws (rows, d) of a silo's message of a kind in a round: a row for the message, or for each local step."""
    draws = np.empty(shape, dtype=dtype)

    def fill(start: int, stop: int) -> None:
        for block in range(start, stop):
            part = draws[block * NOISE_ROWS : (block + 1) * NOISE_ROWS]
            streams.generator("noise", silo, round, kind, block).standard_normal(dtype=dtype, out=part)

    side_by_side(fill, -(-shape[0] // NOISE_ROWS))
    return draws


def device_normals(streams: Streams, silo: int, round: int, kind: str, rows: int, like: Tensor) -> Tensor:
    """As many draws (rows, d) made on the device of `like` (…, d), by Philox seeded by the stream's name.

    Their law is that of `standard_normals`, their numbers are not. Never for a real silo: the seed has 63 bits.
    """
    generator = torch.Generator(like.device)
    generator.manual_seed(int.from_bytes(streams.digest("noise", silo, round, kind)[:8]) >> 1)
    return torch.randn((rows, like.shape[-1]), generator=generator, device=like.device, dtype=like.dtype)
