"""What the configuration models alone cannot know: registered names, M ≤ N, K ≤ n, a finite clip if noise is added."""

import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from pydantic import ValidationError

from silodp.algorithms import ALGORITHMS
from silodp.config.errors import ConfigError, Rule, project_root, show_value, suggest_name
from silodp.config.experiment import Experiment
from silodp.config.loading import (
    Resolved,
    explain,
    file_and_part,
    find_experiment,
    holder,
    key_of,
    layers_of,
    located,
    merge_layers,
    points_in_file,
    read_run,
)
from silodp.config.models import CONTRACTING
from silodp.config.run_keys import Run
from silodp.config.types import NAME
from silodp.datasets import DATASETS, Dataset
from silodp.datasets.own.rules import own_rules, own_sizes
from silodp.experiments.devices import gpu_gain
from silodp.experiments.prescribed_points import participation, prescribe
from silodp.experiments.race import race_rules
from silodp.experiments.task import Task, dimension
from silodp.experiments.true_epsilon_guard import unproven
from silodp.extending import plugins
from silodp.partition.experiment_data import dataset_of, number_of_silos
from silodp.theory.convex.schedules import SCHEDULES


def check(name: str, experiment: Experiment, place: Callable[[str], str]) -> None:
    """Hold an experiment against the registries and its data set; ConfigError as `load`.

    `place` makes "file: key" of a key, for messages.
    """

    def refuse(rules: Iterator[Rule]) -> None:
        for wrong, key, value, allowed in rules:
            if wrong:
                raise ConfigError(f"{place(key)}: {show_value(value)}: {allowed}")

    refuse(_name_rules(name, experiment))
    try:
        dataset = dataset_of(experiment)
    except ValueError as error:
        raise ConfigError(f"{place('dataset')}: {error}") from None
    refuse(_rules(name, experiment, dataset))


# Rules are made one after the other, so that a rule may rely on those before it.


def _name_rules(name: str, experiment: Experiment) -> Iterator[Rule]:
    data = experiment.dataset
    allowed = f"must be one of {_listed(DATASETS)}{suggest_name(data, DATASETS)}"
    yield isinstance(data, str) and data not in DATASETS, "dataset", data, allowed
    for algorithm, options in experiment.algorithms.items():
        key, allowed = f"algorithms.{algorithm}", _no_such(algorithm)
        yield algorithm not in ALGORITHMS, key, algorithm, allowed
        clips, where = (options.clips, f"{key}.clips") if options.clips else (experiment.clips, "clips")
        endless = options.private != "non_private" and all(math.isinf(clip) for clip in clips)
        yield endless, where, clips, "private training needs a finite clip threshold"
        task = Task(name, experiment, algorithm, experiment.settings[0])
        for parameter, value in options.options.items():
            known = ", ".join(task.own_parameters()) or "none"
            allowed = f"parameters of {algorithm} that no other key says: {known}"
            yield parameter not in task.own_parameters(), f"{key}.options.{parameter}", value, allowed
        if algorithm in ALGORITHMS.own:
            reason = _refusal(task.make, experiment.phase_lengths[0])
            yield bool(reason), f"{key}.options", options.options, f"{algorithm} is not made: {reason}"
    for number, alternative in enumerate(experiment.alternatives):
        allowed = f"must be one of the experiment's: {', '.join(experiment.algorithms)}"
        for algorithm in alternative.algorithms or []:
            yield algorithm not in experiment.algorithms, f"alternatives[{number}].algorithms", algorithm, allowed


def _no_such(algorithm: str) -> str:
    return f"no such algorithm: must be one of {_listed(ALGORITHMS)}{suggest_name(algorithm, ALGORITHMS)}"


def _listed(registry: Iterable[str]) -> str:
    return ", ".join(sorted(registry))


