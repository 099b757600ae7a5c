"""A study of one's own data: how good the chosen models are on test records, by silo and class, beside plain baselines.

Nothing here has noise of its own: what comes out is for the owner of the data.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.datasets import Data
from silodp.experiments.selection import RUN
from silodp.experiments.task import POINT, WEAK, Task, task_at
from silodp.experiments.training import run_trial
from silodp.partition.trial_data import TrialData, build_model

# Silos, the largest, of which each is tried as the only one.
MOST_ALONE = 20
# Classes up to which a table shows which is taken for which.
MOST_CONFUSED = 10
CALIBRATION_BINS = 5

# What a model says of the test records of each silo: probabilities (n, classes), or values (n,).
Said = list[np.ndarray]


def _numpy(parts: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(x.cpu().double().numpy(), y.cpu().double().numpy()) for x, y in parts]


@dataclass
class Trials:
    """The records of all trials, and the errors of what models say of them."""

    prepared: Sequence[TrialData]

    def __post_init__(self) -> None:
        self.classes = self.prepared[0].classes
        self.train = [_numpy(one.train) for one in self.prepared]
        self.test = [_numpy(one.test) for one in self.prepared]

    def silo_errors(self, said: Sequence[Said]) -> np.ndarray:
        """Share of wrong classes, or mean squared error, (trials, silos)."""
        wrong = self._error_of_model if self.classes else lambda y, values: (np.nan_to_num(values, nan=np.inf) - y) ** 2
        pairs = [zip(silos, one, strict=True) for silos, one in zip(self.test, said, strict=True)]
        return np.array([[wrong(y, values).mean() for (_, y), values in trial] for trial in pairs])

    @staticmethod
    def _error_of_model(y: np.ndarray, values: np.ndarray) -> np.ndarray:
        return (values.argmax(axis=1) != y) | ~np.isfinite(values).all(axis=1)

    def spread(self) -> np.ndarray:
        """Mean squared error of the training mean of all records, (trials, silos)."""
        means = [np.concatenate([y for _, y in silos]).mean() for silos in self.train]
        return self.silo_errors([[np.full(len(y), m) for _, y in s] for m, s in zip(means, self.test, strict=True)])

    def errors(self, said: Sequence[Said]) -> tuple[np.ndarray, np.ndarray]:
        """Errors as tables have them: of the trials, (trials,), and of the silos, (silos,), on average over trials."""
        silos = self.silo_errors(said)
        if self.classes:
            return silos.mean(axis=1), silos.mean(axis=0)
        spread = self.spread()
        return np.sqrt(silos.mean(1) / spread.mean(1)), np.sqrt(silos.mean(0) / spread.mean())


def guesses(trials: Trials) -> list[Said]:
    """Shares of the classes, or the mean, of all training records, said of every test record."""
    said = []
    for train, test in zip(trials.train, trials.test, strict=True):
        y = np.concatenate([y for _, y in train])
        value = np.bincount(y.astype(int), minlength=trials.classes) / len(y) if trials.classes else y.mean()
        said.append([np.full((len(y), *np.shape(value)), value) for _, y in test])
    return said


def _fitted(parts: Sequence[tuple[np.ndarray, np.ndarray]], classes: int | None) -> Callable[[np.ndarray], np.ndarray]:
    """A linear model of scikit-learn, fitted on silos that count alike, as a function: features → what it says."""
    x, y = (np.concatenate(values) for values in zip(*parts, strict=True))
    weights = np.concatenate([np.full(len(one), 1 / len(one)) for _, one in parts])
    weights *= len(y) / weights.sum()
    if classes is None:
        return make_pipeline(StandardScaler(), Ridge()).fit(x, y, ridge__sample_weight=weights).predict
    present = np.unique(y).astype(int)
    if len(present) == 1:
        return lambda values: np.tile(np.eye(classes)[present[0]], (len(values), 1))
    made = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000))
    made.fit(x, y.astype(int), logisticregression__sample_weight=weights)

    def class_probabilities(values: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(values), classes))
        whole[:, present] = made.predict_proba(values)
        return whole

    return class_probabilities


def _of_fits(trials: Trials, silos: Sequence[int]) -> list[Said]:
    """What a fit on the records of some silos says of the test records of all."""
    said = []
    for train, test in zip(trials.train, trials.test, strict=True):
        fit = _fitted([train[silo] for silo in silos], trials.classes)
        said.append([fit(x) for x, _ in test])
    return said


def baselines(trials: Trials) -> dict[str, list[Said]]:
    """What guessing, a pooled fit without noise, and the best fit on one silo's records say of the test records.

    The best silo is the one with the smallest error on the test records of all, so its error flatters it.
    """
    sizes = [len(y) for _, y in trials.train[0]]
    each = [_of_fits(trials, [silo]) for silo in np.argsort(sizes, kind="stable")[::-1][:MOST_ALONE]]
    best = min(each, key=lambda said: float(trials.errors(said)[0].mean()))
    return {"guess": guesses(trials), "pooled": _of_fits(trials, range(len(sizes))), "best silo": best}


def score_model(trials: Trials, said: Sequence[Said]) -> dict[str, Any]:
    """Errors of trials and silos; of classes also balanced accuracy, AUC, calibration and which is taken for which.

    `most` is how many test records of all trials get the class that is said most often, and how many there are.
    """
    errors, silos = trials.errors(said)
    found: dict[str, Any] = {"error": errors.mean(), "errors": errors.tolist(), "silos": silos.tolist()}
    if trials.classes is None:
        return found
    classes, tables, areas, pairs = range(trials.classes), [], [], []
    for test, one in zip(trials.test, said, strict=True):
        y, values = np.concatenate([y for _, y in test]).astype(int), np.nan_to_num(np.concatenate(one))
        tables.append(confusion_matrix(y, values.argmax(axis=1), labels=list(classes)))
        pairs.append((y, values))
        if trials.classes == 2 and 0 < y.sum() < len(y):
            areas.append(roc_auc_score(y, values[:, 1]))
    table = np.sum(tables, axis=0)
    recalls = table.diagonal() / np.maximum(table.sum(axis=1), 1)
    found |= {"balanced": recalls[table.sum(axis=1) > 0].mean(), "most": [table.sum(0).max(), table.sum()]}
    found |= {"most_class": table.sum(0).argmax()}
    if areas:
        found["auc"] = np.mean(areas)
        y, values = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        found["calibration"] = _calibration(y, values[:, 1])
    if trials.classes <= MOST_CONFUSED:
        found["confusion"] = table.tolist()
    return found


def _calibration(y: np.ndarray, said: np.ndarray) -> list[list[float]]:
    """[mean probability said, share found, records] of records in bins of the probability that they are of class 1."""
    bins = np.minimum((said * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    return [[said[bins == b].mean(), y[bins == b].mean(), int((bins == b).sum())] for b in np.unique(bins)]


def chosen_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Of each algorithm and ε the row of a results table, over (M, R), with the smallest training loss."""
    rows = table[table["reading"] == ""].assign(loss=lambda rows: rows["train_loss_mean"].fillna(math.inf))
    return rows.sort_values("loss", kind="stable").drop_duplicates(["algorithm", "epsilon"]).sort_index()


