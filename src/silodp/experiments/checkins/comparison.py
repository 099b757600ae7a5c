"""Random check-ins against shuffling, subsampling and no amplification, at equal central (ε, δ): what 004 leaves open.

A client is a record, and every record is one client. For every protocol and ε the shape
and the step are those with the smallest mean training loss over all trials; new schedules and new noise then give the
test error. As everywhere here, that choice and the preprocessing look at the data and are not charged to ε.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import Tensor

from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.datasets import Data
from silodp.experiments.checkins.protocols import PROTOCOLS, Points, Protocol, Shape, caps, local_epsilon, train
from silodp.experiments.training import evaluate
from silodp.federation.models import Model
from silodp.federation.partition import Partition
from silodp.federation.rng import Streams
from silodp.federation.trial_data import build_model, prepare

COLUMNS = [
    "experiment", "protocol", "bound", "amplified", "n", "slots", "p0", "delta", "epsilon", "epsilon0", "report_norm",
    "step", "updates_mean", "dummies_mean", "trials", "train_loss_mean", "test_error_mean", "test_error_p05",
    "test_error_p95",
]  # fmt: skip
# c of the steps c/(B√i): the diameter's place in Theorems 3.5 and 4.2.
STEPS = tuple(2.0**power for power in range(-5, 4))
CLIP, DELTA = 1.0, 1e-6
NON_PRIVATE = "non_private"

Part = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Trial:
    """The clients (n, features), (n,) of a trial, the test records, and the model."""

    model: Model
    train: Part
    test: Part


def clients_of(data: Data, config: Experiment, run: Run, streams: Streams) -> Trial:
    """A trial's clients: all but the official test records, or the share `silos.train_share` of all.

    The experiment's silos are not used: digit pairs hold every record several times over, and a record that is a
    client of its own must not be another's test record.
    """
    if data.official_test.any():
        test, train = np.flatnonzero(data.official_test), np.flatnonzero(~data.official_test)
    else:
        order = streams.generator("split").permutation(len(data.y))
        train, test = np.split(order, [round(config.silos.train_share * len(order))])
    one = prepare(data, config, config.readings, Partition(((np.sort(train), np.sort(test)),)), run)
    return Trial(build_model(config, one), one.train[0], one.test[0])


def compare(
    experiment: str, trials: Sequence[Trial], epsilons: Sequence[float], streams: Streams, *, delta: float = DELTA,
    steps: Sequence[float] = STEPS, clip: float = CLIP,
) -> pd.DataFrame:  # fmt: skip
    """One row for each protocol and ε, and one without privacy (empty ε); `COLUMNS`.

    `report_norm` is B, the length of a report over L; `amplified` says whether ε0 comes from the bound, or is ε itself.

    Raises:
        ValueError: no trials, trials with different numbers of clients, or values without meaning.
    """
    sizes = {len(one.train[1]) for one in trials}
    if len(sizes) != 1:
        raise ValueError(f"trials: clients {sorted(sizes)}: must be one number of clients in every trial")
    n, d = sizes.pop(), trials[0].model.size
    # Protocols that share a schedule are trained as one stack.
    groups: dict[tuple, list[dict]] = {}
    for name, protocol in PROTOCOLS.items():
        for shape in protocol.shapes:
            for epsilon in epsilons:
                epsilon0, amplified = local_epsilon(protocol, n, shape, epsilon, delta)
                claim = {"protocol": name, "bound": protocol.bound, "amplified": amplified, "shape": shape,
                         "epsilon": epsilon, "epsilon0": epsilon0}  # fmt: skip
                groups.setdefault((protocol.schedule, shape), []).append(claim)
    free = {"protocol": NON_PRIVATE, "bound": "", "amplified": False, "shape": Shape(), "epsilon": math.nan}
    groups[(PROTOCOLS["none"].schedule, Shape())].append(free | {"epsilon0": math.inf})
    found = []
    for (schedule, shape), claims in groups.items():
        rows = [claim | {"step": step} for claim in claims for step in steps]
        losses = _run(trials, rows, clip, streams.child("grid", schedule, shape.share, shape.p0))["train_loss"]
        found += [row | {"loss": loss} for row, loss in zip(rows, losses.mean(0), strict=True)]
    chosen = [
        min((row for row in found if _key(row) == key), key=lambda row: row["loss"])
        for key in dict.fromkeys(map(_key, found))
    ]
    table = []
    for schedule, shape in groups:
        own = [row for row in chosen if (_protocol(row).schedule, row["shape"]) == (schedule, shape)]
        if own:
            table += _rows(own, _run(trials, own, clip, streams.child("fresh", schedule, shape.share, shape.p0)))
    fixed = {"experiment": experiment, "n": n, "delta": delta, "trials": len(trials)}
    laws = caps([row["epsilon0"] for row in table], d)
    for row in table:
        norm = laws[row["epsilon0"]].scale if math.isfinite(row["epsilon0"]) else 1.0
        row |= fixed | {"slots": row["shape"].slots(n), "p0": row["shape"].p0, "report_norm": norm}
    order = [*PROTOCOLS, NON_PRIVATE]
    table.sort(key=lambda row: (order.index(row["protocol"]), row["epsilon"]))
    return pd.DataFrame(table, columns=COLUMNS)


def _protocol(row: dict) -> Protocol:
    return PROTOCOLS["none" if row["protocol"] == NON_PRIVATE else row["protocol"]]


def _key(row: dict) -> tuple[str, str]:
    return row["protocol"], str(row["epsilon"])


def _run(trials: Sequence[Trial], rows: Sequence[dict], clip: float, streams: Streams) -> dict[str, np.ndarray]:
    """Training loss and test error, (trials, rows); updates and dummy updates, (trials,)."""
    shape, protocol = rows[0]["shape"], _protocol(rows[0])
    points = Points([row["epsilon0"] for row in rows], [row["step"] for row in rows])
    found: dict[str, list] = {"train_loss": [], "test_error": [], "updates": [], "dummies": []}
    for number, trial in enumerate(trials):
        x, y = trial.train
        own = streams.child(number)
        slots = protocol.draw(len(y), shape, own.generator("schedule"))
        weights = train(trial.model, x, y, slots, points, clip, protocol.dummies, own.child("reports"))
        empty = sum(not len(clients) for clients in slots)
        found["train_loss"].append(evaluate(trial.model, weights, [trial.train])[0].numpy())
        found["test_error"].append(evaluate(trial.model, weights, [trial.test])[1].numpy())
        found["updates"].append(len(slots) - (0 if protocol.dummies else empty))
        found["dummies"].append(empty if protocol.dummies else 0)
    return {name: np.array(values) for name, values in found.items()}


def _rows(chosen: Sequence[dict], runs: dict[str, np.ndarray]) -> list[dict]:
    found = []
    for position, row in enumerate(chosen):
        errors = runs["test_error"][:, position]
        low, high = np.percentile(errors, [5, 95])
        found.append(row | {
            "updates_mean": runs["updates"].mean(), "dummies_mean": runs["dummies"].mean(),
            "train_loss_mean": runs["train_loss"][:, position].mean(), "test_error_mean": errors.mean(),
            "test_error_p05": low, "test_error_p95": high,
        })  # fmt: skip
    return found
