"""The standard Gaussian draws that a silo's noise is made of, from named streams."""

import numpy as np

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
