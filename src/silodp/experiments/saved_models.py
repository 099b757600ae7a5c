"""Models of an experiment on a file of one's own, saved with a card that says what they guarantee.

A saved model is the one of the reported runs' first trial, trained again from the same draws: no further release. With
it goes what takes a row of the file to its features, so that the file alone gives predictions.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from silodp.algorithms import ALGORITHMS
from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.datasets import Data
from silodp.experiments.names import model_name
from silodp.experiments.own_data import preprocessing_guarantee
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import run_trial
from silodp.federation.models.base import Block
from silodp.federation.partition import Partition
from silodp.federation.preprocessing import Fitted
from silodp.federation.trial_data import build_model, fitted_records, hand_over
from silodp.files import write_atomically, write_text


def save_models(
    name: str,
    config: Experiment,
    run: Run,
    data: Data,
    part: Partition,
    chosen: pd.DataFrame,
    privacy: pd.DataFrame,
    folder: Path,
) -> None:
    """Write `<model_name>.npz` and `.md` for every private algorithm, setting and ε of the default reading.

    An array file holds the model's tensors by name and what `described` gives; `by_silo` names the arrays whose first
    axis is of silos.

    Args:
        name: the experiment's.
        config: the experiment.
        run: its run file.
        data: the records.
        part: the silos of trial 0.
        chosen: what `selection.select` gave.
        privacy: the experiment's privacy table.
        folder: where the files go.
    """
    records, how = fitted_records(data, config, config.readings, part)
    assert how is not None  # a file has no images
    prepared = hand_over(records, config, part, run)
    first = chosen[(chosen["selection"] == config.reports[0].selection) & (chosen["reading"] == "")]
    first = first[(first["trial"] == 0) & first["epsilon"].notna()]
    blocks = build_model(config, prepared).blocks
    about = described(config, data, how)
    for algorithm in dict.fromkeys(first["algorithm"]):
        for setting in config.settings:
            own = (first["algorithm"] == algorithm) & (first["M"] == setting.M) & (first["R"] == setting.R)
            task = Task(name, config, algorithm, setting)
            kept: list[tuple[pd.DataFrame, Tensor]] = []
            rows = run_trial(
                task, run, prepared, 0, first[own][POINT].reset_index(drop=True), "fresh",
                lambda stack, weights, kept=kept: kept.append((stack, weights)),  # type: ignore[misc]
            )  # fmt: skip
            models = {
                float(e): w for stack, ws in kept for e, w in zip(stack["epsilon"], ws.cpu().numpy(), strict=True)
            }
            for row in rows.to_dict("records"):
                stem = folder / model_name(algorithm, setting.name, row["epsilon"])
                weights = models[row["epsilon"]]
                arrays = {"bias": np.zeros(weights.shape[:-1]), **tensors(weights, blocks)}
                own_arrays = [*arrays] if ALGORITHMS[algorithm].alone else []
                own_arrays += ["centre", "scale"] if how.centre.ndim > 1 else []
                arrays |= about | {"by_silo": np.array(own_arrays, dtype=str)}
                with write_atomically(stem.with_name(f"{stem.name}.npz")) as file, file.open("wb") as stream:
                    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
                said = privacy[
                    (privacy["algorithm"] == algorithm) & (privacy["reading"].fillna("") == "")
                    & (privacy["M"] == setting.M) & (privacy["R"] == setting.R) & (privacy["epsilon"] == row["epsilon"])
                ]  # fmt: skip
                text = card(config, task, row | said.iloc[0].to_dict(), [len(one) for one in part.train])
                write_text(text, stem.with_name(f"{stem.name}.md"))


def tensors(weights: np.ndarray, blocks: tuple[Block, ...]) -> dict[str, np.ndarray]:
    """A flat model (d,), or one of each silo (N, d), as its tensors by name."""
    lead = weights.shape[:-1]
    return {one.name: weights[..., one.start : one.stop].reshape(*lead, *one.shape) for one in blocks}


def described(config: Experiment, data: Data, how: Fitted) -> dict[str, Any]:
    """What takes rows of the file to predictions, beside the tensors.

    `features` (k, 2), of each the file's column and, of a category, which one is 1; `classes`, names; the arrays of
    `Fitted`; `target_centre` and `target_scale` of a regression, whose scores are moved to [−1, 1] by bounds.
    """
    own = config.dataset
    bounds = [] if isinstance(own, str) else config.preprocess.bounds.get(own.target, [])
    low, high = bounds if data.classes is None and bounds else (-1.0, 1.0)
    found = {one: np.asarray(value) for one, value in vars(how).items() if value is not None}
    found.setdefault("projection", np.eye(len(data.sources)))
    return found | {
        "features": np.array(data.sources, dtype=str).reshape(-1, 2),
        "classes": np.array(data.class_names, dtype=str),
        "target_centre": np.float64(low + high) / 2,
        "target_scale": np.float64(high - low) / 2,
    }


def card(config: Experiment, task: Task, row: dict[str, Any], sizes: list[int]) -> str:
    """The card of a saved model, in Markdown; `row` holds its trained run and its row of the privacy table."""
    epsilon, delivered = row["epsilon"], _rounded_up(row["delivered_epsilon"])
    s, m = int(row["person_silos"]), int(row["person_records"])
    alone = (
        " One model for each silo, in their order; each is its own silo's." if ALGORITHMS[task.algorithm].alone else ""
    )
    named = not isinstance(config.dataset, str) and config.dataset.person is not None
    who = (
        f"records in {s} silo{'s' * (s > 1)} at most, {m} in one"
        if named
        else "one record in one silo, as nobody is named"
    )
    own = task.readings.records
    missing = "refuse" if isinstance(config.dataset, str) else config.dataset.missing
    return f"""# {config.title}: {task.algorithm} at epsilon = {epsilon:g}

