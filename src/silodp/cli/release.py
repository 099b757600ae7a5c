"""The commands that give one model away, and use it: release, predict."""

import datetime
import logging
from pathlib import Path
from typing import Any

import click
import numpy as np

from silodp.cli.options import PATH, POSITIVE, among, command
from silodp.cli.practitioner import rounded
from silodp.cli.select import CHOSEN
from silodp.config.errors import ConfigError, shown
from silodp.config.experiment import Experiment
from silodp.datasets.tabular import read_frame
from silodp.experiments import ledger
from silodp.experiments import release as releases
from silodp.experiments.released_model import load_model
from silodp.experiments.validation import load
from silodp.files import AS_PLANNED, read_parquet, write_csv, write_text

log = logging.getLogger("silodp")


@command(epilog="Example: silodp release config/patients.yaml --algorithm minibatch_sgd --epsilon 1")
@click.argument("run_file", type=PATH)
@click.option("--algorithm", required=True, help="An algorithm of the run file.")
@click.option("--epsilon", type=POSITIVE, required=True, help="Epsilon of this model.")
@click.option("--person", is_flag=True, help="Epsilon is for all records of a person, not for one record.")
@click.option("--stepsize", type=POSITIVE, help="Step size (default: the point that the study chose).")
@click.option("--clip", type=POSITIVE, help="Clip threshold (default: the point that the study chose).")
@click.option("--phase-length", type=click.IntRange(min=1), default=1, help="With --stepsize: rounds of a phase.")
@click.option("--setting", help="As in M3_R25 (default: the only one).")
@click.option("--budget", type=POSITIVE, help="Refuse where all releases of these data together exceed this epsilon.")
@click.option("--accept-data-bounds", is_flag=True, help="State that what was read off the data may be public.")
@click.option("--output", type=PATH, help="Folder to write (default: releases/<run>_<number>).")
def release(run_file: Path, algorithm: str, epsilon: float, person: bool, output: Path | None, **more: Any) -> int:
    """Train one model of your own data on all records, with fresh secret noise, and enter it in the ledger.

    Writes model.npz and card.md to a folder, and a line to ledger.csv beside the data.
    """
    resolved = load(run_file)
    own = {name: config for name, config in resolved.experiments.items() if not isinstance(config.dataset, str)}
    if len(own) != 1:
        raise ConfigError(f"{run_file}: experiments: {len(own)} on a file of your own: must be one for a release")
    ((name, config),) = own.items()
    among("--algorithm", algorithm, config.algorithms)
    for wrong, key, value, allowed in releases.release_rules(config, algorithm):
        if wrong:
            raise ConfigError(f"{run_file}: {key}: {shown(value)}: {allowed}")
    if person and dataset_person(config) is None:
        raise ConfigError(f"{run_file}: dataset.person: missing: must name the column of persons for --person")
    setting = among("--setting", more["setting"] or config.settings[0].name, [s.name for s in config.settings])
    if more["setting"] is None and len(config.settings) > 1:
        raise ConfigError(
            f"command line: --setting: missing: must be one of {', '.join(s.name for s in config.settings)}"
        )
    point, chosen = _point(Path("results") / resolved.run.run, name, config, algorithm, epsilon, setting, more)
    asked = releases.planned(name, config, algorithm, epsilon, setting, point, chosen, person)
    assert not isinstance(config.dataset, str)
    with ledger.held(Path(config.dataset.file)) as path:
        return _release(asked, resolved.run, run_file, path, output, more["budget"], more["accept_data_bounds"])


def dataset_person(config: Experiment) -> str | None:
    return None if isinstance(config.dataset, str) else config.dataset.person


