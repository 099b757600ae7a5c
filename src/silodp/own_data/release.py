"""A release: one model of a user's own data, trained once on all records, with noise that nobody can make again.

Nothing here depends on a record but through messages with noise: no test part, no loss, no stop, no error.
"""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import torch
from dp_accounting import GaussianDpEvent

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.audit.lower_bound import point_rows
from silodp.config.errors import ConfigError, Rule
from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.config.types import OwnData
from silodp.datasets.own.schema import Schema
from silodp.experiments.task import WEAK, Task
from silodp.experiments.training import check_accounted, regulariser, train_stack
from silodp.federation.experiment_data import dataset_of, number_of_silos, schema_of
from silodp.federation.messages import Messages
from silodp.federation.partition import Partition
from silodp.federation.simulated import SiloFederation
from silodp.federation.streams import SecretStreams, Streams
from silodp.federation.trial_data import TrialData, build_model, fitted_records, to_tensors
from silodp.models import Model
from silodp.own_data.first_run_file import MARK
from silodp.own_data.released_model import ReleasedModel
from silodp.privacy.calibration import noise_multiplier
from silodp.privacy.floating_point import counting_rounding
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.plan import Release as Message
from silodp.privacy.selection import number_of_tries
from silodp.privacy.true_epsilon import epsilon_bounds
from silodp.silos.ledger_total import total

# Weights are rounded to this part of one message's noise.
_LATTICE = 2.0**-20
# Draws of records that the audit may make for one message, over all its runs.
_AUDITED = 2_000_000


@dataclass(frozen=True)
class Described:
    """What is known of the data beside the records: `silos` are names and sizes."""

    schema: Schema
    silos: dict[str, int]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.columns)


@dataclass(frozen=True)
class Release:
    """What is asked for, worked out as far as it needs no record's values.

    Attributes:
        task: with one ε and calibrated noise.
        point: step size, clip and phase length.
        chosen: how these came about, a sentence.
        plans: of each silo's messages in a run.
        person: (silos, records in one of them) that a person has at most; (1, 1) for a record.
        tries: mean number of runs of which the best is released, 1 without private selection.
        points: where these runs are, each as likely.
        scores: of each silo, the noise multiplier of its mean loss that a run is compared by.
    """

    task: Task
    point: dict[str, Any]
    chosen: str
    data: Described
    plans: list[PrivacyPlan]
    person: tuple[int, int]
    tries: int = 1
    points: tuple[dict[str, Any], ...] = ()
    scores: tuple[float, ...] = ()

    @property
    def own(self) -> OwnData:
        assert not isinstance(self.task.config.dataset, str)
        return self.task.config.dataset

    @property
    def epsilon(self) -> float:
        return self.task.config.epsilons[0]

    @property
    def delta(self) -> float:
        return max(plan.budget.delta for plan in self.plans)

    @property
    def weak(self) -> list[int]:
        """Sizes of silos whose δ allows that a record is published as it is with a probability that counts."""
        return [plan.budget.n for plan in self.plans if plan.budget.n * plan.budget.delta > WEAK]

    @property
    def unit(self) -> str:
        silos, records = self.person
        where = "one silo" if silos == 1 else f"each of {silos} silos"
        return "record" if self.person == (1, 1) else f"person (at most {records} records in {where})"

    @property
    def named(self) -> dict[str, PrivacyPlan]:
        """Plans as the ledger has them: with private selection a run's score is one more message of all records."""
        alike, plans = self.task.config.silos.scheme == "iid", self.plans
        if self.scores:
            sizes = [plan.budget.n for plan in plans]
            of = [Message("score", 1, n, 2 * z / n, sampler="all") for n, z in zip(sizes, self.scores, strict=True)]
            plans = [
                dataclasses.replace(plan, releases=(*plan.releases, score), tries=self.tries)
                for plan, score in zip(plans, of, strict=True)
            ]
        return {"any silo": plans[0]} if alike else dict(zip(self.data.silos, plans, strict=True))

    @property
    def lattice(self) -> float:
        """The step that weights are rounded to: a power of two, `_LATTICE` of the least noise of a message in them.

        Where noise is float64 and not a real Gaussian shows in a weight's last bits, which this takes away.
        """
        least = min(kind.noise for plan in self.plans for kind in plan.releases if kind.count)
        noise = least * self.point["clip"] * self.point["stepsize"] / math.sqrt(self.task.setting.M)
        return 2.0 ** math.floor(math.log2(noise * _LATTICE))


