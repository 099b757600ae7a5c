"""Rules for an experiment on a user's own file, checked before any job starts."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from silodp.config.errors import Rule
from silodp.config.experiment import Experiment
from silodp.datasets import Dataset


def own_sizes(experiment: Experiment, dataset: Dataset) -> list[int] | None:
    """Training records of each silo where the data name the silos; None where silos are cut from the records."""
    if dataset.silo_records is None:
        return None
    return [math.floor(experiment.silos.train_share * records + 1e-9) for records in dataset.silo_records]


def own_rules(experiment: Experiment, dataset: Dataset) -> Iterator[Rule]:
    """Silos by a column or by Dirichlet shares, bounds, and what of readings and preprocessing goes with them."""
    own, plan = experiment.dataset, experiment.silos
    scheme, dirichlet, sizes = plan.scheme, plan.scheme == "dirichlet", dataset.silo_records
    allowed = "needs data that name silos: dataset.silo must be given, or another scheme"
    yield scheme == "column" and sizes is None, "silos.scheme", scheme, allowed
    named = not isinstance(own, str) and own.silo is not None
    yield scheme != "column" and named, "silos.scheme", scheme, "must be column, or silo be left out of dataset"
    yield dirichlet and isinstance(own, str) and not dataset.class_counts, "silos.scheme", scheme, "needs classes"
    missing = plan.count is None or plan.alpha is None
    yield dirichlet and missing, "silos.scheme", scheme, "needs silos.count and silos.alpha"
    yield not dirichlet and plan.alpha is not None, "silos.alpha", plan.alpha, f"must be left out for {scheme}"
    yield scheme != "column" and plan.least is not None, "silos.least", plan.least, f"must be left out for {scheme}"
    yield from _bound_rules(experiment, dataset)
    if sizes is not None:
        resampled = any(readings.resample for readings in experiment.variants().values())
        yield resampled, "readings.resample", True, f"must be false for {scheme}, whose silos have their own records"
        records, least = min(sizes, default=0), 2 if experiment.delta == "1/n^2" else 1
        train = math.floor(plan.train_share * records + 1e-9)
        allowed = f"must leave out silos that have not {least} records to train on and one to test on"
        allowed = f"the smallest silo has {records} records: {allowed}"
        yield train < least or train == records, "silos.least", plan.least, allowed


def _bound_rules(experiment: Experiment, dataset: Dataset) -> Iterator[Rule]:
    steps, own, columns = experiment.preprocess, experiment.dataset, dataset.standardise_columns
    how, given, key = steps.standardise, sorted(steps.bounds), "preprocess.standardise"
    unnamed = how in ("bounds", "silo") and (dataset.images or columns is None)
    yield unnamed, key, how, "needs data whose columns are known by name"
    yield how == "silo" and dataset.silo_records is None, key, how, "needs silos of scheme column or dirichlet"
    key = "preprocess.bounds"
    yield how != "bounds" and bool(given), key, given, "must be left out unless standardise is bounds"
    target = [own.target] if dataset.task == "regression" and not isinstance(own, str) else []
    wanted = [*(columns or ()), *target] if how == "bounds" else []
    for name in wanted:
        yield name not in given, key, given, f"column {name!r}: lowest and highest value must be given"
    booleans = [] if isinstance(own, str) else [name for name, one in own.columns.items() if one.type == "boolean"]
    for name, (low, high) in steps.bounds.items():
        yield name not in wanted + booleans, key, name, f"must be a column of numbers: {', '.join(wanted)}"
        yield not low < high, key, [low, high], f"column {name!r}: the lowest value must be below the highest"


def preprocessing_guarantee(steps: Mapping[str, Any], missing: str, scheme: str = "column") -> str:
    """Whether `preprocess` (steps), the rule for missing values and the scheme of silos are private, in sentences."""
    told = _preprocessing(steps, missing)
    told += " Categories and classes that the run file does not declare are read off the records: not private."
    if missing == "drop":
        told += " Dropped records change the sizes of silos, which is not private."
    if scheme not in ("column", "iid"):
        told += " Labels decide which silo holds a record, which is not private: one label can move others."
    return told


def _preprocessing(steps: Mapping[str, Any], missing: str) -> str:
    how = steps.get("standardise", True)
    if steps.get("pca") is not None:
        return "Preprocessing is not private: principal components are made from training records without noise."
    if how == "bounds" and steps.get("bounds_from") == "file":
        return (
            "Preprocessing is not private: bounds were read off the records, rounded outwards. With bounds that are "
            "known beforehand (bounds_from: knowledge) it would be."
        )
    if how == "bounds":
        return "Preprocessing is private: features are cut to bounds that were known beforehand."
    if how in (False, "none"):
        filled = " Not so what fills in missing values, a mean over training records." if missing == "mean" else ""
        return f"Features are not preprocessed.{filled}"
    return "Preprocessing is not private: means and variances come from training records without noise."
