"""A training job: one algorithm in one setting, its grid as one stack, some of its trials.

A job's result is a table with one row for each trial and point of the grid. Nothing in it but `seconds` depends on how
trials are cut into jobs, on threads, or on the order of work.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from silodp.algorithms.base import Algorithm
from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.experiments.task import POINT, Task
from silodp.federation.messages import Messages
from silodp.federation.models import Model
from silodp.federation.prox import Regulariser
from silodp.federation.rng import Streams
from silodp.federation.server import SiloFederation
from silodp.federation.trial_data import TrialData, build_model
from silodp.privacy.plan import PrivacyPlan

if TYPE_CHECKING:
    from silodp.theory.convex.schedules import Schedule

# A run has diverged when its loss is not finite or exceeds this many times the first (experiments of both papers).
DIVERGENCE = 10.0
# Training records of each silo on which divergence is watched after every round; the final check uses all records.
PROBE = 16
# Outputs held at once when a model is evaluated.
EVALUATED = 2**22


def evaluate(model: Model, weights: Tensor, silos: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Mean loss and mean error of every point, (G,) each: the mean over silos of each silo's mean.

    A record with an output that is not finite counts as wrong, or as an infinite squared error.
    """
    loss, error = torch.zeros(2, len(weights), dtype=torch.float64)
    for x, y in silos:
        step = max(EVALUATED // max(len(x) * 2, 1), 1)
        for start in range(0, len(weights), step):
            part = slice(start, start + step)
            outputs = model.outputs(weights[part], x)
            finite = torch.isfinite(outputs)
            finite = finite.all(2) if finite.ndim == 3 else finite
            errors = torch.where(finite, model.errors(outputs, y), model.worst_error)
            loss[part] += model.losses(outputs, y).double().mean(1).cpu() / len(silos)
            error[part] += errors.double().mean(1).cpu() / len(silos)
    return loss, error


def train_stack(
    algorithm: Algorithm,
    federation: SiloFederation,
    model: Model,
    start: Tensor,
    probe: list[tuple[Tensor, Tensor]],
    output: str = "last",
) -> tuple[Tensor, Tensor]:
    """Run all rounds for a stack of G points; a point that diverges leaves the stack with the weights it has then.

    Args:
        algorithm: whose rounds are run.
        federation: its silos; points leave it with the stack.
        model: the model.
        start: the common starting point, (d,).
        probe: records on which the loss is watched after every round.
        output: "last" iterate, "mean_of_last_8", or "own", what the algorithm itself returns.

    Returns:
        The outputs (G, d), and for each point the round after which it left, or −1.
    """
    points = len(federation.clip)
    state = algorithm.start(start.expand(points, -1).clone())
    result = state.w.clone()
    left = torch.full((points,), -1)
    active = torch.arange(points, device=start.device)
    first = evaluate(model, start[None], probe)[0]
    recent: list[Tensor] = []
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, federation)
        loss = evaluate(model, state.w, probe)[0]
        good = (loss <= DIVERGENCE * first).to(active.device) & torch.isfinite(state.w).all(1)
        if output == "mean_of_last_8":
            recent = [*recent, state.w][-8:]
        if not bool(good.all()):
            gone = active[~good]
            result[gone], left[gone.cpu()] = state.w[~good], r
            active = active[good]
            state = state.keep(good)
            recent = [tensor[good] for tensor in recent]
            federation.keep(good)
            if not len(active):
                break
    if len(active):
        final = algorithm.output(state) if output == "own" else state.w
        result[active] = torch.stack(recent).mean(0) if recent else final
    return result, left


