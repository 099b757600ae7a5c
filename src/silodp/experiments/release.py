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
import pandas as pd
import torch

from silodp.algorithms import ALGORITHMS
from silodp.config.errors import ConfigError, Rule
from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.datasets.own_file import categories_of
from silodp.datasets.tabular import coded, read_frame
from silodp.experiments import ledger
from silodp.experiments.audit.table import point_rows
from silodp.experiments.first_run_file import MARK
from silodp.experiments.released_model import ReleasedModel
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import Trainer, regulariser, stacks
from silodp.federation.data_of import dataset_of, number_of_silos, own_file
from silodp.federation.partition import Partition
from silodp.federation.rng import SecretStreams, Streams, secret_streams
from silodp.federation.trial_data import build_model, fitted_records, hand_over
from silodp.privacy.adversary import delivered
from silodp.privacy.calibration import noise_multiplier
from silodp.privacy.person import persons_epsilon
from silodp.privacy.plan import PrivacyPlan

# Weights are rounded to this part of one message's noise.
LATTICE = 2.0**-20
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
        task: with one ε, calibrated noise and the algorithm's private form.
        point: the point that is trained.
        chosen: how step size and clip came about, a sentence.
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
    def unit(self) -> str:
        silos, records = self.person
        return "record" if self.person == (1, 1) else f"person ({records} records in each of {silos} silos)"

    @property
    def named(self) -> dict[str, PrivacyPlan]:
        """Plans as the ledger has them."""
        alike = self.task.config.silos.scheme == "iid"
        return {ledger.ANY: self.plans[0]} if alike else dict(zip(self.data.silos, self.plans, strict=True))


def release_rules(config: Experiment, algorithm: str) -> Iterator[Rule]:
    """What a release refuses since a record would show in it beside the messages."""
    own, steps, kind, readings = config.dataset, config.preprocess, ALGORITHMS[algorithm], config.readings
    assert not isinstance(own, str)
    allowed = "must be column or iid for a release: one label would decide which silo holds other records"
    yield config.silos.scheme not in ("column", "iid"), "silos.scheme", config.silos.scheme, allowed
    allowed = "must be refuse or mean for a release: a record with a gap would change the number of records"
    yield own.missing == "drop", "dataset.missing", own.missing, allowed
    how = steps.standardise
    allowed = "must be bounds or none for a release: means and variances have no noise"
    yield how not in ("bounds", "none", False), "preprocess.standardise", how, allowed
    yield steps.pca is not None, "preprocess.pca", steps.pca, "must be left out for a release: components have no noise"
    filled = own.missing == "mean" and how != "bounds"
    allowed = "must be bounds where missing values are filled in: else a mean of records without noise is used"
    yield filled, "preprocess.standardise", how, allowed
    yield readings.resample, "readings.resample", True, "must be false for a release"
    yield readings.clip_rule != "grid", "readings.clip_rule", readings.clip_rule, "must be grid for a release"
    yield readings.summation != "ideal", "readings.summation", readings.summation, "must be ideal for a release"
    allowed = f"must release one model with noise of its own: {algorithm} "
    schedule = config.algorithms[algorithm].schedule
    where = f"algorithms.{algorithm}.schedule"
    yield schedule is not None, where, schedule, "must be left out for a release, whose step size is given"
    yield kind.alone, "--algorithm", algorithm, allowed + "trains a model for each silo"
    yield kind.trust == "shuffler", "--algorithm", algorithm, allowed + "needs a shuffler, which a release has not"