def release_rules(config: Experiment, algorithm: str, person: bool) -> Iterator[Rule]:
    """What a release refuses, since a record would show in it beside the messages."""
    own, steps, readings, kind = config.dataset, config.preprocess, config.readings, ALGORITHMS[algorithm]
    assert not isinstance(own, str)
    scheme, how, schedule = config.silos.scheme, steps.standardise, config.algorithms[algorithm].schedule
    allowed = "must be column or iid for a release: one label would decide which silo holds other records"
    yield scheme not in ("column", "iid"), "silos.scheme", scheme, allowed
    allowed = "must be refuse or mean for a release: a record with a gap would change the number of records"
    yield own.missing == "drop", "dataset.missing", own.missing, allowed
    plain = how in ("none", False) and not dataset_of(config).standardise_columns
    allowed = "must be bounds for a release (or none, without numbers): means of records have no noise"
    yield not plain and how != "bounds", "preprocess.standardise", how, allowed
    yield steps.pca is not None, "preprocess.pca", steps.pca, "must be left out for a release: components have no noise"
    for key, needed in (("resample", False), ("clip_rule", "grid"), ("summation", "ideal")):
        value = getattr(readings, key)
        yield value != needed, f"readings.{key}", value, f"must be {needed} for a release"
    where = f"algorithms.{algorithm}.schedule"
    yield schedule is not None, where, schedule, "must be left out for a release, whose step size is given"
    allowed = "must train one model without a shuffler for a release"
    several = kind.alone or kind.models is not Algorithm.models
    yield several or kind.trust == "shuffler", "--algorithm", algorithm, allowed
    yield person and own.person is None, "dataset.person", None, "must name the column of persons for --person"


def planned(task: Task, epsilon: float, point: dict[str, Any], chosen: str, person: bool, tries: int = 1) -> Release:
    """The release of one model at `epsilon`; ConfigError where no noise keeps the promise.

    `tries` above 1: of the phase length of `point` and what private selection chooses of the grid.
    """
    config, data = task.config, described(task.config)
    # Silos that are cut at random are others in every release, and so have one plan.
    records = "equal" if config.silos.scheme == "iid" else config.readings.records
    readings = config.readings.model_copy(update={"noise": "calibrated", "records": records})
    config = config.model_copy(update={"epsilons": [epsilon], "readings": readings, "alternatives": []})
    task = dataclasses.replace(task, config=config)
    sizes = list(data.silos.values())
    plans = [counting_rounding(plan) for plan in task.plans(epsilon, int(point["phase_length"]), sizes)]
    held = (dataset_of(config).person_spread or (1, 1)) if person else (1, 1)
    asked = Release(task, point, chosen, data, plans, held)
    if tries > 1:
        grid = task.grid().dropna()
        points = grid.loc[grid["phase_length"] == point["phase_length"], list(point)].to_dict("records")
        if not points:
            allowed = f"must be one of the grid's: {', '.join(map(str, grid['phase_length'].unique()))}"
            raise ConfigError(f"command line: --phase-length: {point['phase_length']}: {allowed}")
        deltas = [plan.budget.delta for plan in plans]
        # A score by itself costs half of ε: about a fifth of a run's Rényi divergence.
        noise = {delta: noise_multiplier(GaussianDpEvent, epsilon / 2, delta) for delta in set(deltas)}
        scores = tuple(noise[delta] for delta in deltas)
        asked = dataclasses.replace(asked, point=points[0], tries=tries, points=tuple(points), scores=scores)
    if held != (1, 1) or tries > 1:
        asked = _kept(asked)
    check_accounted(asked.plans, task.setting.participants or task.setting.M)
    worst = max(epsilon_bounds(plan).upper for plan in asked.plans)
    if any(plan.assumption for plan in plans) or not worst <= epsilon:
        where = f"command line: --epsilon: {epsilon:g}"
        raise ConfigError(f"{where}: {task.algorithm} is not proven to keep it (up to {worst:g})")
    return asked


