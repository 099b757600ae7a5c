"""What is asked of an experiment on a file of one's own before anything starts."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from silodp.config.experiment import Experiment
from silodp.datasets import Dataset


def own_sizes(experiment: Experiment, dataset: Dataset) -> list[int] | None:
    """Training records of each silo where the data say whose each record is; None where silos are cut from them."""
    if dataset.silo_records is None:
        return None
    share = experiment.silos.train_share
    return [math.floor(share * records + 1e-9) for records in dataset.silo_records]


def check_own(experiment: Experiment, dataset: Dataset, fail: Callable[[str, object, str], NoReturn]) -> None:
    """Silos by a column or by Dirichlet shares, bounds, and what of readings and preprocessing goes with them."""
    own, plan = experiment.dataset, experiment.silos
    if plan.scheme == "column" and dataset.silo_records is None:
        fail("silos.scheme", plan.scheme, "needs data that name silos: dataset.silo must be given, or another scheme")
    if plan.scheme != "column" and not isinstance(own, str) and own.silo is not None:
        fail("silos.scheme", plan.scheme, "must be column, or silo be left out of dataset")
    if plan.scheme == "dirichlet":
        if isinstance(own, str):
            fail("silos.scheme", plan.scheme, "needs a file of one's own")
        if plan.count is None or plan.alpha is None:
            fail("silos.scheme", plan.scheme, "needs silos.count and silos.alpha")
    elif plan.alpha is not None:
        fail("silos.alpha", plan.alpha, f"must be left out for {plan.scheme}")
    if plan.least is not None and plan.scheme != "column":
        fail("silos.least", plan.least, f"must be left out for {plan.scheme}")
    _check_bounds(experiment, dataset, fail)
    if dataset.silo_records is None:
        return
    if any(one.resample for one in experiment.variants().values()):
        fail("readings.resample", True, f"must be false for {plan.scheme}, whose silos have their own records")
    records = min(dataset.silo_records, default=0)
    train, least = math.floor(plan.train_share * records + 1e-9), 2 if experiment.delta == "1/n^2" else 1
    if train < least or train == records:
        allowed = f"must leave out silos that have not {least} records to train on and one to test on"
        fail("silos.least", plan.least, f"the smallest silo has {records} records: {allowed}")


def _check_bounds(experiment: Experiment, dataset: Dataset, fail: Callable[[str, object, str], NoReturn]) -> None:
    """Bounds of every number and of a target, and of nothing else."""
    steps, own = experiment.preprocess, experiment.dataset
    if steps.standardise in ("bounds", "silo") and (dataset.images or dataset.standardise_columns is None):
        fail("preprocess.standardise", steps.standardise, "needs data whose columns are known by name")
    if steps.standardise == "silo" and dataset.silo_records is None:
        fail("preprocess.standardise", steps.standardise, "needs silos of scheme column or dirichlet")
    if steps.standardise != "bounds":
        if steps.bounds:
            fail("preprocess.bounds", sorted(steps.bounds), "must be left out unless standardise is bounds")
        return
    target = [own.target] if dataset.task == "regression" and not isinstance(own, str) else []
    wanted = [*(dataset.standardise_columns or ()), *target]
    for name in wanted:
        if name not in steps.bounds:
            fail("preprocess.bounds", sorted(steps.bounds), f"column {name!r}: lowest and highest value must be given")
    for name, (low, high) in steps.bounds.items():
        if name not in wanted:
            fail("preprocess.bounds", name, f"must be a column of numbers: {', '.join(wanted)}")
        if not low < high:
            fail("preprocess.bounds", [low, high], f"column {name!r}: the lowest value must be below the highest")


def preprocessing_guarantee(steps: Mapping[str, Any], missing: str) -> str:
    """Whether what is done to features before training is private, in a sentence.

    Args:
        steps: the experiment's `preprocess`.
        missing: what its file says of missing values.
    """
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
