"""A training job: one algorithm in one setting, its grid as one stack, some of its trials.

The result is a table with one row for each trial and point of the grid. No column but `seconds` depends on how trials
are cut into jobs, on threads, or on the order of work.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from silodp.algorithms.base import Algorithm
from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.experiments.task import POINT, RUN, Task
from silodp.federation.messages import Messages
from silodp.federation.prox import Regulariser
from silodp.federation.simulated import SiloFederation
from silodp.models import gpu
from silodp.models.base import Model
from silodp.partition.trial_data import TrialData, build_model
from silodp.privacy.plan import PrivacyPlan
from silodp.streams import Streams
from silodp.theory.convex.schedules import Schedule

# A run has diverged when its loss is not finite or exceeds this many times the first (experiments of both papers).
DIVERGENCE = 10.0
# Training records of each silo on which divergence is watched after every round; the final check uses all records.
PROBE = 16
# Outputs held at once when a model is evaluated.
EVALUATED = 2**22


def evaluate(model: Model, weights: Tensor, silos: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Mean loss and mean error of every point, (G,) each: the mean over silos of each silo's mean.

    `weights` are (G, d), or (G, N, d) with a model for each silo.
    A record with an output that is not finite counts as wrong, or as an infinite squared error.
    """
    loss, error = _means(model, weights, silos).cpu()
    return loss, error