def run_trial(
    task: Task,
    run: Run,
    prepared: TrialData,
    trial: int,
    points: pd.DataFrame,
    purpose: str = "grid",
    keep: Callable[[pd.DataFrame, Tensor], None] | None = None,
) -> pd.DataFrame:
    """Train `points` of one trial; returns them with their results, in the given order.

    Args:
        task: algorithm, setting and reading.
        run: seed, device, precision.
        prepared: the trial's records.
        trial: the trial's number.
        points: rows with the columns `POINT`.
        purpose: "grid", or "fresh" for new batches and new noise at points chosen before.
        keep: is given the rows of each stack with its models, (G, d), or (G, N, d) where each silo has its own.
    """
    model = build_model(task.config, prepared)
    streams = Streams(run.seed).child(task.experiment, trial)
    like = prepared.train[0][0]
    start = torch.from_numpy(model.initial(streams.generator("initial"))).to(like)
    spread = _spread(prepared) if prepared.classes is None else 1.0
    regulariser = _regulariser(task.config)
    first = _objective(evaluate(model, start[None], prepared.train)[0], regulariser, start[None]).item()
    results = []
    cohort = task.setting.participants or task.setting.M
    for stack, plans, algorithm in stacks(task, points, prepared.sizes):
        began = time.perf_counter()
        for point in plans:
            check_accounted(point, cohort)
        schedule: Schedule | None = getattr(algorithm, "schedule", None)
        trained = model
        if schedule is not None and schedule.envelope is not None:
            trained = dataclasses.replace(model, smoothing=schedule.envelope)  # type: ignore[type-var]
        stepsize, clip = (torch.tensor(one).to(like) for one in _steps_and_clips(stack, prepared, schedule))
        output = "own" if schedule is not None else task.readings.output
        own = streams.child(task.algorithm, task.setting.name, purpose)

        def federation(
            silos: list[int], own: Streams, M: int | list[int], plans: list[list[PrivacyPlan]] = plans,
            trained: Model = trained, stepsize: Tensor = stepsize, clip: Tensor = clip,
        ) -> SiloFederation:  # fmt: skip
            summation = None
            if any(point[0].shuffled_sum is not None for point in plans):
                from silodp.federation.shuffled_summation import shuffled_summation  # few experiments need it

                summation = shuffled_summation([point[0] for point in plans], model.size, streams.child(purpose))
            return SiloFederation(
                Messages(trained, [prepared.train[silo] for silo in silos], own),
                [[point[silo] for silo in silos] for point in plans],
                stepsize,
                clip,
                M,
                streams.child(purpose),
                task.readings.server_update,
                regulariser.prox,
                summation,
            )

        everyone = list(range(len(prepared.train)))
        groups = [[silo] for silo in everyone] if algorithm.alone else [everyone]
        found = [
            _outcome(
                algorithm,
                federation(group, own.child(*group) if algorithm.alone else own, 1 if algorithm.alone else cohort),
                model,
                start,
                prepared.of(group),
                regulariser,
                output,
            )
            for group in groups
        ]
        weights = torch.stack([one.weights for one in found], 1) if algorithm.alone else found[0].weights
        if keep is not None:
            keep(stack, weights)
        left = torch.stack([one.left for one in found]).max(0).values
        # The mean of one group is that group's, to the last bit.
        train_loss, train_error, test_loss, test_error = (
            torch.stack([one.scores[place] for one in found]).mean(0) for place in range(4)
        )
        if prepared.classes is None:
            train_error, test_error = (train_error / spread).sqrt(), (test_error / spread).sqrt()
        diverged = (left >= 0).numpy() | ~(train_loss.numpy() <= DIVERGENCE * first)
        releases = plans[0][int(np.argmin(prepared.sizes))].releases
        results.append(
            stack.assign(
                K=releases[0].drawn,
                train_loss=train_loss.numpy().astype(float),
                test_error=test_error.numpy().astype(float),
                train_error=train_error.numpy().astype(float),
                test_loss=test_loss.numpy().astype(float),
                diverged=diverged,
                left_after=left.numpy(),
                seconds=(time.perf_counter() - began) / len(stack),
            )
        )
    table = pd.concat(results).sort_index()
    smallest = min(prepared.sizes)
    table.insert(0, "trial", trial)
    # The largest δ over silos, each for the number of records that its plan counts.
    delta = max(plan.budget.delta for plan in plans[0])
    return table.assign(N=len(prepared.sizes), n=smallest, delta=delta)


