"""Which records a silo's message is made of: places in the silo, drawn from named streams. No record is looked at."""

from collections.abc import Sequence

import numpy as np

from silodp.federation.streams import Streams
from silodp.privacy.plan import Release

# Places of records in a silo, (K,), or a slice where they are all of them.
Places = np.ndarray | slice


class RecordDraws:
    """The draws of silos of `sizes` records; an order that is fixed for the run is kept once it was drawn."""

    def __init__(self, sizes: Sequence[int], streams: Streams):
        self.sizes, self.streams = list(sizes), streams
        self._orders: dict[int, np.ndarray] = {}

    def draw(self, silo: int, release: Release, round: int) -> Places:
        """Places of the K records of the silo's message in a round; ValueError where it has too few records."""
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