def _means(model: Model, weights: Tensor, silos: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Loss and error of `evaluate`, (2, G), on the device of the weights, for which the host does not wait."""
    means = torch.zeros(2, len(weights), dtype=torch.float64, device=weights.device)
    for number, (x, y) in enumerate(silos):
        used = weights if weights.ndim == 2 else weights[:, number]
        step = max(EVALUATED // max(len(x) * 2, 1), 1)
        for start in range(0, len(weights), step):
            part = slice(start, start + step)
            outputs = model.outputs(used[part], x)
            finite = torch.isfinite(outputs)
            finite = finite.all(2) if finite.ndim == 3 else finite
            errors = torch.where(finite, model.errors(outputs, y), model.worst_error)
            means[0, part] += model.losses(outputs, y).double().mean(1) / len(silos)
            means[1, part] += errors.double().mean(1) / len(silos)
    return means


def train_stack(
    algorithm: Algorithm,
    federation: SiloFederation,
    model: Model,
    start: Tensor,
    probe: list[tuple[Tensor, Tensor]] | None,
    output: str = "last",
) -> tuple[Tensor, Tensor]:
    """Run all rounds for a stack of G points; a point that diverges leaves the stack with the weights it has then.

    Args:
        start: the common starting point, (d,).
        probe: records on which the loss is watched after every round; None: none is, and no point leaves.
        output: "last" iterate, "mean_of_last_8", or "own", what the algorithm itself returns.

    Returns the outputs (G, d), or (G, N, d) where every silo has its own, and for each point the round after which it
    left, or −1. BrokenPlan: a silo was asked for what its plan does not have.
    """
    federation.hold_to_plans()
    points = len(federation.clip)
    state = algorithm.start(start.expand(points, -1).clone())
    result = algorithm.models(state).clone()
    left = torch.full((points,), -1)
    rows = torch.arange(points)  # the points that the stack holds
    first = _means(model, start[None], probe or [])[0]
    recent: list[Tensor] = []
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, federation)
        if output == "mean_of_last_8":
            recent = [*recent, algorithm.models(state)][-8:]
        if probe is None:
            continue
        loss = _means(model, state.w, probe)[0]
        good = ((loss <= DIVERGENCE * first) & torch.isfinite(state.w).all(1)).cpu()
        leaving = ~good & (left[rows] < 0)
        if bool(leaving.any()):
            result[rows[leaving]], left[rows[leaving]] = algorithm.models(state)[leaving], r
            if bool((left >= 0).all()):
                return result, left
            # A device rounds by the size of the stack, so there all points stay in it.
            if gpu.runs_on_host(start):
                rows, state = rows[good], state.keep_points(good)
                recent = [tensor[good] for tensor in recent]
                federation.keep_points(good)
    stayed = left[rows] < 0
    final = algorithm.output(state) if output == "own" else algorithm.models(state)
    result[rows[stayed]] = (torch.stack(recent).mean(0) if recent else final)[stayed]
    return result, left


@dataclass(frozen=True)
class _Trainer:
    """What all stacks of a trial share.

    Attributes:
        start: the common starting point, (d,).
        draws: streams of silos that take part, shared by all algorithms.
        sent: streams of the algorithm's messages.
        keep: is given the silos and the weights (G, d) trained on them.
    """

    task: Task
    prepared: TrialData
    model: Model
    regulariser: Regulariser
    start: Tensor
    draws: Streams
    sent: Streams
    keep: Callable[[list[int], Tensor], None] | None = None

    def train(self, stack: pd.DataFrame, plans: list[list[PrivacyPlan]], algorithm: Algorithm) -> tuple[Tensor, Tensor]:
        """Train the points of `stack`: all silos together, or each by itself where the algorithm is `alone`.

        Returns the round after which a point left, as `train_stack` has it, and scores (4, G): objective and error on
        training records, loss and error on test records.
        """
        cohort = self.task.setting.participants or self.task.setting.M  # M, or the values of a random M_r
        for point in plans:
            check_accounted(point, cohort)
        everyone = list(range(len(self.prepared.train)))
        if not algorithm.alone:
            return self._scored(algorithm, stack, plans, everyone, self.sent, cohort)
        alone = [self._scored(algorithm, stack, plans, [silo], self.sent.child(silo), 1) for silo in everyone]
        left, scores = zip(*alone, strict=True)
        # One kind of score at a time, as the order of a sum decides its last digit.
        means = [torch.stack(silos).mean(0) for silos in zip(*scores, strict=True)]
        return torch.stack(left).max(0).values, torch.stack(means)

    def objective(self, loss: Tensor, weights: Tensor) -> Tensor:
        """f⁰ + f¹ of every point, (G,); points are chosen by it."""
        return loss + self.regulariser.penalty(weights.flatten(1).double()).cpu()

    def _scored(
        self,
        algorithm: Algorithm,
        stack: pd.DataFrame,
        plans: list[list[PrivacyPlan]],
        silos: list[int],
        sent: Streams,
        cohort: int | list[int],
    ) -> tuple[Tensor, Tensor]:
        """Train on some silos and evaluate on the same."""
        model, records = self.model, self.prepared.for_silos(silos)
        schedule: Schedule | None = getattr(algorithm, "schedule", None)
        trained = model
        if schedule is not None and schedule.envelope is not None:
            trained = replace(model, smoothing=schedule.envelope)  # type: ignore[type-var]
        summation = None
        if any(point[0].shuffled_sum is not None for point in plans):
            from silodp.federation.shuffled_sum import shuffled_summation  # loads scipy.stats and dp_accounting

            # On public data the SDP algorithms share the draws of P_vec, as published.
            draws = sent if self.task.on_own_data else self.draws
            summation = shuffled_summation([point[0] for point in plans], model.size, draws)
        stepsize, clip = (torch.tensor(values).to(self.start) for values in self._steps_and_clips(stack, schedule))
        federation = SiloFederation(
            Messages(trained, records.train, sent),
            [[point[silo] for silo in silos] for point in plans],
            stepsize,
            clip,
            cohort,
            self.draws,
            self.task.readings.server_update,
            self.regulariser.prox,
            summation,
        )
        output = self.task.readings.output if schedule is None else "own"
        probe = _probe(records, model, self.start)
        weights, left = train_stack(algorithm, federation, model, self.start, probe, output)
        if self.keep is not None:
            self.keep(silos, weights)
        loss, error = evaluate(model, weights, records.train)
        scores = self.objective(loss, weights), error, *evaluate(model, weights, records.test)
        return left, torch.stack(scores)

    def _steps_and_clips(self, stack: pd.DataFrame, schedule: Schedule | None) -> tuple[np.ndarray, np.ndarray]:
        """η and L of every point (G,), with the schedule's step, and L = 2·max‖x‖ of the training data, for a NaN."""
        # Schedules of Algorithm 2 have no step size of their own: it is in their stages.
        step = 1.0 if schedule is None or schedule.step is None else schedule.step
        stepsize, clip = stack["stepsize"].fillna(step).to_numpy(), stack["clip"].to_numpy()
        if np.isnan(clip).any():
            longest = max(float(x.flatten(1).norm(dim=1).max()) for x, _ in self.prepared.train)
            clip = np.where(np.isnan(clip), 2 * longest, clip)
        return stepsize, clip


def run_trial(
    task: Task,
    run: Run,
    prepared: TrialData,
    trial: int,
    points: pd.DataFrame,
    purpose: str = "grid",
    keep: Callable[[list[int], Tensor], None] | None = None,
) -> pd.DataFrame:
    """Train `points` (rows with the columns `POINT`) of one trial; returns them with their results, in the given order.

    `purpose`: "grid", or "fresh" for new batches and new noise at points chosen before. `keep`, if given, gets silos
    and the weights (G, d) that were trained on them.
    """
    model = build_model(task.config, prepared)
    streams = Streams(run.seed).child(task.experiment, trial)
    start = torch.from_numpy(model.initial(streams.generator("initial"))).to(prepared.train[0][0])
    sent = streams.child(task.algorithm, task.setting.name, purpose)
    trainer = _Trainer(task, prepared, model, regulariser(task.config), start, streams.child(purpose), sent, keep)
    first = trainer.objective(evaluate(model, start[None], prepared.train)[0], start[None]).item()
    smallest, results = int(np.argmin(prepared.sizes)), []
    for stack, plans, algorithm in stacks(task, points, prepared.sizes, apart=task.on_own_data):
        began = time.perf_counter()
        if task.on_own_data:
            # No two runs of own data but step sizes and clips of one point share a draw.
            named = sent.child(task.label, *stack.iloc[0][["epsilon", "phase_length"]])
            trainer = replace(trainer, sent=named)
        left, (train_loss, train_error, test_loss, test_error) = trainer.train(stack, plans, algorithm)
        if prepared.classes is None:
            spread = _spread(prepared)
            train_error, test_error = (train_error / spread).sqrt(), (test_error / spread).sqrt()
        results.append(
            stack.assign(
                K=plans[0][smallest].releases[0].records_drawn,
                train_loss=train_loss.numpy(),
                test_error=test_error.numpy(),
                train_error=train_error.numpy(),
                test_loss=test_loss.numpy(),
                diverged=((left >= 0) | ~(train_loss <= DIVERGENCE * first)).numpy(),
                left_after=left.numpy(),
                seconds=(time.perf_counter() - began) / len(stack),
            )
        )
    table = pd.concat(results).sort_index()
    table.insert(0, "trial", trial)
    # The largest δ over silos, each for the number of records that its plan counts.
    delta = max(plan.budget.delta for plan in plans[0])
    return table.assign(N=len(prepared.sizes), n=min(prepared.sizes), delta=delta)


def check_accounted(plans: list[PrivacyPlan], cohort: int | list[int]) -> None:
    """Raises ValueError where silos are drawn or add noise in a way that their plans' accounting is not about.

    A claim about a silo's own messages holds whoever takes part. One about the shuffled messages or the sums of a round
    is for exactly M silos, out of exactly N behind a shuffler, that all add the same noise.

    `plans` are of every silo, at one point; `cohort` is M, or the values of a random M_r.
    """
    for plan in plans:
        shuffler = plan.shuffler
        M = plan.trusted_sum if shuffler is None else shuffler.M
        if not plan.private or M is None:
            continue
        if cohort != M:
            raise ValueError(f"{plan.algorithm}: participants = {cohort}: must be the plan's M = {M} in every round")
        if shuffler is not None and len(plans) != shuffler.N:
            raise ValueError(f"{plan.algorithm}: N = {len(plans)}: must be the plan's N = {shuffler.N}")
        if plan.releases != plans[0].releases:
            raise ValueError(f"{plan.algorithm}: silos with different noise or batches: must be the same for all")


def regulariser(config: Experiment) -> Regulariser:
    """f¹ of an experiment: its penalty and its ball."""
    penalty = config.regulariser
    return Regulariser(**({penalty.name: penalty.weight} if penalty else {}), radius=config.radius)


def _probe(prepared: TrialData, model: Model, start: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The first records of every silo, as one part where each silo has as many, which gives the same mean faster."""
    parts = []
    for x, y in ((x[:PROBE], y[:PROBE]) for x, y in prepared.train):
        sound = torch.isfinite(model.losses(model.outputs(start[None], x), y)[0])
        parts.append((x, y) if bool(sound.all()) else (x[sound], y[sound]))
    parts = [(x, y) for x, y in parts if len(x)]
    if min(len(x) for x, _ in parts) < PROBE:
        return parts
    return [(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))]


def _spread(prepared: TrialData) -> float:
    """Mean squared error on the test records of always predicting the training mean; the yardstick of a regression."""
    mean = torch.cat([y for _, y in prepared.train]).double().mean()
    return float(np.mean([((y.double() - mean) ** 2).mean().item() for _, y in prepared.test]))


def stacks(
    task: Task, points: pd.DataFrame, sizes: list[int], apart: bool = False
) -> Iterator[tuple[pd.DataFrame, list[list[PrivacyPlan]], Algorithm]]:
    """Points that can be trained together, with plans and algorithm: those with the same batch sizes and rounds.

    `apart`: and with the same ε and phase length.
    """
    stacks: dict[tuple, list[tuple[int, list[PrivacyPlan]]]] = {}
    numbered = points.assign(place=range(len(points)))
    for (epsilon, phase_length), rows in numbered.groupby(["epsilon", "phase_length"], dropna=False, sort=False):
        plans = task.plans(float(epsilon), int(phase_length), sizes)
        algorithm = task.make(int(phase_length), float(epsilon), min(sizes))
        drawn = tuple(release.records_drawn for plan in plans for release in plan.releases)
        shape: tuple = (algorithm, drawn, any(plan.shuffled_sum is not None for plan in plans))
        shape += (str(epsilon), phase_length) if apart else ()
        stacks.setdefault(shape, []).extend((place, plans) for place in rows["place"])
    for (algorithm, *_), members in stacks.items():
        members.sort(key=lambda member: member[0])
        yield points.iloc[[place for place, _ in members]], [plans for _, plans in members], algorithm


def _add_untrained_points(trained: pd.DataFrame, grid: pd.DataFrame) -> pd.DataFrame:
    """Rows of one trial with the rest of the grid, in its order, as rows without results."""
    table = grid.merge(trained.assign(trained=True), how="left", on=POINT)
    table["trained"] = table["trained"].notna()
    for name in ("trial", "N", "n", "delta"):
        table[name] = trained[name].iloc[0]
    return table[[*trained.columns, "trained"]]


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

    `points` are what to train, default the task's grid; a column `trial`, if present, is the trial of a row.
    """
    tables = []
    for trial in progress(trials):
        prepared = prepared_of(trial)
        rows = task.points_to_train(prepared.sizes) if points is None else points
        if "trial" in rows:
            rows = rows[rows["trial"] == trial].drop(columns="trial")
        rows = rows[POINT].drop_duplicates().reset_index(drop=True)
        table = run_trial(task, run, prepared, trial, rows, purpose)
        if points is None and len(table) < len(grid := task.grid()):
            table = _add_untrained_points(table, grid)
        tables.append(table)
    whole = pd.concat(tables, ignore_index=True)
    names = (task.experiment, task.algorithm, task.label, task.setting.M, task.setting.R)
    return whole.assign(**dict(zip(RUN, names, strict=True)))[[*RUN, *whole.columns]]