class _Outcome(NamedTuple):
    """What training on a federation gave.

    Attributes:
        weights: models, (G, d).
        left: as `train_stack` has it.
        scores: objective and error on training records, loss and error on test records, (G,) each.
    """

    weights: Tensor
    left: Tensor
    scores: tuple[Tensor, Tensor, Tensor, Tensor]


def _outcome(
    algorithm: Algorithm,
    federation: SiloFederation,
    model: Model,
    start: Tensor,
    records: TrialData,
    regulariser: Regulariser,
    output: str,
) -> _Outcome:
    weights, left = train_stack(algorithm, federation, model, start, _probe(records, model, start), output)
    train_loss, train_error = evaluate(model, weights, records.train)
    train_loss = _objective(train_loss, regulariser, weights)
    return _Outcome(weights, left, (train_loss, train_error, *evaluate(model, weights, records.test)))


def check_accounted(plans: list[PrivacyPlan], cohort: int | list[int]) -> None:
    """Raises ValueError where silos are drawn or add noise in a way that their plans' accounting is not about.

    A claim about a silo's own messages holds whoever takes part. One about the shuffled messages or the sums of a round
    is for exactly M silos, out of exactly N behind a shuffler, that all add the same noise.

    Args:
        plans: of every silo, at one point.
        cohort: M, or the values of a random M_r.
    """
    for plan in plans:
        shuffler, M = plan.shuffler, plan.trusted_sum
        if not plan.private or (shuffler is None and M is None):
            continue
        M = shuffler.M if shuffler is not None else M
        if cohort != M:
            raise ValueError(f"{plan.algorithm}: participants = {cohort}: must be the plan's M = {M} in every round")
        if shuffler is not None and len(plans) != shuffler.N:
            raise ValueError(f"{plan.algorithm}: N = {len(plans)}: must be the plan's N = {shuffler.N}")
        if plan.releases != plans[0].releases:
            raise ValueError(f"{plan.algorithm}: silos with different noise or batches: must be the same for all")


def _regulariser(config: Experiment) -> Regulariser:
    """f¹ of an experiment: its penalty, and the ball that either of two keys gives."""
    given, radius = config.regulariser, config.radius
    if given is None or given.name == "none":
        return Regulariser(radius=radius)
    if given.name == "ball":
        return Regulariser(radius=given.radius)
    return (
        Regulariser(l1=given.weight, radius=radius)
        if given.name == "l1"
        else Regulariser(l2=given.weight, radius=radius)
    )


def _objective(loss: Tensor, regulariser: Regulariser, weights: Tensor) -> Tensor:
    """f⁰ + f¹ of every point, (G,); points are chosen by it."""
    return loss + regulariser.penalty(weights.double()).cpu()


