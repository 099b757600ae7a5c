"""All chance of a silo: places of the records of its messages, and the standard normals that its noise is made of.

Both come from named streams. No record is looked at: sizes are public.

>>> draws = RecordDraws([6], Streams(7))
>>> for sampler in ("replacement", "subset", "disjoint"):
...     release = Release("gradient", count=2, records=3, noise=1.0, sampler=sampler)
...     print(sampler, *(draws.draw(0, release, round) for round in range(2)))
replacement [1 3 4] [4 3 5]
subset [1 4 2] [4 3 5]
disjoint [3 4 5] [1 0 2]
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from silodp.models.threads import side_by_side
from silodp.privacy.plan import Release
from silodp.streams import Streams

# Places of records in a silo, (K,), or a slice where they are all of them. Secret, as is noise.
Places = np.ndarray | slice
# Rows of noise drawn from one stream: the draws are the same however threads share the blocks.
NOISE_ROWS = 64


class RecordDraws:
    """The draws of silos of `sizes` records; an order that is fixed for the run is kept once it was drawn."""

    def __init__(self, sizes: Sequence[int], streams: Streams):
        self.sizes, self.streams = list(sizes), streams
        self._orders: dict[int, np.ndarray] = {}

    def draw(self, silo: int, release: Release, round: int) -> Places:
        """Places of the K records of the silo's message in a round; ValueError where a disjoint one has too few."""
        size, records = self.sizes[silo], release.records_drawn
        if release.part is not None:
            first, length = release.part
            return self.record_order(silo)[first : first + length]
        if release.sampler == "all":
            return slice(None)
        if release.sampler == "disjoint":
            if (round + 1) * records > size:
                raise ValueError(f"round {round}: {records} new records a round: silo {silo} has only {size}")
            return self.record_order(silo)[round * records : (round + 1) * records]
        generator = self.streams.generator("records", silo, round, release.kind)
        if release.sampler == "subset":
            return generator.choice(size, size=records, replace=False)
        return generator.integers(0, size, size=records)

    def record_order(self, silo: int) -> np.ndarray:
        """All places of the silo (n,) in an order that is fixed for the run."""
        if silo not in self._orders:
            self._orders[silo] = self.streams.generator("order", silo).permutation(self.sizes[silo])
        return self._orders[silo]


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
