"""What the configuration models alone cannot know: registered names, M ≤ N, K ≤ n, a finite clip if noise is added."""

import functools
import itertools
import math
import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from silodp.algorithms import ALGORITHMS
from silodp.config.errors import ConfigError, project_root, shown
from silodp.config.experiment import Experiment
from silodp.config.loading import REPLACED, Resolved, explain, located, merge, read_experiment, read_yaml
from silodp.config.run import Run
from silodp.config.types import NAME
from silodp.datasets import DATASETS, Dataset
from silodp.experiments import plugins
from silodp.experiments.guard import unproven
from silodp.experiments.own_data import check_own, own_sizes
from silodp.experiments.race import check_race
from silodp.experiments.schedules import participation, prescribe
from silodp.experiments.task import Task, dimension
from silodp.federation.data_of import dataset_of
from silodp.theory.convex.schedules import SCHEDULES


def check(name: str, experiment: Experiment, place: Callable[[str], str]) -> None:
    """What the model alone cannot know: registered names, M ≤ N, K ≤ n, a finite clip for private training.

    Args:
        name: the experiment's.
        experiment: the experiment.
        place: key -> "file: key" for messages.

    Raises:
        ConfigError: as `load`.
    """

    def fail(key: str, value: object, allowed: str) -> NoReturn:
        raise ConfigError(f"{place(key)}: {shown(value)}: {allowed}")

    if isinstance(experiment.dataset, str) and experiment.dataset not in DATASETS:
        fail("dataset", experiment.dataset, f"must be one of {', '.join(sorted(DATASETS))}")
    for algorithm, options in experiment.algorithms.items():
        if algorithm not in ALGORITHMS:
            fail(
                f"algorithms.{algorithm}",
                algorithm,
                f"no such algorithm: must be one of {', '.join(sorted(ALGORITHMS))}",
            )
        clips = options.clips or experiment.clips
        if options.private != "non_private" and all(math.isinf(clip) for clip in clips):
            key = f"algorithms.{algorithm}.clips" if options.clips else "clips"
            fail(key, clips, "private training needs a finite clip threshold")
        _check_parameters(name, experiment, algorithm, fail)
    for number, alternative in enumerate(experiment.alternatives):
        for algorithm in alternative.algorithms or []:
            if algorithm not in experiment.algorithms:
                known = ", ".join(experiment.algorithms)
                fail(f"alternatives[{number}].algorithms", algorithm, f"must be one of the experiment's: {known}")
    try:
        dataset = dataset_of(experiment)
    except ValueError as error:
        raise ConfigError(f"{place('dataset')}: {error}") from None
    check_own(experiment, dataset, fail)
    regression = dataset.task == "regression"
    if regression != (experiment.model.name in ("linear", "absolute")):
        fail("model", experiment.model.name, f"must fit the task of {experiment.data_name}, which is {dataset.task}")
    if regression != (experiment.label == "target"):
        fail("label", experiment.label, f"must be {'target' if regression else 'class or parity'} for {dataset.task}")
    if dataset.images != (experiment.model.name == "convnet"):
        allowed = "must be convnet" if dataset.images else "convnet needs images"
        fail("model", experiment.model.name, f"{allowed}: the records of {experiment.data_name} are its input")
    steps = experiment.preprocess
    if dataset.images and (steps.pca or steps.constant_column):
        fail(
            "preprocess", steps.model_dump(), f"pca and constant_column are not for images, as {experiment.data_name}'s"
        )
    classes = 2 if experiment.label == "parity" else len(dataset.class_counts or ())
    if experiment.model.name in ("logistic", "sigmoid") and classes != 2:
        fail(
            "model",
            experiment.model.name,
            f"needs two classes, {experiment.data_name} has {classes}; softmax takes any number",
        )
    _check_silos(experiment, dataset, fail)
    check_race(experiment, fail)
    silos, smallest = _silo_sizes(experiment, dataset, fail)
    least = 2 if experiment.delta == "1/n^2" else 1
    if smallest < least:
        share = experiment.silos.train_share
        fail("silos.train_share", share, f"must leave at least {least} training records in each silo, not {smallest}")
    own = own_sizes(experiment, dataset)
    if (
        not experiment.silos.official_test
        and own is None
        and _each(experiment, dataset) <= smallest // _parts(experiment)
    ):
        share = experiment.silos.train_share
        fail("silos.train_share", share, "must leave at least one test record in each silo")
    for index, setting in enumerate(experiment.settings):
        if silos < setting.M:
            fail(f"settings[{index}].M", setting.M, f"must be at most N = {silos}, the number of silos")
        values = setting.participants or [setting.M]
        if silos < max(values):
            fail(f"settings[{index}].participants", values, f"must be at most N = {silos}, the number of silos")
        if round(participation(setting)) != setting.M:
            mean = participation(setting)
            fail(f"settings[{index}].M", setting.M, f"must be the harmonic mean of participants, {mean:.4g}, rounded")
    _check_features(experiment, dataset, silos * smallest, fail)
    _check_options(experiment, silos, smallest, fail)
    if experiment.batch_records is not None and experiment.batch_records > smallest:
        fail("batch_records", experiment.batch_records, f"K must be at most n = {smallest}, the records of a silo")
    found = unproven(name, experiment, own or [smallest] * silos)
    if found is not None:
        fail("allow_unproven", experiment.allow_unproven, found)