def _probe(prepared: TrialData, model: Model, start: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The first records of every silo, as one part where each silo has as many, which gives the same mean faster.

    A record whose loss is not finite at the start is left out: it contributes nothing to any message, and must not
    decide alone that every run has diverged.
    """
    parts = []
    for x, y in ((x[:PROBE], y[:PROBE]) for x, y in prepared.train):
        sound = torch.isfinite(model.losses(model.outputs(start[None], x), y)[0])
        parts.append((x, y) if bool(sound.all()) else (x[sound], y[sound]))
    parts = [(x, y) for x, y in parts if len(x)]
    if min(len(x) for x, _ in parts) < PROBE:
        return parts
    return [(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))]


def _steps_and_clips(
    stack: pd.DataFrame, prepared: TrialData, schedule: "Schedule | None"
) -> tuple[np.ndarray, np.ndarray]:
    """η and L of every point (G,), with the schedule's step, and L = 2·max‖x‖ of the training data, for a NaN."""
    # Schedules of Algorithm 2 have no step size of their own: it is in their stages.
    step = 1.0 if schedule is None or schedule.step is None else schedule.step
    stepsize, clip = stack["stepsize"].fillna(step).to_numpy(), stack["clip"].to_numpy()
    if np.isnan(clip).any():
        longest = max(float(x.flatten(1).norm(dim=1).max()) for x, _ in prepared.train)
        clip = np.where(np.isnan(clip), 2 * longest, clip)
    return stepsize, clip


def _spread(prepared: TrialData) -> float:
    """Mean squared error on the test records of always predicting the training mean; the yardstick of a regression."""
    mean = torch.cat([y for _, y in prepared.train]).double().mean()
    return float(np.mean([((y.double() - mean) ** 2).mean().item() for _, y in prepared.test]))


def stacks(
    task: Task, points: pd.DataFrame, sizes: list[int]
) -> Iterable[tuple[pd.DataFrame, list[list[PrivacyPlan]], Algorithm]]:
    """Points that can be trained together, with plans and algorithm: those with the same batch sizes and rounds."""
    made: dict[tuple[float | None, int], tuple[list[PrivacyPlan], Algorithm]] = {}
    stacks: dict[tuple[Algorithm, tuple[int, ...], bool], list[int]] = {}
    each: list[list[PrivacyPlan]] = []
    for epsilon, phase_length in zip(points["epsilon"], points["phase_length"], strict=True):
        key = (None if math.isnan(epsilon) else epsilon, int(phase_length))
        if key not in made:
            plans = task.plans(epsilon, int(phase_length), sizes)
            made[key] = plans, task.make(int(phase_length), epsilon, min(sizes))
        plans, algorithm = made[key]
        drawn = tuple(release.drawn for plan in plans for release in plan.releases)
        shape = (algorithm, drawn, any(plan.shuffled_sum is not None for plan in plans))
        stacks.setdefault(shape, []).append(len(each))
        each.append(plans)
    for (algorithm, *_), members in stacks.items():
        yield points.iloc[members], [each[position] for position in members], algorithm


def _with_others(found: pd.DataFrame, grid: pd.DataFrame) -> pd.DataFrame:
    """Rows of one trial with the rest of the grid, in its order, as rows without results."""
    table = grid.merge(found.assign(trained=True), how="left", on=POINT)
    table["trained"] = table["trained"].notna()
    for name in ("trial", "N", "n", "delta"):
        table[name] = found[name].iloc[0]
    return table[[*found.columns, "trained"]]


def run_trials(
    task: Task,
    run: Run,
    prepared_of: Callable[[int], TrialData],
    trials: Iterable[int],
    points: pd.DataFrame | None = None,
    purpose: str = "grid",
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> pd.DataFrame:
    """Train all `trials` of a task one after the other, so that memory does not grow with their number.

    Where runs of the default reading stand for some points of the grid, those are rows without results, and a column
    `trained` says which they are.

    Args:
        task: algorithm, setting and reading.
        run: seed, device, precision.
        prepared_of: trial → its records.
        trials: their numbers.
        points: what to train, default the task's grid; a column `trial`, where present, says which trial a row is for.
        purpose: as `run_trial`.
        progress: wraps the trials, to show how far the job is.
    """
    tables = []
    for trial in progress(trials):
        prepared = prepared_of(trial)
        rows = task.own_points(prepared.sizes) if points is None else points
        if "trial" in rows:
            rows = rows[rows["trial"] == trial].drop(columns="trial")
        rows = rows[POINT].drop_duplicates().reset_index(drop=True)
        found = run_trial(task, run, prepared, trial, rows, purpose)
        if points is None and len(found) < len(grid := task.grid()):
            found = _with_others(found, grid)
        tables.append(found)
    table = pd.concat(tables, ignore_index=True)
    identity = {
        "experiment": task.experiment,
        "algorithm": task.algorithm,
        "reading": task.label,
        "M": task.setting.M,
        "R": task.setting.R,
    }
    for position, (name, value) in enumerate(identity.items()):
        table.insert(position, name, value)
    return table
