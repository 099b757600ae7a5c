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

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.config.errors import ConfigError, Rule
from silodp.config.experiment import Experiment
from silodp.config.own import OwnData
from silodp.config.run import Run
from silodp.datasets.own_file import categories_of
from silodp.datasets.tabular import read_frame
from silodp.experiments.audit.table import point_rows
from silodp.experiments.first_run_file import MARK
from silodp.experiments.ledger import ANY
from silodp.experiments.released_model import ReleasedModel
from silodp.experiments.task import Task
from silodp.experiments.training import check_accounted, regulariser, train_stack
from silodp.federation.data_of import dataset_of, number_of_silos, own_file
from silodp.federation.messages import Messages
from silodp.federation.partition import Partition
from silodp.federation.rng import SecretStreams, Streams
from silodp.federation.server import SiloFederation
from silodp.federation.trial_data import build_model, fitted_records, hand_over
from silodp.privacy.adversary import delivered
from silodp.privacy.calibration import noise_multiplier
from silodp.privacy.person import persons_epsilon
from silodp.privacy.plan import PrivacyPlan

# Weights are rounded to this part of one message's noise.
_LATTICE = 2.0**-20
# Draws of records that the audit may make for one message, over all its runs.
_AUDITED = 2_000_000


@dataclass(frozen=True)
class Described:
    """What is known of the data beside the records: `silos` are names and sizes, `features` (column, category or None
    for a number) in the order of the weights."""

    columns: tuple[str, ...]
    features: list[tuple[str, str | None]]
    categories: dict[str, list[str]]
    classes: list[str] | None
    silos: dict[str, int]


@dataclass(frozen=True)
class Release:
    """What is asked for, worked out as far as it needs no record's values.

    Attributes:
        task: with one ε and calibrated noise.
        point: step size, clip and phase length.
        chosen: how these came about, a sentence.
        plans: of each silo.
        person: (silos, records in one of them) that a person has at most; (1, 1) for a record.
    """

    task: Task
    point: dict[str, Any]
    chosen: str
    data: Described
    plans: list[PrivacyPlan]
    person: tuple[int, int]

    @property
    def own(self) -> OwnData:
        assert not isinstance(self.task.config.dataset, str)
        return self.task.config.dataset

    @property
    def epsilon(self) -> float:
        return self.task.config.epsilons[0]

    @property
    def delta(self) -> float:
        """The largest of the silos'."""
        return max(plan.budget.delta for plan in self.plans)

    @property
    def unit(self) -> str:
        silos, records = self.person
        return "record" if self.person == (1, 1) else f"person ({records} records in each of {silos} silos)"

    @property
    def named(self) -> dict[str, PrivacyPlan]:
        """Plans as the ledger has them."""
        alike = self.task.config.silos.scheme == "iid"
        return {ANY: self.plans[0]} if alike else dict(zip(self.data.silos, self.plans, strict=True))

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


def planned(task: Task, epsilon: float, point: dict[str, Any], chosen: str, person: bool) -> Release:
    """The release of one model at `epsilon`; ConfigError where no noise keeps the promise."""
    config, data = task.config, described(task.config)
    # Silos that are cut at random are others in every release, and so have one plan.
    records = "equal" if config.silos.scheme == "iid" else config.readings.records
    readings = config.readings.model_copy(update={"noise": "calibrated", "records": records})
    config = config.model_copy(update={"epsilons": [epsilon], "readings": readings, "alternatives": []})
    task = dataclasses.replace(task, config=config)
    plans = task.plans(epsilon, int(point["phase_length"]), list(data.silos.values()))
    held = (dataset_of(config).held or (1, 1)) if person else (1, 1)
    if held != (1, 1):
        plans = _for_person(plans, epsilon, held)
    check_accounted(plans, task.setting.participants or task.setting.M)
    worst = max(delivered(plan).upper for plan in plans)
    if any(plan.assumption for plan in plans) or not worst <= epsilon:
        where = f"command line: --epsilon: {epsilon:g}"
        raise ConfigError(f"{where}: {task.algorithm} is not proven to keep it (up to {worst:g})")
    return Release(task, point, chosen, data, plans, held)


def _for_person(plans: list[PrivacyPlan], epsilon: float, held: tuple[int, int]) -> list[PrivacyPlan]:
    """The plans with noise scaled up until all records of a person together cost at most ε."""

    def scaled(factor: float) -> Any:
        kinds = ([dataclasses.replace(kind, noise=kind.noise * factor) for kind in plan.releases] for plan in plans)
        return [dataclasses.replace(plan, releases=tuple(of)) for plan, of in zip(plans, kinds, strict=True)]

    def measure(scaled_plans: Any, _: float) -> float:
        return persons_epsilon(list(dict.fromkeys(scaled_plans)), *held)

    if math.isinf(measure(plans, 0)):
        raise ConfigError(f"command line: --person: {held[1]} records of a person in a silo: must be fewer than it has")
    return scaled(noise_multiplier(scaled, epsilon, plans[0].budget.delta, tolerance=1e-3, measure=measure))