def _check_parameters(
    name: str, experiment: Experiment, algorithm: str, fail: Callable[[str, object, str], NoReturn]
) -> None:
    """Parameters of an algorithm that no key says: those that it has, and values that it takes."""
    given = experiment.algorithms[algorithm].options
    key = f"algorithms.{algorithm}.options"
    task = Task(name, experiment, algorithm, experiment.settings[0])
    for parameter in given:
        if parameter not in task.own_parameters():
            known = ", ".join(task.own_parameters()) or "none"
            fail(f"{key}.{parameter}", given[parameter], f"parameters of {algorithm} that no other key says: {known}")
    if plugins.own("silodp.algorithms", algorithm):
        try:
            task.make(experiment.phase_lengths[0])
        except (TypeError, ValueError) as error:
            fail(key, given, f"{algorithm} is not made: {error}")


def _check_features(
    experiment: Experiment, dataset: Dataset, records: int, fail: Callable[[str, object, str], NoReturn]
) -> None:
    """No more components than the records have features, or than there are training records."""
    pca = experiment.preprocess.pca
    most = min(dataset.features, records)
    if pca is not None and pca > most:
        fail(
            "preprocess.pca", pca, f"must be at most {most}, the features of {experiment.data_name} or training records"
        )


def _check_options(
    experiment: Experiment, silos: int, smallest: int, fail: Callable[[str, object, str], NoReturn]
) -> None:
    """What the convex paper's algorithms are told: stages that fill R, schedules whose assumptions hold at every ε."""
    without = next((name for name in experiment.algorithms if not ALGORITHMS[name].proximal), None)
    if experiment.radius is not None and without:
        fail("radius", experiment.radius, f"{without} does not project: must be left out, or {without} be")
    _check_proximal(experiment, silos, smallest, fail)
    delta = experiment.delta_of(smallest)
    for name, options in experiment.algorithms.items():
        key = f"algorithms.{name}"
        heeds = any(field.name == "noise" for field in fields(ALGORITHMS[name]))
        if not heeds and options.noise not in ("moments", "calibrated"):
            fail(f"{key}.noise", options.noise, f"must be moments or calibrated: {name} has one formula of its own")
        for setting in experiment.settings if options.stages else []:
            total = sum(stage.rounds for stage in options.stages)
            if total != setting.R:
                fail(f"{key}.stages", total, f"rounds of the stages must add up to R = {setting.R}")
        if options.schedule is None:
            continue
        schedules = ALGORITHMS[name].schedules
        if options.schedule not in schedules:
            known = ", ".join(one for one in SCHEDULES if one in schedules) or "none"
            fail(f"{key}.schedule", options.schedule, f"schedules of {name}: {known}")
        if options.private != "private":
            fail(f"{key}.private", options.private, "must be private, as the schedule's theorem is about an epsilon")
        if len(options.clips or experiment.clips) != 1:
            fail(f"{key}.clips", options.clips or experiment.clips, "must be one value, the theorem's L")
        for setting, epsilon in itertools.product(experiment.settings, experiment.epsilons):
            try:
                prescribe(experiment, name, setting, N=silos, n=smallest, epsilon=epsilon, delta=delta)
            except ValueError as error:
                fail(f"{key}.schedule", options.schedule, str(error))


def _check_proximal(
    experiment: Experiment, silos: int, smallest: int, fail: Callable[[str, object, str], NoReturn]
) -> None:
    """f¹ given once and for algorithms that heed it; sums over silos that add the same noise; theorems that hold."""
    penalty = experiment.regulariser
    if penalty is not None and penalty.name != "none":
        if penalty.name == "ball" and experiment.radius is not None:
            fail("regulariser", penalty.name, "must not be ball beside radius, which says the same")
        without = next((name for name in experiment.algorithms if not ALGORITHMS[name].proximal), None)
        if without:
            fail("regulariser", penalty.name, f"{without} has no proximal step: must be none, or {without} be left out")
    if any(readings.summation == "shuffled" for readings in experiment.variants().values()):
        _check_shuffled(experiment, fail)
    for name, options in experiment.algorithms.items():
        if ALGORITHMS[name].trust != "nothing" and options.private != "non_private":
            for index, setting in enumerate(experiment.settings):
                if setting.participants:
                    allowed = f"must be left out for {name}, whose noise is made for M silos in every round"
                    fail(f"settings[{index}].participants", setting.participants, allowed)
            if any(readings.records == "own" for readings in experiment.variants().values()):
                fail("readings.records", "own", f"must be equal for {name}: all silos have to add the same noise")
        if options.noise == "theorem" and options.private != "non_private":
            _check_theorem(experiment, name, silos, smallest, fail)