def _refusal(function: Callable, *arguments: object, **options: object) -> str:
    """What a function says of arguments that it does not take; empty where it takes them."""
    try:
        function(*arguments, **options)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _rules(name: str, experiment: Experiment, dataset: Dataset) -> Iterator[Rule]:
    yield from own_rules(experiment, dataset)
    yield from _model_rules(experiment, dataset)
    yield from _silo_rules(experiment, dataset)
    yield from race_rules(experiment)
    silos, smallest = silo_sizes(experiment)
    least, share = 2 if experiment.delta == "1/n^2" else 1, experiment.silos.train_share
    key, sizes = "silos.train_share", own_sizes(experiment, dataset)
    yield smallest < least, key, share, f"must leave at least {least} training records in each silo, not {smallest}"
    untested = sizes is None and _each(experiment, dataset) <= smallest // _parts(experiment)
    allowed = "must leave at least one test record in each silo"
    yield untested and not experiment.silos.official_test, key, share, allowed
    allowed = f"must be at most N = {silos}, the number of silos"
    for index, setting in enumerate(experiment.settings):
        key, values, mean = f"settings[{index}]", setting.participants or [setting.M], participation(setting)
        yield silos < setting.M, f"{key}.M", setting.M, allowed
        yield silos < max(values), f"{key}.participants", values, allowed
        rounded = f"must be the harmonic mean of participants, {mean:.4g}, rounded"
        yield round(mean) != setting.M, f"{key}.M", setting.M, rounded
    most, pca = min(dataset.features, silos * smallest), experiment.preprocess.pca
    allowed = f"must be at most {most}, the features of {experiment.data_name} or training records"
    yield (pca or 0) > most, "preprocess.pca", pca, allowed
    yield from _objective_rules(experiment)
    yield from _noise_rules(experiment, silos, smallest)
    yield from _schedule_rules(experiment, silos, smallest)
    K, allowed = experiment.batch_records, f"K must be at most n = {smallest}, the records of a silo"
    yield (K or 0) > smallest, "batch_records", K, allowed
    refused = unproven(name, experiment, sizes or [smallest] * silos)
    yield refused is not None, "allow_unproven", experiment.allow_unproven, refused or ""


def _model_rules(experiment: Experiment, dataset: Dataset) -> Iterator[Rule]:
    model, label, data = experiment.model.name, experiment.label, experiment.data_name
    regression, steps = dataset.task == "regression", experiment.preprocess
    allowed = f"must fit the task of {data}, which is {dataset.task}"
    yield regression != (model in ("linear", "absolute")), "model", model, allowed
    allowed = f"must be {'target' if regression else 'class or parity'} for {dataset.task}"
    yield regression != (label == "target"), "label", label, allowed
    allowed = f"{'must be convnet' if dataset.images else 'convnet needs images'}: the records of {data} are its input"
    yield dataset.images != (model == "convnet"), "model", model, allowed
    allowed = f"pca and constant_column are not for images, as {data}'s"
    yield dataset.images and bool(steps.pca or steps.constant_column), "preprocess", steps.model_dump(), allowed
    classes = 2 if label == "parity" else len(dataset.class_counts or ())
    allowed = f"needs two classes, {data} has {classes}; softmax takes any number"
    yield model in ("logistic", "sigmoid") and classes != 2, "model", model, allowed