def study(
    name: str,
    config: Experiment,
    run: Run,
    data: Data,
    table: pd.DataFrame,
    chosen: pd.DataFrame,
    prepared_of: Callable[[int], TrialData],
) -> dict[str, Any]:
    """The study of an experiment: baselines, and the models of its table trained again, judged on test records.

    `table` are the rows of the experiment's table, `chosen` the points that the job `select` chose. Plain data.
    """
    trials = Trials([prepared_of(trial) for trial in range(config.trials)])
    sizes = [len(y) for _, y in trials.train[0]]
    models = [{"name": kind} | score_model(trials, said) for kind, said in baselines(trials).items()]
    for row in chosen_rows(table).to_dict("records"):
        points = chosen.merge(pd.DataFrame([row])[[*RUN, "epsilon"]])
        task = task_at(name, config, row)
        said = [_trained(task, run, prepared, trial, points) for trial, prepared in enumerate(trials.prepared)]
        private = not math.isnan(row["epsilon"])
        about = {"name": row["algorithm"], "epsilon": row["epsilon"] if private else None, "rounds": row["R"]}
        about |= {"edge": row.get("edge") or "", "diverged": row["diverged"]}
        models.append(about | score_model(trials, said))
    return {
        "task": "regression" if trials.classes is None else "classification",
        "classes": list(data.class_names),
        "silos": list(data.silo_names) or [str(silo + 1) for silo in range(len(sizes))],
        "records": sizes,
        "tested": sum(len(y) for trial in trials.test for _, y in trial),
        "trials": config.trials,
        "points": len(config.settings),
        "weak": [n for n in sizes if n * config.delta_of(n) > WEAK],
        "delta": config.delta_of(min(sizes)),
        "models": [_json_value(model) for model in models],
    }


def _json_value(value: Any) -> Any:
    """Numbers of numpy as those of Python, infinite ones as None."""
    if isinstance(value, dict):
        return {key: _json_value(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_json_value(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _trained(task: Task, run: Run, prepared: TrialData, trial: int, points: pd.DataFrame) -> Said:
    """What a task's model, trained again in a trial at the point chosen for it, says of the test records."""
    model, said = build_model(task.config, prepared), [np.empty(0)] * len(prepared.test)

    def store_outputs(silos: list[int], weights: Tensor) -> None:
        for place, silo in enumerate(silos):
            used = weights if weights.ndim == 2 else weights[:, place]
            outputs = model.outputs(used, prepared.test[silo][0])[0].cpu().double()
            said[silo] = probabilities(outputs, prepared.classes).numpy()

    of = points[points["trial"] == trial] if "trial" in points else points
    run_trial(task, run, prepared, trial, of[POINT].reset_index(drop=True), "fresh", store_outputs)
    return said


def probabilities(outputs: Tensor, classes: int | None) -> Tensor:
    """(n, classes) of outputs (n,) or (n, classes); outputs of a regression as they are."""
    if classes is None:
        return outputs
    if outputs.ndim == 1:
        return torch.stack([torch.sigmoid(-outputs), torch.sigmoid(outputs)], dim=1)
    return torch.softmax(outputs, dim=1)
