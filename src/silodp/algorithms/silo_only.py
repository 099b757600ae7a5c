"""Each silo by itself: minibatch SGD (convex paper, Algorithm 1) on one silo, what federating has to beat.

R = rounds, η = step size, w_i = silo i's model.
"""

from dataclasses import dataclass

from silodp.algorithms.base import Look
from silodp.algorithms.minibatch_sgd import MinibatchSGD


@dataclass(frozen=True)
class SiloOnly(MinibatchSGD):
    """Every silo trains its own model, w_i ← prox(w_i − η·its noisy minibatch gradient), in all R rounds.

    Training makes a federation of each silo alone; loss and error are the means over silos of each silo's own model on
    its own records. A server that publishes all models has seen what it sees of MB-SGD: the guarantee is the same.
    `log_term`, `noise`, `average`, `mu`, `schedule` and `clip` are those of minibatch SGD.
    """

    name = "silo_only"
    label = "silo-only"
    look = Look(4, "#6b4a9c", "P", (0, (8, 2)))
    alone = True
    schedules = frozenset()