def _silo_rules(experiment: Experiment, dataset: Dataset) -> Iterator[Rule]:
    plan, readings_run = experiment.silos, experiment.variants().values()
    by_class, counts = plan.scheme in ("digit_pairs", "by_class"), dataset.counts(plan.official_test)
    allowed = f"must be 0 for {plan.scheme}; only digit_pairs can mix its silos"
    yield bool(plan.mixed) and plan.scheme != "digit_pairs", "silos.mixed", plan.mixed, allowed
    for key, value in (("silos.per_class", plan.per_class), ("silos.official_test", plan.official_test)):
        first = key == "silos.per_class" and plan.scheme == "dirichlet" and not experiment.is_own
        yield bool(value) and not (by_class or first), key, value, f"needs silos cut by class, not {plan.scheme}"
    resampled = plan.official_test and any(readings.resample for readings in readings_run)
    allowed = "must be false where a reading resamples, which draws anew before a split"
    yield resampled, "silos.official_test", True, allowed
    for readings in readings_run:
        wrong = readings.split == "per_silo" and plan.scheme != "digit_pairs"
        allowed = f"must be by_record for {plan.scheme}, whose silos share no record"
        yield wrong, "readings.split", "per_silo", allowed
        wrong = readings.standardise == "silo" and (plan.scheme == "digit_pairs" or dataset.images)
        allowed = "must be train or all where silos share records, and for images"
        yield wrong, "readings.standardise", "silo", allowed
    allowed = f"must be false: {experiment.data_name} has no test part of its own"
    yield plan.official_test and dataset.test_counts is None, "silos.official_test", True, allowed
    least = min(counts or (0,))
    allowed = f"must be at most {least}, the records of the smallest class"
    yield bool(counts) and (plan.per_class or 0) > least, "silos.per_class", plan.per_class, allowed
    if dataset.silo_records is not None:
        return
    if by_class:
        pairs = plan.scheme == "digit_pairs"
        wrong, allowed = not counts or (pairs and len(counts) != 10), "ten classes" if pairs else "classes"
        yield wrong, "silos.scheme", plan.scheme, f"needs a data set with {allowed}"
        silos = 25 if pairs else len(counts or ())
        allowed = f"must be {silos} (or left out) for {plan.scheme}"
        yield plan.count not in (None, silos), "silos.count", plan.count, allowed
        return
    yield plan.count is None, "silos.count", None, f"must be given for {plan.scheme}"
    most = dataset.records // 2
    allowed = f"must be at most {most}, half the records of {experiment.data_name}"
    yield (plan.count or 0) > most, "silos.count", plan.count, allowed


def _objective_rules(experiment: Experiment) -> Iterator[Rule]:
    radius, penalty = experiment.radius, experiment.regulariser
    fixed = next((name for name in experiment.algorithms if not ALGORITHMS[name].proximal), None)
    allowed = f"{fixed} does not project: must be left out, or {fixed} be"
    yield bool(radius is not None and fixed), "radius", radius, allowed
    if penalty is not None:
        allowed = f"{fixed} has no proximal step: leave out regulariser or {fixed}"
        yield fixed is not None, "regulariser", penalty.name, allowed


def _noise_rules(experiment: Experiment, silos: int, smallest: int) -> Iterator[Rule]:
    """Sums over silos that add the same noise; shuffled sums of a known d; theorems that hold at every point."""
    variants, key = experiment.variants(), "readings.summation"
    private = {name: options for name, options in experiment.algorithms.items() if options.private != "non_private"}
    summed = [options for name, options in experiment.algorithms.items() if ALGORITHMS[name].trust == "sum"]
    given = any(options.noise != "moments" for options in summed)
    for readings in variants.values():
        wrong = readings.noise_at != "step" and experiment.model.name not in CONTRACTING
        allowed = f"must be step for {experiment.model.name}, whose local steps may expand distances"
        yield wrong, "readings.noise_at", readings.noise_at, allowed
        if readings.summation == "shuffled":
            wrong = bool(summed) and readings.clipping != "record"
            yield wrong, key, "shuffled", f"must be ideal where clipping is {readings.clipping}"
            allowed = "must be ideal where noise is given: the protocol's own is for the claimed epsilon"
            yield bool(summed) and (given or readings.noise != "paper"), key, "shuffled", allowed
            reason = _refusal(dimension, experiment)
            yield bool(reason), key, "shuffled", reason
    for name, options in private.items():
        for index, setting in enumerate(experiment.settings if ALGORITHMS[name].trust != "nothing" else []):
            allowed = f"must be left out for {name}, whose noise is made for M silos in every round"
            yield bool(setting.participants), f"settings[{index}].participants", setting.participants, allowed
        allowed = f"must be equal for {name}: all silos have to add the same noise"
        for readings in variants.values() if ALGORITHMS[name].trust != "nothing" else ():
            yield readings.records != "equal", "readings.records", readings.records, allowed
        points = itertools.product(variants, experiment.settings) if options.noise == "theorem" else ()
        for label, setting in points:
            phases = options.phase_lengths or setting.phase_lengths or experiment.phase_lengths
            task = Task("", experiment, name, setting, label)
            for epsilon, phase_length in itertools.product(experiment.epsilons, phases):
                reason = _refusal(task.plans, epsilon, phase_length, [smallest] * silos)
                yield bool(reason), f"algorithms.{name}.noise", "theorem", reason