{config.model.name} model, trained on {sum(sizes)} records of {len(sizes)} silos ({min(sizes)} to {max(sizes)} each) in
{task.setting.R} rounds of which {task.setting.M} silos take part.{alone}
Step size {row["stepsize"]:.4g}, clip {row["clip"]:.4g}, both chosen on the same records.
Error on the {1 - config.silos.train_share:.0%} of records kept for testing: {row["test_error"]:.4g}.

## What it guarantees, and to whom

- **A record**: whoever sees all messages of its silo, which is more than this model, learns of it no more than
  (epsilon, delta) = ({delivered}, {_rounded_up(row["delta"])}) allows: the largest over silos, each of which has
  noise and delta for its own number of records (`records: {own}`).
- **A person** with {who}: epsilon = {_rounded_up(row["epsilon_person"])}.
- **With the choice** of step size and clip among {_count(row["selection_points"])} points, had it been made by private
  selection: epsilon = {_rounded_up(row["epsilon_selection"])}. It was made without noise, which is not counted above.
- {preprocessing_guarantee(config.preprocess.model_dump(), missing)}{_beside(config, missing)}

## On what that rests

- Neighbours differ in one record that is replaced; numbers of records are public.
- The other silos and the server may be anybody; the silo itself clips, draws and adds noise as the program does.
- **The seed of the run is secret.** Batches and noise follow from it and the program: who knows the run file,
  config.json or provenance.json can take the noise away. They stay where the data are.
- The generator is statistical, not cryptographic, and noise is of floating-point numbers.
- One model is given away. Each further model, epsilon or algorithm of the run costs its own epsilon beside it.
- Errors, losses and figures of the run are computed from records without noise: they are for its owners.
"""


def _beside(config: Experiment, missing: str) -> str:
    """Which arrays of the file tell of records without noise, in a sentence; nothing where none does."""
    steps = config.preprocess
    mode = steps.standardise if isinstance(steps.standardise, str) else "train" if steps.standardise else "none"
    told = {"train": ["centre", "scale"], "silo": ["centre", "scale"]}.get(mode, [])
    told += ["low", "high", "centre", "scale", "fill"] if mode == "bounds" and steps.bounds_from == "file" else []
    told += ["fill"] if missing == "mean" and mode != "bounds" else []
    told += ["centre", "projection"] if steps.pca is not None else []
    if not told:
        return ""
    of = "; centre and scale silo by silo" if mode == "silo" else ""
    return (
        f"\n  The model's file holds them ({', '.join(dict.fromkeys(told))}{of}): no epsilon above counts "
        "what they tell of the records."
    )


def _rounded_up(value: float) -> str:
    if not math.isfinite(value):
        return "not proven" if math.isnan(value) else "infinite"
    places = 3 - math.ceil(math.log10(value)) if value > 0 else 0
    return f"{math.ceil(value * 10**places) / 10**places:g}"


def _count(value: float) -> str:
    return "the" if math.isnan(value) else f"{int(value)}"