def _check_shuffled(experiment: Experiment, fail: Callable[[str, object, str], NoReturn]) -> None:
    """A shuffled sum is for the SDP algorithms, a known d, and noise that nothing else chooses."""
    key = "readings.summation"
    summed = [options for name, options in experiment.algorithms.items() if ALGORITHMS[name].trust == "sum"]
    for readings in experiment.variants().values():
        if readings.summation != "shuffled" or not summed:
            continue
        if readings.clipping != "record":
            fail(key, "shuffled", f"must be ideal where clipping is {readings.clipping}")
        if readings.noise != "paper" or any(options.noise != "moments" for options in summed):
            fail(key, "shuffled", "must be ideal where noise is given: the protocol's own is for the claimed epsilon")
    try:
        dimension(experiment)
    except ValueError as error:
        fail(key, "shuffled", str(error))


def _check_theorem(
    experiment: Experiment, name: str, silos: int, smallest: int, fail: Callable[[str, object, str], NoReturn]
) -> None:
    """The theorem's conditions on ε and K at every point."""
    own = experiment.algorithms[name]
    for label, setting in itertools.product(experiment.variants(), experiment.settings):
        phases = own.phase_lengths or setting.phase_lengths or experiment.phase_lengths
        task = Task("", experiment, name, setting, label)
        for epsilon, phase_length in itertools.product(experiment.epsilons, phases):
            try:
                task.plans(epsilon, phase_length, [smallest] * silos)
            except ValueError as error:
                fail(f"algorithms.{name}.noise", "theorem", str(error))


def _check_silos(experiment: Experiment, dataset: Dataset, fail: Callable[[str, object, str], NoReturn]) -> None:
    """Options that do not go with the scheme, as `silos.partition` would find out in a job."""
    plan = experiment.silos
    counts = dataset.counts(plan.official_test)
    if plan.mixed and plan.scheme != "digit_pairs":
        fail("silos.mixed", plan.mixed, f"must be 0 for {plan.scheme}; only digit_pairs can mix its silos")
    for key in ("per_class", "official_test"):
        value = getattr(plan, key)
        if value and plan.scheme not in ("digit_pairs", "by_class"):
            fail(f"silos.{key}", value, f"needs silos cut by class, not {plan.scheme}")
    if plan.official_test and any(readings.resample for readings in experiment.variants().values()):
        fail("silos.official_test", True, "must be false where a reading resamples, which draws anew before a split")
    for readings in experiment.variants().values():
        if readings.split == "per_silo" and plan.scheme != "digit_pairs":
            fail("readings.split", "per_silo", f"must be by_record for {plan.scheme}, whose silos share no record")
        if readings.standardise == "silo" and (plan.scheme == "digit_pairs" or dataset.images):
            fail("readings.standardise", "silo", "must be train or all where silos share records, and for images")
    if plan.official_test and dataset.test_counts is None:
        fail("silos.official_test", True, f"must be false: {experiment.data_name} has no test part of its own")
    if plan.per_class and counts and plan.per_class > min(counts):
        fail("silos.per_class", plan.per_class, f"must be at most {min(counts)}, the records of the smallest class")


def _parts(experiment: Experiment) -> int:
    """Equal parts that a silo is put together from: two digits, or one."""
    return 2 if experiment.silos.scheme == "digit_pairs" else 1


def _each(experiment: Experiment, dataset: Dataset) -> int:
    """Records of a part of the smallest silo, before any is put aside for testing."""
    counts = dataset.counts(experiment.silos.official_test)
    if experiment.silos.scheme in ("digit_pairs", "by_class"):
        return experiment.silos.per_class or min(counts or (0,))
    return dataset.records // (experiment.silos.count or 1)


def silo_sizes(experiment: Experiment) -> tuple[int, int]:
    """(N, training records of the smallest silo) of a checked experiment."""

    def fail(key: str, value: object, allowed: str) -> NoReturn:
        raise ConfigError(f"{key}: {shown(value)}: {allowed}")

    return _silo_sizes(experiment, dataset_of(experiment), fail)