def _schedule_rules(experiment: Experiment, silos: int, smallest: int) -> Iterator[Rule]:
    """Formulas of noise that an algorithm has, stages that fill R, schedules whose assumptions hold at every ε."""
    delta = experiment.delta_of(smallest)
    for name, options in experiment.algorithms.items():
        key, schedule, schedules = f"algorithms.{name}", options.schedule, ALGORITHMS[name].schedules
        heeds = any(field.name == "noise" for field in fields(ALGORITHMS[name]))
        allowed = f"must be moments or calibrated: {name} has one formula of its own"
        yield not heeds and options.noise not in ("moments", "calibrated"), f"{key}.noise", options.noise, allowed
        for setting in experiment.settings if options.stages else []:
            total = sum(stage.rounds for stage in options.stages)
            yield total != setting.R, f"{key}.stages", total, f"rounds of the stages must add up to R = {setting.R}"
        if schedule is None:
            continue
        known = ", ".join(theorem for theorem in SCHEDULES if theorem in schedules) or "none"
        yield schedule not in schedules, f"{key}.schedule", schedule, f"schedules of {name}: {known}"
        allowed = "must be private, as the schedule's theorem is about an epsilon"
        yield options.private != "private", f"{key}.private", options.private, allowed
        clips = options.clips or experiment.clips
        yield len(clips) != 1, f"{key}.clips", clips, "must be one value, the theorem's L"
        for setting, epsilon in itertools.product(experiment.settings, experiment.epsilons):
            budget = {"N": silos, "n": smallest, "epsilon": epsilon, "delta": delta}
            reason = _refusal(prescribe, experiment, name, setting, **budget)
            yield bool(reason), f"{key}.schedule", schedule, reason


def _parts(experiment: Experiment) -> int:
    """Equal parts that a silo is put together from: two digits, or one."""
    return 2 if experiment.silos.scheme == "digit_pairs" else 1


def _each(experiment: Experiment, dataset: Dataset) -> int:
    """Records of a part of the smallest silo, before any is put aside for testing."""
    if experiment.silos.scheme in ("digit_pairs", "by_class"):
        return experiment.silos.per_class or min(dataset.counts(experiment.silos.official_test) or (0,))
    return dataset.records // (experiment.silos.count or 1)


def silo_sizes(experiment: Experiment) -> tuple[int, int]:
    """(N, training records of the smallest silo) of a checked experiment, from the data set's stated class sizes."""
    dataset = dataset_of(experiment)
    if (sizes := own_sizes(experiment, dataset)) is not None:
        return len(sizes), min(sizes)
    share = experiment.silos.train_share
    smallest = _parts(experiment) * math.floor(share * _each(experiment, dataset) + 1e-9)
    return number_of_silos(experiment), smallest


def gpu() -> bool:
    """Whether jobs may count on a CUDA device: SILODP_CUDA (0 or 1) where it is set, else whether this machine has one.

    A cluster's login node has none while its other nodes do; there the variable says so.
    """
    value = os.environ.get("SILODP_CUDA", "")
    if value not in ("", "0", "1"):
        raise ConfigError(f"environment: SILODP_CUDA: {value!r}: must be 0 or 1")
    return value == "1" if value else Path("/dev/nvidiactl").exists()


