"""The page of a study of one's own data, in words: what ε costs, whether federating helps, whether it learns."""

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from silodp.files import read_json
from silodp.report.figures.own_study_picture import model_title
from silodp.report.numbers import exact, measured
from silodp.report.page.blocks import Block, Figures, Section, Table, Text
from silodp.report.page.experiments import RunExperiment, own_data
from silodp.report.page.figure_list import Page
from silodp.report.page.summaries import audit
from silodp.verdicts.statistics import paired_test

# A model that says one class for this share of the records has learnt little but its frequency.
MOSTLY = 0.99
# Share of a pooled fit's gain over guessing that federated training without noise may lose.
LOST = 0.05
# AUC from which a model ranks records better than by chance.
RANKS = 0.6
SILOS_SHOWN = 40
ALONE = "silo_only"
_BASELINES = ("guess", "pooled", "best silo")

Model = Mapping[str, Any]


class Study:
    """A study that the job `study` wrote, and the models in it that the page speaks of."""

    def __init__(self, found: Mapping[str, Any]):
        self.found, self.models = found, found["models"]
        self.regression = found["task"] == "regression"
        trained = [model for model in self.models if model["name"] not in _BASELINES]
        federated = [model["name"] for model in trained if model["name"] != ALONE]
        self.name = federated[0] if federated else ALONE
        self.guess, self.pooled = self._find_model("guess"), self._find_model("pooled")
        private = [model for model in trained if model["name"] == self.name and model["epsilon"] is not None]
        self.plain = self._find_model(self.name, None)
        goal = (self.guess["error"] + (self.plain or self.pooled)["error"]) / 2
        useful = [model for model in private if _finite(model) <= goal < self.guess["error"]]
        # The smallest ε that keeps half of what is learnt without noise; else the largest.
        epsilon = itemgetter("epsilon")
        self.told = min(useful, key=epsilon) if useful else max(private, key=epsilon, default=None)
        self.alone = self._find_model(ALONE, self.told["epsilon"]) if self.told else None

    def _find_model(self, name: str, *epsilon: float | None) -> Any:
        found = [m for m in self.models if m["name"] == name and (not epsilon or m.get("epsilon") in epsilon)]
        return found[0] if found else None

    def amount(self, model: Model) -> str:
        """A model's error in words."""
        if model["error"] is None:
            return "an error without bound"
        share = f"{100 * model['error']:.3g} %"
        return f"a typical error of {share} of guessing's" if self.regression else f"{share} of wrong answers"

    def better(self, first: Model, second: Model) -> int:
        """1 where `first` has the smaller error beyond chance over the splits, −1 where the larger, else 0."""
        pairs = zip(first["errors"], second["errors"], strict=True)
        test = paired_test([b - a if None not in (a, b) else math.nan for a, b in pairs])
        return int(test.low > 0) - int(test.high < 0)


def _finite(model: Model) -> float:
    return math.inf if model["error"] is None else model["error"]


def paragraph(study: Study) -> list[str]:
    """The sentences at the top of the page."""
    told, plain, guess = study.told, study.plain, study.guess
    silos, splits = len(study.found["silos"]), study.found["trials"]
    said = "predicting the mean" if study.regression else "always saying the most frequent class"
    if told is None:
        return ["Nothing was trained with noise."]
    words = [
        f"At ε = {exact(told['epsilon'])} for a record the model that {silos} silos train together has "
        f"{study.amount(told)}; {said} has {study.amount(guess)}."
    ]
    if plain is not None:
        words.append(_noise_cost(study, told, plain))
    if study.alone is not None and told is not study.alone:
        outcome = study.better(told, study.alone)
        help = {1: "federating helps", -1: "staying alone is better", 0: f"over {splits} splits no difference is found"}
        words.append(f"Each silo by itself, at the same ε, has {study.amount(study.alone)}: {help[outcome]}.")
    return [*words, *_learnt(study, told), *_warnings(study)]


def _noise_cost(study: Study, told: Model, plain: Model) -> str:
    text = f"Without noise it has {study.amount(plain)}"
    if None in (told["error"], plain["error"]):
        return f"{text}."
    cost = 100 * (told["error"] - plain["error"])
    unit = "of guessing's error" if study.regression else "of the answers"
    return f"{text}: noise costs {cost:.2g} % {unit}." if cost > 0 else f"{text}: noise costs nothing that shows."


def _learnt(study: Study, told: Model) -> list[str]:
    """Whether the model knows more than guessing does, and whether any model does."""
    words = []
    if study.better(told, study.guess) < 1:
        words.append("Nothing was learnt at this ε: the model is not better than guessing beyond chance.")
    if "most" in told and told["most"][0] >= MOSTLY * told["most"][1]:
        name, (count, whole) = study.found["classes"][told["most_class"]], told["most"]
        words.append(f"It says “{name}” for {count:,} of {whole:,} test records of all splits.")
    if study.better(study.pooled, study.guess) < 1:
        auc = study.pooled.get("auc") or 0.5
        rest = f", yet it ranks records (AUC {measured(auc)})." if auc > RANKS else ": it does not learn these data."
        words.append(f"Nor is a linear model with all records in one place and no noise{rest}")
    elif study.plain is not None:
        gain = study.guess["error"] - study.pooled["error"]
        lost = (_finite(study.plain) - study.pooled["error"]) / gain
        if lost > LOST:
            text = "nothing" if lost >= 1 else f"{100 * (1 - lost):.0f} %"
            words.append(
                f"Even without noise federated training reaches {text} of what a fit with all records together "
                "gains over guessing: training has not converged. Narrower bounds or more rounds may help."
            )
    return words