def _kept(asked: Release) -> Release:
    """The same with noise scaled up until all runs and all records of a person together cost at most ε."""

    def scaled(factor: float) -> Any:
        plans, scores = [plan.with_noise_times(factor) for plan in asked.plans], tuple(z * factor for z in asked.scores)
        return dataclasses.replace(asked, plans=plans, scores=scores)

    def measure(one: Any, _: float) -> float:
        return total([list(one.named.values())], *one.person)[0]

    silos, records = asked.person
    if records >= min(plan.budget.n for plan in asked.plans):
        raise ConfigError(f"command line: --person: {records} records of a person in a silo: must be fewer than it has")
    if asked.scores and silos > 1 and len(set(asked.plans)) > 1:
        allowed = "must be left out with --person, as persons have records in silos with different noise"
        raise ConfigError(f"command line: --selection: {asked.tries}: {allowed}")
    return scaled(noise_multiplier(scaled, asked.epsilon, asked.delta, tolerance=1e-3, measure=measure))


def described(config: Experiment) -> Described:
    own, dataset = config.dataset, dataset_of(config)
    assert not isinstance(own, str)
    schema, data = schema_of(own), dataset.load()
    if dataset.silo_records is None:
        count = number_of_silos(config)
        silos = {str(number + 1): (dataset.records + count - 1 - number) // count for number in range(count)}
    else:
        silos = dict(zip(data.silo_names, dataset.silo_records, strict=True))
        for name, size in own.sizes.items():
            if size > silos.get(name, 0):
                held = f"{silos[name]} records" if name in silos else "no such silo, or too small"
                raise ConfigError(f"{own.file}: dataset.sizes: {name}: {size}: must be at most what it has: {held}")
            silos[name] = size
    return Described(schema, silos)


def uncovered(asked: Release, run_file: Path) -> list[str]:
    """Facts that were read off the records without noise, and that no ε counts."""
    steps, facts = asked.task.config.preprocess, []
    marked = sum(MARK in line for line in run_file.read_text(encoding="utf-8").splitlines())
    if marked:
        facts.append(f"{marked} lines of {run_file.name} marked `{MARK}`")
    elif steps.bounds and steps.bounds_from == "file":
        facts.append("bounds (bounds_from: file)")
    words = {name for name, column in asked.data.schema.features.items() if column.values}
    if undeclared := sorted(words - {*asked.own.categories, *asked.own.columns}):
        facts.append(f"categories of {', '.join(undeclared)}")
    if asked.own.classes is None and asked.data.schema.classes and not asked.own.columns:
        facts.append(f"classes of {asked.own.target}")
    if set(asked.data.silos) != set(asked.own.sizes):
        facts.append("sizes of silos")
    if asked.own.person is not None:
        facts.append("how many records a person has, and in which silos")
    return facts


def trained(asked: Release, run: Run, secret: SecretStreams) -> tuple[Release, np.ndarray]:
    """The release at the point that it took, and weights (d,) after all rounds on all records.

    They may not be finite. With private selection the best of a random number of runs at random points, by the mean
    loss of silos with noise (Papernot and Steinke 2022, Theorem 2). BrokenPlan as in training.
    """
    if not asked.scores:
        return asked, _run(asked, run, secret)[0]
    found = []
    for number in range(number_of_tries(asked.tries, secret.generator("tries"))):
        streams = secret.child("try", number)
        place = streams.generator("point").integers(len(asked.points))
        one = dataclasses.replace(asked, point=asked.points[place])
        weights, model, records = _run(one, run, streams)
        found.append((_score(asked, weights, model, records, streams.generator("score")), one, weights))
    _, one, weights = min(found, key=lambda tried: tried[0])
    return one, weights


def _score(
    asked: Release, weights: np.ndarray, model: Model, records: TrialData, generator: np.random.Generator
) -> float:
    """Mean over silos of the mean loss of their records, each cut to [0, `most`], with noise."""
    most = 2 * math.log(records.classes) if records.classes else 0.5
    noise, means = generator.standard_normal(len(records.train)), []
    for (x, y), z, draw in zip(records.train, asked.scores, noise, strict=True):
        losses = model.losses(model.outputs(torch.from_numpy(weights)[None], x), y)[0].numpy()
        mean = np.nan_to_num(losses, nan=most).clip(0, most).mean()
        means.append(mean + draw * z * most / len(losses))
    return float(np.mean(means))


def _run(asked: Release, run: Run, secret: SecretStreams) -> tuple[np.ndarray, Model, TrialData]:
    """Weights of one run, the model and the records that it trained on."""
    task, config, sizes = asked.task, asked.task.config.model_copy(update={"device": None}), asked.data.silos.values()
    data = dataset_of(config).load()
    if len(data.silo):
        whole = [np.flatnonzero(data.silo == silo) for silo in range(len(sizes))]
        drawn = secret.generator("records of silos")
        members = [np.sort(drawn.choice(of, size, replace=False)) for of, size in zip(whole, sizes, strict=True)]
    else:
        order = secret.generator("silos of records").permutation(len(data.y))
        members = [np.sort(part) for part in np.array_split(order, len(sizes))]
    part = Partition(tuple((records, np.zeros(0, dtype=np.int64)) for records in members))
    run = run.model_copy(update={"dtype": "float64", "device": "cpu"})
    prepared = to_tensors(fitted_records(data, config, task.readings, part), config, part, run)
    model = build_model(config, prepared).hiding_time()
    stepsize, clip = (torch.tensor([asked.point[name]], dtype=torch.float64) for name in ("stepsize", "clip"))
    messages, draws = Messages(model, prepared.train, secret.child("sent")), secret.child("draws")
    cohort, more = task.setting.participants or task.setting.M, (task.readings.server_update, regulariser(config).prox)
    federation = SiloFederation(messages, [asked.plans], stepsize, clip, cohort, draws, *more)
    algorithm = task.make(int(asked.point["phase_length"]), asked.epsilon, min(prepared.sizes))
    start = torch.from_numpy(model.initial(secret.generator("initial")))
    weights = train_stack(algorithm, federation, model, start, None, task.readings.output)[0][0].numpy()
    return weights, model, prepared


def audited(asked: Release) -> dict[str, Any]:
    """What an audit of this configuration shows, at the smallest silo's plan; its streams are public."""
    plan = min(asked.plans, key=lambda plan: plan.budget.n)
    algorithm = asked.task.make(int(asked.point["phase_length"]), asked.epsilon, plan.budget.n)
    runs = int(np.clip(_AUDITED // max(release.records_drawn for release in plan.releases), 100, 5000))
    (row,) = point_rows(algorithm, [plan], runs, Streams(0).child("release"), tested=min(runs, 60))
    return row | {"n": plan.budget.n}


def model_of(asked: Release, weights: np.ndarray) -> ReleasedModel:
    steps, promise = asked.task.config.preprocess, {"epsilon": asked.epsilon, "delta": asked.delta, "unit": asked.unit}
    about: dict[str, Any] = {"silos": list(asked.data.silos), "promise": promise, "bounds": steps.bounds}
    about |= {"model": asked.task.config.model.model_dump(mode="json"), "constant_column": steps.constant_column}
    return ReleasedModel(np.round(weights / asked.lattice) * asked.lattice, about, asked.data.schema)


def card(asked: Release, model: ReleasedModel, **facts: Any) -> str:
    """The text of the card beside the model; nothing in it is computed from records without noise."""
    template = Path(__file__).with_name("release_card.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    floats = asked.lattice / np.spacing(max(float(np.abs(model.weights).max()), asked.lattice))
    return environment.from_string(template).render(asked=asked, floats=floats, **facts)
