"""A private algorithm that is not C-compositional (convex paper, Appendix E.1 and Algorithm 3), by randomised response.

N silos hold one of d symbols each. Round r asks every silo about symbol r: a silo that holds it answers by randomised
response, the others say nothing of their record. Each record is used once, so the transcript costs ε0, but a round's
own cost is of order ε0 too, and the root of the sum of squares over d rounds exceeds Cε0 for d large enough.
"""

import math
from itertools import product
from typing import Literal

import numpy as np

Reading = Literal["right", "printed"]


def response_law(record: int, d: int, epsilon0: float) -> np.ndarray:
    """Law (d,) of the randomised response to `record`: itself with e^ε0/(e^ε0 + d − 1), the others evenly."""
    _check(d, epsilon0)
    if not 0 <= record < d:
        raise ValueError(f"record = {record}: must lie between 0 and d - 1 = {d - 1}")
    law = np.full(d, 1 / (math.exp(epsilon0) + d - 1))
    law[record] *= math.exp(epsilon0)
    return law


def message_law(record: int, r: int, d: int, epsilon0: float, reading: Reading = "right") -> np.ndarray:
    """Law (d + 1,) of a silo's message in round r: the symbols, and last the zero vector.

    A silo without symbol r sends a uniform symbol. As printed it sends 0, which gives the record away: the round with
    another message is the record's number, and the transcript's ε is infinite.
    """
    law = np.zeros(d + 1)
    if record == r:
        law[:d] = response_law(record, d, epsilon0)
    elif reading == "printed":
        law[d] = 1
    else:
        law[:d] = 1 / d
    return law


def transcripts(
    records: np.ndarray, d: int, epsilon0: float, generator: np.random.Generator, reading: Reading = "right"
) -> np.ndarray:
    """One run: messages (d rounds, N silos), a symbol each; d stands for the zero vector."""
    laws = {
        (record, r): message_law(record, r, d, epsilon0, reading) for record in set(records.tolist()) for r in range(d)
    }
    return np.array(
        [[generator.choice(d + 1, p=laws[record, r]) for record in records.tolist()] for r in range(d)], dtype=np.int64
    )


def transcript_epsilon(d: int, epsilon0: float, reading: Reading = "right") -> float:
    """ε of a silo's whole transcript, by enumeration of all of them; d at most 5."""
    _check(d, epsilon0)
    if d > 5:
        raise ValueError(f"d = {d}: at most 5, as all transcripts are enumerated")
    laws = [[message_law(record, r, d, epsilon0, reading) for r in range(d)] for record in range(d)]
    worst = 0.0
    for messages in product(range(d + 1), repeat=d):
        chances = [math.prod(law[r][m] for r, m in enumerate(messages)) for law in laws]
        if max(chances) > 0:
            worst = max(worst, math.inf if min(chances) == 0 else math.log(max(chances) / min(chances)))
    return worst


def round_epsilon(d: int, epsilon0: float, reading: Reading = "right") -> float:
    """ε of one round's message by itself."""
    held, other = (message_law(record, 0, d, epsilon0, reading) for record in (0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(held) - np.log(other))
    return float(np.nanmax(ratios))


def _check(d: int, epsilon0: float) -> None:
    if d < 2:
        raise ValueError(f"d = {d}: must be at least 2")
    if not 0 < epsilon0 < math.inf:
        raise ValueError(f"epsilon0 = {epsilon0}: must be positive and finite")
