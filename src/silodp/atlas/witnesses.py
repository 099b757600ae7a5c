"""Why a mechanism has no finite ε: two neighbouring data sets and an event that tells them apart almost surely.

Each witness draws what the server sees under one of the two neighbours, and says whether the event happened; d
coordinates, noise of standard deviation 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# View → who sees it.
VIEWS = {
    "message": "the server, who sees each silo's messages",
    "each_step": "the server, who sees every step",
    "secure_sum": "the server, who sees sums over silos only",
    "final_model": "whoever receives each round's global model",
}

_D = 50  # coordinates of a toy message
_HUGE = 1e6  # over the noise, where nothing bounds a record's effect


class Witness(NamedTuple):
    """Neighbours and event in words, and `event(neighbour, random)`, neighbour 0 or 1: ≈ 0 and ≈ 1 of the time."""

    words: str
    event: Callable[[int, np.random.Generator], bool]


def _exact(neighbour: int, random: np.random.Generator) -> bool:
    return float(neighbour) == 1.0


def _unbounded(neighbour: int, random: np.random.Generator) -> bool:
    return bool(neighbour * _HUGE + random.standard_normal() > _HUGE / 2)


def _known(neighbour: int, random: np.random.Generator) -> bool:
    seed = int(random.integers(2**31))  # public
    message = neighbour + np.random.default_rng(seed).standard_normal(_D)
    return bool(np.allclose(message - np.random.default_rng(seed).standard_normal(_D), 1.0))


def _cancels(neighbour: int, random: np.random.Generator) -> bool:
    noise = random.standard_normal(_D)
    return bool(np.allclose((neighbour + noise) - (0.0 + noise), 1.0))


def _scale(neighbour: int, random: np.random.Generator) -> bool:
    norms = [1e-9] * 3 + [1.0] * 3 + [1.0 if neighbour else 1e-9]
    message = float(np.median(norms)) * random.standard_normal(_D)
    return bool(np.abs(message).max() > 1e-4)


WITNESSES: dict[str, Witness] = {
    "exact": Witness(
        "The value leaves without noise. Replace one record so that the value changes, as a sum or a count does: "
        "the server reads which of the two data sets it has.",
        _exact,
    ),
    "unbounded": Witness(
        "Noise is added, but nothing bounds what one record does. Replace a record by one whose gradient is a million "
        "times the noise: a coordinate of the message passes half of that with probability 1 against 0.",
        _unbounded,
    ),
    "known": Witness(
        "The noise is a public function of the program's settings. The server draws it again and subtracts it: what is "
        "left is the clipped update itself.",
        _known,
    ),
    "cancels": Witness(
        "Two messages carry the same noise, so their difference has none. Replace a record of a silo: the difference "
        "changes from one exact value to another.",
        _cancels,
    ),
    "scale": Witness(
        "The noise is proportional to a statistic of the silo's own records. Of seven records three have gradients "
        "near 0 and three of norm 1; the seventh decides the median, and so whether there is noise at all.",
        _scale,
    ),
}