def planned(
    name: str, config: Experiment, algorithm: str, epsilon: float, setting: str, point: dict, chosen: str, person: bool
) -> Release:
    """The release of one model; ConfigError where no noise keeps the promise."""
    options = config.algorithms[algorithm].model_copy(update={"private": "private"})
    readings = config.readings.model_copy(update={"noise": "calibrated", "records": _records(config)})
    update = {"algorithms": {algorithm: options}, "epsilons": [epsilon], "readings": readings, "alternatives": []}
    task = Task(name, config.model_copy(update=update), algorithm, _setting(config, setting))
    data = described(config)
    held = (dataset_of(config).held or (1, 1)) if person else (1, 1)
    ((_, (plans,), _),) = stacks(task, _row(point, epsilon), list(data.silos.values()))
    if held != (1, 1):
        plans = _for_person(plans, epsilon, held)
    worst = max(delivered(plan).upper for plan in plans)
    if any(plan.assumption for plan in plans) or not worst <= epsilon:
        raise ConfigError(
            f"command line: --epsilon: {epsilon:g}: {algorithm} is not proven to keep it (up to {worst:g})"
        )
    return Release(task, point, chosen, data, plans, held)


def _row(point: dict[str, Any], epsilon: float) -> pd.DataFrame:
    return pd.DataFrame([point | {"epsilon": epsilon}])[POINT]


def _records(config: Experiment) -> str:
    # Silos that are cut at random are others in every release, and so have one plan.
    return "equal" if config.silos.scheme == "iid" else config.readings.records


def _setting(config: Experiment, name: str) -> Any:
    return next(setting for setting in config.settings if setting.name == name)


def _for_person(plans: list[PrivacyPlan], epsilon: float, held: tuple[int, int]) -> list[PrivacyPlan]:
    """The plans with noise scaled up until all records of a person together cost at most ε."""

    def scaled(factor: float) -> Any:
        return [
            dataclasses.replace(
                plan, releases=tuple(dataclasses.replace(r, noise=r.noise * factor) for r in plan.releases)
            )
            for plan in plans
        ]

    if math.isinf(persons_epsilon(list(dict.fromkeys(scaled(1e6))), *held)):
        raise ConfigError(f"command line: --person: {held[1]} records of a person in a silo: must be fewer than it has")

    def measure(scaled_plans: Any, _: float) -> float:
        return persons_epsilon(list(dict.fromkeys(scaled_plans)), *held)

    return scaled(noise_multiplier(scaled, epsilon, plans[0].budget.delta, tolerance=1e-3, measure=measure))