def _warnings(study: Study) -> list[str]:
    """δ of small silos, and points at the end of their grid."""
    words = []
    if weak := study.found["weak"]:
        n, delta = min(weak), study.found["delta"]
        words.append(
            f"δ is weak in {len(weak)} silo{'s' * (len(weak) > 1)}: with {n} training records δ = {delta:.2g} allows "
            f"that a record is published as it is with probability {n * delta:.2g} (n·δ)."
        )
    if study.told and study.told["edge"]:
        words.append("Its step size or clip is an end of the grid: a better one may lie beyond.")
    return words


def study_page(page: Page, experiments: Sequence[RunExperiment]) -> tuple[list[Block], list[Section]]:
    """What stands first on the page, and its sections."""
    warning = Text("A study on the data, for their owners: not for publication. It stores no model.", "alarm")
    first: list[Block] = [warning]
    sections = []
    for experiment in experiments:
        path = page.folder / "study" / f"{experiment.name}.json"
        study = Study(read_json(path)) if path.is_file() else None
        title = f"{experiment.title}: " if len(experiments) > 1 else ""
        if study is None:
            first.append(Text(f"{title}No study: study/{experiment.name}.json is not there.", "missing"))
        else:
            first.append(Text(title + " ".join(paragraph(study))))
            sections.append(_results(page, path, experiment, study))
        sections.append(own_data(page, experiment))
    return first, [*sections, audit(page)]


def _results(page: Page, path: Path, experiment: RunExperiment, study: Study) -> Section:
    error = "error / guessing's" if study.regression else "wrong answers"
    heading = ["model", "ε", error] + ([] if study.regression else ["balanced accuracy"])
    heading += ["AUC", "rounds"] if len(study.found["classes"]) == 2 else ["rounds"]
    rows, names = [], [model["name"] for model in study.models]
    for model in sorted(study.models, key=lambda one: (names.index(one["name"]), one.get("epsilon") or math.inf)):
        epsilon = "no\u00a0noise" if model.get("epsilon") is None else exact(model["epsilon"])
        row = [model_title(model["name"]), epsilon, measured(_finite(model))]
        row += [] if study.regression else [measured(model["balanced"])]
        row += [measured(model.get("auc"))] if "AUC" in heading else []
        rows.append([*row, exact(model.get("rounds"))])
    links = page.csv(path, "all numbers (JSON)") + page.csv(page.folder / "tables" / f"{experiment.name}.csv")
    about = (
        f"Errors on test records are means over silos and {study.found['trials']} splits. The best single silo is "
        "chosen by these errors, which flatters it. Rounds, step size and clip are those of the smallest training loss."
    )
    blocks: list[Block] = [
        Figures([page.picture(path.with_suffix(".svg"), "Error against ε")]),
        Table("Errors of all models", heading, rows),
        Text(about, "settings", links),
        _by_silo(study),
    ]
    if study.told and not study.regression:
        blocks += _by_class(study, study.told)
    return Section(f"study-{experiment.name}", f"{experiment.title}: what was learnt", blocks)


def _by_silo(study: Study) -> Table:
    """Errors in each silo; of many silos those where the federated model is worst."""
    models = [study.guess, study.pooled, study.plain, study.told, study.alone]
    shown = [model for place, model in enumerate(models) if model and model not in models[:place]]
    notes = ["no noise" if m.get("epsilon") is None else f"ε = {exact(m['epsilon'])}" for m in shown]
    names = [model_title(m["name"]) + f", {note}" * bool(m.get("rounds")) for m, note in zip(shown, notes, strict=True)]
    worst = (study.told or study.pooled)["silos"]
    order = sorted(range(len(worst)), key=lambda silo: -(math.inf if worst[silo] is None else worst[silo]))
    few, silos, records = order[:SILOS_SHOWN], study.found["silos"], study.found["records"]
    rows = [[silos[i], str(records[i]), *(measured(model["silos"][i]) for model in shown)] for i in few]
    more = f", the {len(few)} of {len(order)} with the largest error" if len(few) < len(order) else ""
    return Table(f"Error in each silo, on its own test records{more}", ["silo", "training records", *names], rows)


def _by_class(study: Study, told: Model) -> list[Block]:
    """Which class is taken for which, and whether probabilities are right, of the model that the page speaks of."""
    blocks: list[Block] = []
    classes, about = study.found["classes"], f"the federated model at ε = {exact(told['epsilon'])}, all splits"
    if "confusion" in told:
        rows = [[name, *map(str, counts)] for name, counts in zip(classes, told["confusion"], strict=True)]
        heading = ["is", *(f"said to be {name}" for name in classes)]
        blocks.append(Table(f"Test records by class, {about}", heading, rows))
    if "calibration" in told:
        rows = [[measured(said), measured(found), str(count)] for said, found, count in told["calibration"]]
        heading = [f"probability of “{classes[1]}” said", "share found", "test records"]
        blocks.append(Table(f"Are probabilities right? {about}", heading, rows))
    return blocks