def load(path: Path | str, root: Path | None = None) -> Resolved:
    """Read and check the run file at `path` and the experiments it names.

    An experiment with a `device: cuda` of its own is left out where there is no `gpu()`, but not from the record of a
    run, whose jobs are planned or done. ConfigError: one line naming file, key, value and what is allowed.
    """
    path = Path(path)
    folder = (root or project_root()) / "config" / "experiments"
    run = read_run(path)
    plugin_files = plugins.activate(run.plugins, path)
    # Of a part the file that holds it.
    file, experiments, recorded = file_and_part(path)[0], {}, set()
    for name, overrides in run.experiments.items():
        layers = [(file, overrides or {})]
        # An experiment that names its data may stand in the run file as a whole, as all do in the record of a run.
        standing = re.match(NAME, name) and "dataset" in (overrides or {})
        # A name becomes a part of paths and commands.
        found = find_experiment(folder, name) if re.match(NAME, name) else None
        if not found and not standing:
            files = (file for file in folder.glob("*.yaml") if re.match(NAME, file.stem))
            known = sorted(point for file in files for point in points_in_file(file))
            allowed = f"must be one of {', '.join(known)}{suggest_name(name, known)}"
            raise ConfigError(f"{file}: experiments.{name}: no such experiment: {allowed}")
        # What the record of a run (config.json) leaves out of a mapping was taken away, so it stands alone too.
        if set(Experiment.model_fields) <= set(overrides or {}):
            recorded.add(name)
        elif found:
            layers += layers_of(folder, *found)
        experiments[name] = _checked(name, layers)
        if experiments[name].is_own and "seed" not in run.model_fields_set:
            allowed = "must be given for data of your own: anybody can make the noise of the default seed again"
            raise ConfigError(f"{file}: seed: missing: {allowed}; `silodp init` draws one")
    asking = {name: experiment for name, experiment in experiments.items() if name not in recorded}
    on_gpu = [name for name, experiment in asking.items() if (experiment.device or "").startswith("cuda")]
    without = on_gpu if on_gpu and not gpu() else []
    kept = {name: _on_a_device(experiment, run) for name, experiment in experiments.items() if name not in without}
    if not kept:
        raise ConfigError(f"{file}: experiments: {', '.join(without)}: must be run where there is a CUDA device")
    return Resolved(path, run, kept, without, plugin_files)


def _on_a_device(experiment: Experiment, run: Run) -> Experiment:
    """The experiment with `device: auto` resolved, by the run file and the expected time alone."""
    if (experiment.device or run.device) != "auto":
        return experiment
    faster = run.gpus and gpu_gain(experiment, silo_sizes(experiment)[1]) > 1
    return experiment.model_copy(update={"device": "cuda" if faster else "cpu"})


def experiment_of(run_file: Path, name: str) -> tuple[Run, Experiment]:
    """The checked run, and its experiment called `name`; ConfigError for a wrong run file or no such experiment."""
    resolved = load(run_file)
    if name not in resolved.experiments:
        allowed = f"must be one of {', '.join(resolved.experiments)}{suggest_name(name, resolved.experiments)}"
        raise ConfigError(f"{run_file}: experiments.{name}: not in this run: {allowed}")
    return resolved.run, resolved.experiments[name]


def _checked(name: str, layers: list[tuple[Path, dict]]) -> Experiment:
    """An experiment from its layers, the run file's overrides on top; an error names the file that holds the value."""
    (run_file, overrides), source = layers[0], layers[min(1, len(layers) - 1)][0]

    def value_place(location: tuple) -> str:
        file = holder(layers, location) or source
        return f"{file}: {key_of(('experiments', name, *location) if file == run_file else location)}"

    algorithms = overrides.get("algorithms") or {}
    if not isinstance(algorithms, dict):
        where = f"{run_file}: experiments.{name}.algorithms"
        raise ConfigError(f"{where}: {show_value(algorithms)}: must be a mapping of algorithms to their options")
    for algorithm, options in algorithms.items():
        # Leaving out an algorithm that nothing has is a slip of the pen.
        if options is None and algorithm not in ALGORITHMS:
            raise ConfigError(f"{run_file}: experiments.{name}.algorithms.{algorithm}: {_no_such(algorithm)}")
    try:
        experiment = Experiment.model_validate(located(merge_layers(layers), run_file))
        check(name, experiment, lambda key: value_place(_location(key)))
    except ValidationError as error:
        raise explain(error, value_place) from None
    except ConfigError as error:
        # What the run file overrides may be at odds with what it does not.
        beside = f" (beside what {run_file} overrides)" if overrides and str(run_file) not in str(error) else ""
        raise ConfigError(f"{error}{beside}") from None
    return experiment


def _location(key: str) -> tuple[str | int, ...]:
    return tuple(int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", key))