def _silo_sizes(
    experiment: Experiment, dataset: Dataset, fail: Callable[[str, object, str], NoReturn]
) -> tuple[int, int]:
    """(N, training records of the smallest silo), from the data set's stated class sizes."""
    plan = experiment.silos
    counts = dataset.counts(plan.official_test)
    if (own := own_sizes(experiment, dataset)) is not None:
        return len(own), min(own)
    if plan.scheme == "digit_pairs":
        if not counts or len(counts) != 10:
            fail("silos.scheme", plan.scheme, "needs a data set with ten classes")
        if plan.count not in (None, 25):
            fail("silos.count", plan.count, "must be 25 (or left out) for digit_pairs")
        each = plan.per_class or min(counts)
        return 25, 2 * math.floor(plan.train_share * each + 1e-9)
    if plan.scheme == "by_class":
        if not counts:
            fail("silos.scheme", plan.scheme, "needs a data set with classes")
        if plan.count not in (None, len(counts)):
            fail("silos.count", plan.count, f"must be {len(counts)} (or left out), one class a silo")
        each = plan.per_class or min(counts)
        return len(counts), math.floor(plan.train_share * each + 1e-9)
    if plan.count is None:
        fail("silos.count", None, f"must be given for {plan.scheme}")
    most = dataset.records // 2
    if plan.count > most:
        fail("silos.count", plan.count, f"must be at most {most}, half the records of {experiment.data_name}")
    return plan.count, math.floor(plan.train_share * (dataset.records // plan.count) + 1e-9)


def _place(run_file: Path, source: Path, name: str, overrides: dict, key: str) -> str:
    """File and key to name in a message: the run file's where it sets the key, else the experiment's."""
    here = _within(overrides, tuple(key.split("[")[0].split(".")))
    return f"{run_file}: experiments.{name}.{key}" if here else f"{source}: {key}"


def _beside(error: ConfigError, run_file: Path, overrides: dict | None) -> ConfigError:
    """The error with the run file named too: what it overrides may be at odds with what it does not."""
    text = str(error)
    return (
        ConfigError(f"{text} (beside what {run_file} overrides)") if overrides and str(run_file) not in text else error
    )


def _within(overrides: Any, location: tuple) -> bool:
    """Whether what stands at `location` comes from the run file, so that an error is named after the right file."""
    for part in location:
        if not isinstance(overrides, dict):
            break
        if part not in overrides:
            return False
        overrides = None if part in REPLACED else overrides[part]
    return bool(location)


def gpu() -> bool:
    """Whether jobs may count on a CUDA device: SILODP_CUDA (0 or 1) where it is set, else whether this machine has one.

    A cluster's login node has none while its other nodes do; there the variable says so.
    """
    said = os.environ.get("SILODP_CUDA", "")
    if said not in ("", "0", "1"):
        raise ConfigError(f"environment: SILODP_CUDA: {said!r}: must be 0 or 1")
    return said == "1" if said else Path("/dev/nvidiactl").exists()


def load(path: Path | str, root: Path | None = None) -> Resolved:
    """Read and check the run file at `path` and the experiments it names.

    An experiment with a `device: cuda` of its own is left out where there is no `gpu()`.

    Raises:
        ConfigError: one line naming file, key, value and what is allowed.
    """
    path = Path(path)
    folder = (root or project_root()) / "config" / "experiments"
    raw = read_yaml(path)
    try:
        run = Run.model_validate(raw)
    except ValidationError as error:
        raise explain(error, path) from None
    own = plugins.use(run.plugins, path)
    experiments = {}
    for name, overrides in run.experiments.items():
        source = folder / f"{name}.yaml"
        # A name becomes a part of paths and commands.
        known = sorted(file.stem for file in folder.glob("*.yaml") if re.match(NAME, file.stem))
        # One on a file of one's own may stand in the run file as a whole, as each does in the record of a run.
        whole = name not in known and re.match(NAME, name) and isinstance((overrides or {}).get("dataset"), dict)
        if name not in known and not whole:
            raise ConfigError(f"{path}: experiments.{name}: no such experiment: must be one of {', '.join(known)}")
        source = path if whole else source
        # A resolved run's config.json says every key: what it leaves out of a mapping was taken away.
        whole = whole or set(Experiment.model_fields) <= set(overrides or {})
        merged = located(merge({} if whole else read_experiment(folder, source), overrides or {}), path)
        try:
            experiments[name] = Experiment.model_validate(merged)
            check(name, experiments[name], functools.partial(_place, path, source, name, overrides or {}))
        except ValidationError as error:
            here = _within(overrides, error.errors()[0]["loc"])
            wrong = explain(error, path if here else source, ("experiments", name) if here else ())
            raise _beside(wrong, path, overrides) from None
        except ConfigError as error:
            raise _beside(error, path, overrides) from None
    without = [name for name, one in experiments.items() if (one.device or "").startswith("cuda") and not gpu()]
    kept = {name: one for name, one in experiments.items() if name not in without}
    if not kept:
        raise ConfigError(f"{path}: experiments: {', '.join(without)}: must be run where there is a CUDA device")
    return Resolved(path, run, kept, without, own)