def _point(
    folder: Path, name: str, config: Experiment, algorithm: str, epsilon: float, setting: str, more: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """The point that is trained, and how it came about."""
    if (more["stepsize"] is None) != (more["clip"] is None):
        raise ConfigError("command line: --stepsize and --clip: must be given together, or both be left out")
    if more["stepsize"] is not None:
        point = {key: more[key] for key in ("stepsize", "clip", "phase_length")}
        return point, "They were given by the owner, and are promised not to come from these data."
    path = folder / "selection" / f"{name}.parquet"
    if not path.is_file():
        raise ConfigError(f"{path}: no study has chosen a point: must be rebuilt first, or --stepsize and --clip given")
    rows = read_parquet(path, (*CHOSEN, "selection"))
    named = next(s for s in config.settings if s.name == setting)
    rows = rows[(rows["algorithm"] == algorithm) & (rows["reading"] == "") & (rows["M"] == named.M)]
    rows = rows[(rows["R"] == named.R) & np.isclose(rows["epsilon"], epsilon) & (rows["selection"] == "pooled")]
    if rows.empty:
        raise ConfigError(f"{path}: no point of {algorithm} at epsilon = {epsilon:g}: give --stepsize and --clip")
    row = rows.iloc[0]
    text = (
        "A study chose them by training losses without noise, which no ε here counts (a private choice is not "
        "offered): the promise holds for whoever already knows them."
    )
    return {key: row[key] for key in ("stepsize", "clip", "phase_length")}, text


def _release(
    asked: releases.Release,
    run: Any,
    run_file: Path,
    path: Path,
    output: Path | None,
    budget: float | None,
    accepted: bool,
) -> int:
    own, lines = asked.task.config.dataset, ledger.read(path)
    assert not isinstance(own, str)
    about = ledger.identity(Path(own.file), asked.data.columns)
    total = ledger.total([*ledger.of_file(lines, about), asked.named], *asked.person)
    output = output or Path("releases") / f"{run.run}_{len(lines) + 1}"
    if output.exists():
        raise ConfigError(f"{output}: already exists; remove it or choose another --output")
    if budget is not None and total[0] > budget:
        words = rounded(total[0], "up")
        raise ConfigError(f"command line: --budget: {budget:g}: with this model the total would be epsilon = {words}")
    audit = releases.audited(asked)
    if audit["mechanism"] != AS_PLANNED or not (audit["holds"] and audit["profile_holds"]):
        raise ConfigError(
            f"{run_file}: {asked.task.algorithm}: the audit finds {audit['mechanism']}: nothing is released"
        )
    weights = releases.make(asked, run)
    finite = bool(np.isfinite(weights).all())
    facts, time = releases.uncovered(asked.task.config, run_file, asked), datetime.datetime.now(datetime.UTC)
    worst = max(asked.plans, key=lambda plan: plan.budget.delta)
    line = about | {
        "time": time.isoformat(timespec="seconds"),
        "run": run.run,
        "algorithm": asked.task.algorithm,
        "M": asked.task.setting.M,
        "R": asked.task.setting.R,
        "epsilon": asked.task.config.epsilons[0],
        "delta": worst.budget.delta,
        "unit": asked.unit,
        "outcome": "released" if finite else "refused: not finite",
        "total_epsilon": total[0],
        "total_delta": total[1],
        "not_private": "" if accepted else "; ".join(facts),
        "mechanism": ledger.mechanism_of(asked.named),
    }
    # Before the model has its name: a release that ends here is counted and gives nothing away.
    ledger.append(path, lines, line)
    if not finite:
        raise ConfigError(f"{run_file}: the model is not finite: refused; {path} counts it")
    said = _facts_line(facts, accepted)
    model, step = releases.model_of(asked, weights), releases.lattice(asked)
    largest = max(float(np.abs(model.weights).max()), step)
    text = releases.card(
        asked,
        run,
        time=line["time"],
        epsilon=line["epsilon"],
        delta=line["delta"],
        total=total,
        number=len(ledger.of_file(lines, about)) + 1,
        facts_line=said,
        lattice=step,
        floats=step / np.spacing(largest),
        audit=audit,
        audit_n=min(plan.budget.n for plan in asked.plans),
        up=lambda value: rounded(value, "up"),
    )
    write_text(text, output / "card.md")
    model.save(output / "model.npz")
    if facts and not accepted:
        log.warning("%s", said)
    print(f"{output}: model.npz and card.md; epsilon = {line['epsilon']:g} for one {asked.unit}")
    print(f"{path}: all releases of these data together: epsilon = {rounded(total[0], 'up')}")
    return 0


def _facts_line(facts: list[str], accepted: bool) -> str:
    if not facts:
        return "The run file declares them."
    listed = "; ".join(facts)
    if accepted:
        return f"The owner accepts as public what was read off the records: {listed}."
    return f"Not private, as read off the records: {listed}. Declare what is known, or give --accept-data-bounds."


@command(epilog="Example: silodp predict releases/patients_1/model.npz new.csv --output predictions.csv")
@click.argument("model", type=PATH)
@click.argument("file", type=PATH)
@click.option("--output", type=PATH, required=True, help="CSV file to write.")
def predict(model: Path, file: Path, output: Path) -> None:
    """Predict every record of FILE by a released MODEL: probabilities of classes, or values."""
    released, frame = load_model(model), read_frame(file)
    try:
        table = released.predict(frame)
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from None
    for column, count in released.unseen(frame).items():
        if count:
            log.warning("%s: column %r: %d of %d values are no category of the model", file, column, count, len(frame))
    write_csv(table, output)
    print(f"{output}: {len(table)} predictions")
