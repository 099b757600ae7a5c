"""Random check-ins against shuffling, subsampling and no amplification at equal central (ε, δ).

The check-ins paper leaves this comparison open. A client is a record, and every record is one client. For every
protocol and ε the shape and the step are those with the smallest mean training loss over all trials; new schedules and
new noise then give the test error. That choice and the preprocessing look at the data and are not charged to ε.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import Tensor

from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.datasets import Data
from silodp.experiments.checkins.protocols import PROTOCOLS, CheckInProtocol, Points, Shape, caps, local_epsilon, train
from silodp.experiments.training import evaluate
from silodp.models.base import Model
from silodp.partition.partition import Partition
from silodp.partition.trial_data import build_model, prepare
from silodp.streams import Streams

COLUMNS = ["experiment", "protocol", "bound", "amplified", "n", "slots", "p0", "delta", "epsilon", "epsilon0"]
COLUMNS += ["report_norm", "step", "updates_mean", "dummies_mean", "trials", "train_loss_mean"]
COLUMNS += ["test_error_mean", "test_error_p05", "test_error_p95"]
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
    prepared = prepare(data, config, config.readings, Partition(((np.sort(train), np.sort(test)),)), run)
    return Trial(build_model(config, prepared), prepared.train[0], prepared.test[0])


def compare(
    experiment: str,
    trials: Sequence[Trial],
    epsilons: Sequence[float],
    streams: Streams,
    *,
    delta: float = DELTA,
    steps: Sequence[float] = STEPS,
) -> pd.DataFrame:
    """One row for each protocol and ε, and one without privacy (empty ε); `COLUMNS`.

    `report_norm` is B, the length of a report over L; `amplified` says whether ε0 comes from the bound, or is ε itself.
    """
    n = len(trials[0].train[1])
    claims = []
    for name, protocol in PROTOCOLS.items():
        for shape in protocol.shapes:
            for epsilon in epsilons:
                epsilon0, amplified = local_epsilon(protocol, n, shape, epsilon, delta)
                claims.append((name, protocol.schedule, protocol.bound, amplified, shape, epsilon, epsilon0))
    claims.append((NON_PRIVATE, _protocol(NON_PRIVATE).schedule, "", False, Shape(), math.nan, math.inf))
    columns = ["protocol", "schedule", "bound", "amplified", "shape", "epsilon", "epsilon0"]
    grid = pd.DataFrame(claims, columns=columns).merge(pd.DataFrame({"step": steps}), how="cross")
    grid = _trained(trials, grid, streams.child("grid"))
    best = grid.groupby(["protocol", "epsilon"], dropna=False, sort=False)["loss"].idxmin()
    table = _trained(trials, grid.loc[best], streams.child("fresh"))
    laws = caps(table["epsilon0"], trials[0].model.size)
    table = table.assign(
        experiment=experiment,
        n=n,
        delta=delta,
        trials=len(trials),
        slots=[shape.slots(n) for shape in table["shape"]],
        p0=[shape.p0 for shape in table["shape"]],
        report_norm=[laws[epsilon0].scale if math.isfinite(epsilon0) else 1.0 for epsilon0 in table["epsilon0"]],
        train_loss_mean=[losses.mean() for losses in table["train_loss"]],
        test_error_mean=[errors.mean() for errors in table["test_error"]],
        test_error_p05=[np.percentile(errors, 5) for errors in table["test_error"]],
        test_error_p95=[np.percentile(errors, 95) for errors in table["test_error"]],
        order=table["protocol"].map([*PROTOCOLS, NON_PRIVATE].index),
    )
    return table.sort_values(["order", "epsilon"], kind="stable", ignore_index=True)[COLUMNS]


def _protocol(name: str) -> CheckInProtocol:
    return PROTOCOLS["none" if name == NON_PRIVATE else name]


def _trained(trials: Sequence[Trial], rows: pd.DataFrame, streams: Streams) -> pd.DataFrame:
    """The rows with training losses and test errors, (trials,) each, and means of losses, updates and dummy updates."""
    parts = []
    for (schedule, shape), stack in rows.groupby(["schedule", "shape"], sort=False):
        protocol = _protocol(stack["protocol"].iloc[0])
        points = Points(stack["epsilon0"].tolist(), stack["step"].tolist())
        below = streams.child(schedule, shape.share, shape.p0)
        losses, errors, counts = [], [], []
        for number, trial in enumerate(trials):
            x, y = trial.train
            own = below.child(number)
            slots = protocol.draw(len(y), shape, own.generator("schedule"))
            weights = train(trial.model, x, y, slots, points, CLIP, protocol.dummies, own.child("reports"))
            losses.append(evaluate(trial.model, weights, [trial.train])[0].numpy())
            errors.append(evaluate(trial.model, weights, [trial.test])[1].numpy())
            empty = sum(not len(clients) for clients in slots)
            counts.append((len(slots), empty) if protocol.dummies else (len(slots) - empty, 0))
        updates, dummies = np.array(counts).T
        trained = stack.assign(loss=np.mean(losses, axis=0), updates_mean=updates.mean(), dummies_mean=dummies.mean())
        parts.append(trained.assign(train_loss=list(np.array(losses).T), test_error=list(np.array(errors).T)))
    return pd.concat(parts)