def described(config: Experiment) -> Described:
    """What the run file and the header of its data file say."""
    own, dataset = config.dataset, dataset_of(config)
    assert not isinstance(own, str)
    file, frame, data = own_file(own), read_frame(Path(own.file), own.encoding), dataset.load()
    if own.person is not None and (most := int(frame[own.person].value_counts().max())) > own.person_limit:
        allowed = (
            f"must be at most person_limit = {own.person_limit} for a release: a record would decide which others train"
        )
        raise ConfigError(f"{own.file}: column {own.person!r}: {most} records of a person: {allowed}")
    numbers = set(dataset.standardise_columns or ())
    words = [name for name in file.features(frame) if name not in numbers]
    categories = {name: categories_of(frame[name], file)[0] for name in words}
    pairs: dict[str, tuple[str, str | None]] = {name: (name, None) for name in numbers}
    pairs |= {f"{name}={category}": (name, category) for name in words for category in categories[name]}
    if dataset.silo_records is None:
        count = number_of_silos(config)
        silos = {str(number + 1): (dataset.records + count - 1 - number) // count for number in range(count)}
    else:
        silos = dict(zip(data.silo_names, dataset.silo_records, strict=True))
    features = [pairs[name] for name in data.feature_names]
    return Described(tuple(map(str, frame)), features, categories, list(data.class_names) or None, silos)


def uncovered(asked: Release, run_file: Path) -> list[str]:
    """Facts that were read off the records without noise, and that no ε counts."""
    steps, facts = asked.task.config.preprocess, []
    marked = sum(MARK in line for line in run_file.read_text(encoding="utf-8").splitlines())
    if marked:
        facts.append(f"{marked} lines of {run_file.name} marked `{MARK}`")
    elif steps.bounds and steps.bounds_from == "file":
        facts.append("bounds (bounds_from: file)")
    if undeclared := sorted(set(asked.data.categories) - set(asked.own.categories)):
        facts.append(f"categories of {', '.join(undeclared)}")
    if asked.own.classes is None and asked.data.classes is not None:
        facts.append(f"classes of {asked.own.target}")
    if asked.person != (1, 1):
        facts.append("the largest numbers of records and silos of a person")
    return facts


def trained(asked: Release, run: Run, secret: SecretStreams) -> np.ndarray:
    """Weights (d,) after all rounds on all records; they may not be finite. BrokenPlan as in training."""
    task, config, count = asked.task, asked.task.config.model_copy(update={"device": None}), len(asked.data.silos)
    data = dataset_of(config).load()
    if len(data.silo):
        members = [np.flatnonzero(data.silo == silo) for silo in range(count)]
    else:
        order = secret.generator("silos of records").permutation(len(data.y))
        members = [np.sort(part) for part in np.array_split(order, count)]
    part = Partition(tuple((records, np.zeros(0, dtype=np.int64)) for records in members))
    run = run.model_copy(update={"dtype": "float64", "device": "cpu"})
    prepared = hand_over(fitted_records(data, config, task.readings, part), config, part, run)
    model = build_model(config, prepared)
    stepsize, clip = (torch.tensor([asked.point[name]], dtype=torch.float64) for name in ("stepsize", "clip"))
    messages, draws = Messages(model, prepared.train, secret.child("sent")), secret.child("draws")
    cohort, more = task.setting.participants or task.setting.M, (task.readings.server_update, regulariser(config).prox)
    federation = SiloFederation(messages, [asked.plans], stepsize, clip, cohort, draws, *more)
    algorithm = task.make(int(asked.point["phase_length"]), asked.epsilon, min(prepared.sizes))
    start = torch.from_numpy(model.initial(secret.generator("initial")))
    return train_stack(algorithm, federation, model, start, None, task.readings.output)[0][0].numpy()


def audited(asked: Release) -> dict[str, Any]:
    """What an audit of this configuration shows, at the smallest silo's plan; its streams are public."""
    plan = min(asked.plans, key=lambda plan: plan.budget.n)
    algorithm = asked.task.make(int(asked.point["phase_length"]), asked.epsilon, plan.budget.n)
    runs = int(np.clip(_AUDITED // max(release.drawn for release in plan.releases), 100, 5000))
    (row,) = point_rows(algorithm, [plan], runs, Streams(0).child("release"), tested=min(runs, 60))
    return row | {"n": plan.budget.n}


def model_of(asked: Release, weights: np.ndarray) -> ReleasedModel:
    """The weights, rounded, with all that a prediction needs."""
    steps, promise = asked.task.config.preprocess, {"epsilon": asked.epsilon, "delta": asked.delta, "unit": asked.unit}
    about = dataclasses.asdict(asked.data) | {"silos": list(asked.data.silos), "promise": promise}
    about |= {"model": asked.task.config.model.model_dump(mode="json"), "target": asked.own.target}
    about |= {"bounds": steps.bounds, "constant_column": steps.constant_column, "missing": asked.own.missing}
    about["encoding"] = asked.own.encoding
    return ReleasedModel(np.round(weights / asked.lattice) * asked.lattice, about)


def card(asked: Release, model: ReleasedModel, **facts: Any) -> str:
    """The text of the card beside the model; nothing in it is computed from records without noise."""
    template = Path(__file__).with_name("release_card.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    floats = asked.lattice / np.spacing(max(float(np.abs(model.weights).max()), asked.lattice))
    return environment.from_string(template).render(asked=asked, floats=floats, **facts)