def described(config: Experiment) -> Described:
    """What the run file and the header of its data file say."""
    own, dataset = config.dataset, dataset_of(config)
    assert not isinstance(own, str)
    file, frame = own_file(own), read_frame(Path(own.file))
    numbers = set(dataset.standardise_columns or ())
    words = [name for name in file.features(frame) if name not in numbers]
    categories = {name: categories_of(frame[name], file)[0] for name in words}
    pairs: dict[str, tuple[str, str | None]] = {name: (name, None) for name in numbers}
    pairs |= {f"{name}={category}": (name, category) for name in words for category in categories[name]}
    data = dataset.load()
    if dataset.silo_records is None:
        count = number_of_silos(config)
        silos = {str(number + 1): (dataset.records + count - 1 - number) // count for number in range(count)}
    else:
        codes, names = coded(frame[own.silo])
        least = config.silos.least or 1
        silos = {name: int(n) for name, n in zip(names, np.bincount(codes), strict=True) if n >= least}
    features = [pairs[name] for name in data.feature_names]
    return Described(tuple(map(str, frame)), features, categories, list(data.class_names) or None, silos)


def uncovered(config: Experiment, run_file: Path, asked: "Release") -> list[str]:
    """Facts that were read off the records without noise, and that no ε counts."""
    own, facts = config.dataset, []
    assert not isinstance(own, str)
    marked = sum(MARK in line for line in run_file.read_text(encoding="utf-8").splitlines())
    if marked:
        facts.append(f"{marked} lines of {run_file.name} marked `{MARK}`")
    elif config.preprocess.bounds and config.preprocess.bounds_from == "file":
        facts.append("bounds (bounds_from: file)")
    if undeclared := sorted(set(asked.data.categories) - set(own.categories)):
        facts.append(f"categories of {', '.join(undeclared)}")
    if own.classes is None and asked.data.classes is not None:
        facts.append(f"classes of {own.target}")
    if asked.person != (1, 1):
        facts.append("the largest numbers of records and silos of a person")
    return facts


def trained(asked: Release, run: Run, secret: SecretStreams) -> np.ndarray:
    """Weights (d,) after all rounds on all records; they may not be finite. BrokenPlan as in training."""
    task, config = asked.task, asked.task.config
    data = dataset_of(config).load()
    nothing = np.zeros(0, dtype=np.int64)
    if len(data.silo):
        members = [np.flatnonzero(data.silo == silo) for silo in range(len(asked.data.silos))]
    else:
        order = secret.generator("silos of records").permutation(len(data.y))
        members = [np.sort(part) for part in np.array_split(order, len(asked.data.silos))]
    part = Partition(tuple((records, nothing) for records in members))
    run = run.model_copy(update={"dtype": "float64", "device": "cpu"})
    config = config.model_copy(update={"device": None})
    prepared = hand_over(fitted_records(data, config, task.readings, part), config, part, run)
    model = build_model(config, prepared)
    start = torch.from_numpy(model.initial(secret.generator("initial"))).to(prepared.train[0][0])
    trainer = Trainer(task, prepared, model, regulariser(config), start, secret.child("draws"), secret.child("sent"))
    algorithm = task.make(int(asked.point["phase_length"]), config.epsilons[0], min(prepared.sizes))
    cohort, everyone = task.setting.participants or task.setting.M, list(range(len(asked.data.silos)))
    row = _row(asked.point, config.epsilons[0])
    weights, _ = trainer.weights(algorithm, row, [asked.plans], everyone, trainer.sent, cohort, None)
    return weights[0].double().numpy()


def lattice(asked: Release) -> float:
    """The step that released weights are rounded to: a power of two, `LATTICE` of the least noise of a message in them.

    Where noise is float64 and not a real Gaussian shows in a weight's last bits, which this takes away.
    """
    step, clip = asked.point["stepsize"], asked.point["clip"]
    least = min(kind.noise for plan in asked.plans for kind in plan.releases if kind.count)
    return 2.0 ** math.floor(math.log2(least * clip * step / math.sqrt(asked.task.setting.M) * LATTICE))


def audited(asked: Release) -> dict[str, Any]:
    """What an audit of this configuration shows, at the smallest silo's plan; its streams are public."""
    plan = min(asked.plans, key=lambda plan: plan.budget.n)
    algorithm = asked.task.make(int(asked.point["phase_length"]), plan.budget.epsilon or 0.0, plan.budget.n)
    runs = int(np.clip(_AUDITED // max(release.drawn for release in plan.releases), 100, 1000))
    (row,) = point_rows(algorithm, [plan], runs, Streams(0).child("release"), tested=min(runs, 60))
    return row


def model_of(asked: Release, weights: np.ndarray) -> ReleasedModel:
    """The weights, rounded, with all that a prediction needs."""
    config, step = asked.task.config, lattice(asked)
    own, budget = config.dataset, max(asked.plans, key=lambda plan: plan.budget.delta).budget
    assert not isinstance(own, str)
    about = {
        "model": config.model.model_dump(mode="json"),
        "features": asked.data.features,
        "categories": asked.data.categories,
        "bounds": config.preprocess.bounds,
        "constant_column": config.preprocess.constant_column,
        "missing": own.missing,
        "target": own.target,
        "classes": asked.data.classes,
        "silos": list(asked.data.silos),
        "algorithm": asked.task.algorithm,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "unit": asked.unit,
    }
    return ReleasedModel(np.round(weights / step) * step, about)


def card(asked: Release, run: Run, **facts: Any) -> str:
    """The text of the card beside the model; no number in it is computed from records but the audit's public runs."""
    template = Path(__file__).with_name("release_card.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(template).render(asked=asked, run=run, **facts)


def make(asked: Release, run: Run) -> np.ndarray:
    """The weights of one model, from a secret that ends with the call."""
    return trained(asked, run, secret_streams())
