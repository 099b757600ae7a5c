"""What the server asks of silos in a round."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Query:
    """What the server asks of the silos in a round; round and kind of message name the streams of records and noise.

    `weights` are those of every point, (G, d). With `previous` (G, d) the message is the difference of the clipped
    gradients at both, on the same records. `noise_factor` (G,) scales the noise of the plan. With `factors` (a, b) a
    record contributes a·gradient − b·gradient at `previous`, clipped as a whole: for releases that are `joint`.
    """

    weights: Tensor
    round: int
    kind: str = "gradient"
    previous: Tensor | None = None
    noise_factor: Tensor | None = None
    factors: tuple[float, float] | None = None
