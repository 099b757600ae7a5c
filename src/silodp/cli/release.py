"""The commands that give one model away, and use it: release, predict."""

import logging
from pathlib import Path
from typing import Any

import click
import numpy as np

from silodp.audit.columns import AS_PLANNED
from silodp.cli.options import PATH, POSITIVE, among, command
from silodp.cli.practitioner import rounded
from silodp.cli.select import CHOSEN
from silodp.config.errors import ConfigError, show_value
from silodp.config.run import Run
from silodp.experiments.columns import TABLE_COLUMNS
from silodp.experiments.task import RUN, Task, task_at
from silodp.experiments.validation import load
from silodp.federation.experiment_data import schema_of
from silodp.federation.streams import secret_streams
from silodp.files import read_parquet, read_table, with_reading, write_csv, write_text
from silodp.own_data import release as releases
from silodp.own_data.released_model import load_model
from silodp.own_data.study import chosen_rows
from silodp.silos.ledger import Ledger, opened

log = logging.getLogger("silodp")

# How step size and clip came about, in a card.
_STUDY = (
    "A study chose them, and the rounds, by training losses without noise, which no ε here counts (--selection does)."
)
_PRIVATELY = (
    "Private selection (Papernot and Steinke 2022, Theorem 2): the best of a random number of runs, {} on average, at "
    "random points of the run file's grid, by training losses with noise. ε counts all of these runs. The grid and the "
    "rounds must not have been chosen on these data."
)


@command(epilog="Example: silodp release config/patients.yaml --algorithm minibatch_sgd --epsilon 1")
@click.argument("run_file", type=PATH)
@click.option("--algorithm", required=True, help="An algorithm of the run file.")
@click.option("--epsilon", type=POSITIVE, required=True, help="Epsilon of this model.")
@click.option("--person", is_flag=True, help="Epsilon is for all records of a person, not for one record.")
@click.option("--stepsize", type=POSITIVE, help="Step size (default: the point that the study chose).")
@click.option("--clip", type=POSITIVE, help="Clip threshold (default: the point that the study chose).")
@click.option("--phase-length", type=click.IntRange(min=1), default=1, help="With --stepsize: rounds of a phase.")
@click.option("--selection", type=click.IntRange(min=2), help="Choose privately among this many runs, on average.")
@click.option("--setting", help="As in M3_R25 (default: the one that the study chose, else the first).")
@click.option("--budget", type=POSITIVE, help="Largest epsilon of all releases of these data; the ledger keeps it.")
@click.option("--accept-data-bounds", is_flag=True, help="State that what was read off the data may be public.")
@click.option("--output", type=PATH, help="Folder to write (default: releases/<run>_<number>).")
def release(
    run_file: Path,
    algorithm: str,
    epsilon: float,
    person: bool,
    selection: int | None,
    setting: str | None,
    budget: float | None,
    accept_data_bounds: bool,
    output: Path | None,
    **point: Any,
) -> None:
    """Train one model of your own data on all records, with fresh secret noise, and enter it in the ledger.

    Writes model.npz and card.md to a folder, and a line to ledger.jsonl beside the data.
    """
    resolved = load(run_file)
    own = {name: config for name, config in resolved.experiments.items() if config.is_own}
    if len(own) != 1:
        raise ConfigError(f"{run_file}: experiments: {len(own)} on a file of your own: must be one for a release")
    ((name, config),) = own.items()
    among("--algorithm", algorithm, config.algorithms)
    for wrong, key, value, allowed in releases.release_rules(config, algorithm, person):
        if wrong:
            raise ConfigError(f"{run_file}: {key}: {show_value(value)}: {allowed}")
    settings = {setting.name: setting for setting in config.settings}
    given = among("--setting", setting or next(iter(settings)), settings)
    task = Task(name, config, algorithm, settings[given])
    if (point["stepsize"] is None) != (point["clip"] is None):
        raise ConfigError("command line: --stepsize and --clip: must be given together, or both be left out")
    if point["stepsize"] is None and selection is None:
        row = _chosen(Path("results") / resolved.run.run, task, epsilon, setting)
        task = task_at(name, config, row)
        point, how = {key: row[key] for key in point}, _STUDY
    elif selection is None:
        how = "The owner gave them: they must not have been chosen on these data."
    elif point["stepsize"] is None:
        how = _PRIVATELY.format(selection)
    else:
        raise ConfigError(f"command line: --selection: {selection}: must be left out with --stepsize and --clip")
    asked = releases.planned(task, epsilon, point, how, person, selection or 1)
    with opened(Path(asked.own.file).resolve().parent) as ledger:
        _release(asked, resolved.run, run_file, ledger, output, budget, accept_data_bounds)


def _chosen(folder: Path, task: Task, epsilon: float, setting: str | None) -> dict[str, Any]:
    """The point that the study chose, with M and R: those of its page, unless a setting is given."""
    path = folder / "selection" / f"{task.experiment}.parquet"
    if not path.is_file():
        raise ConfigError(f"{path}: no study has chosen a point: rebuild it first, or give --stepsize and --clip")
    rows = read_parquet(path, (*CHOSEN, "selection"))
    wanted = {"algorithm": task.algorithm, "reading": "", "selection": "pooled", "epsilon": epsilon}
    if setting:
        wanted |= {"M": task.setting.M, "R": task.setting.R}
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    if rows.empty:
        raise ConfigError(f"{path}: no point of {task.algorithm} at epsilon = {epsilon:g}: give --stepsize and --clip")
    table = folder / "tables" / f"{task.experiment}.csv"
    if not setting and table.is_file():
        rows = rows.merge(chosen_rows(with_reading(read_table(table, TABLE_COLUMNS)))[[*RUN, "epsilon"]])
    return rows.iloc[0].to_dict()


def _release(
    asked: releases.Release,
    run: Run,
    run_file: Path,
    ledger: Ledger,
    output: Path | None,
    budget: float | None,
    ok: bool,
) -> None:
    number, plans = len(ledger.charges) + 1, list(asked.named.values())
    total = ledger.check(plans, *asked.person, budget)
    output = output or Path("releases") / f"{run.run}_{number}"
    if output.exists():
        raise ConfigError(f"{output}: already exists; remove it or choose another --output")
    audit = releases.audited(asked)
    if audit["mechanism"] != AS_PLANNED or not (audit["holds"] and audit["profile_holds"]):
        raise ConfigError(f"{run_file}: {asked.task.algorithm}: the audit finds {audit['mechanism']}: no release")
    asked, weights = releases.trained(asked, run, secret_streams())
    finite, facts = bool(np.isfinite(weights).all()), releases.uncovered(asked, run_file)
    outcome, named, setting = "released" if finite else "refused: not finite", "; ".join(facts), asked.task.setting
    file = Path(asked.own.file).resolve().name
    about = {"file": file, "run": run.run, "algorithm": asked.task.algorithm, "M": setting.M, "R": setting.R}
    about |= {"epsilon": asked.epsilon, "delta": asked.delta, "unit": asked.unit, "outcome": outcome}
    about |= {"not_private": "" if ok else named}
    others = sorted({str(line["about"].get("file")) for line in ledger.charges} - {file})
    # Before the model has its name: a release that ends here is counted and gives nothing away.
    line = ledger.charge(plans, about, *asked.person, budget)
    if not finite:
        raise ConfigError(f"{run_file}: the model is not finite: refused; {ledger.path} counts it")
    said = f"Not private: {named}. Declare what is known, or give --accept-data-bounds."
    said = f"The owner accepts as public what was read off the records: {named}." if ok else said
    model = releases.model_of(asked, weights)
    ends = {"total": total, "number": number, "facts": facts and said, "line": line}
    text = releases.card(asked, model, time=line["time"], audit=audit, up=lambda value: rounded(value, "up"), **ends)
    write_text(text, output / "card.md")
    model.save(output / "model.npz")
    if facts and not ok:
        log.warning("%s", said)
    print(f"{output}: model.npz and card.md; epsilon = {asked.epsilon:g} for one {asked.unit}")
    print(f"{ledger.path}: all releases of these data together: epsilon = {rounded(total[0], 'up')}")
    if others:
        print(f"{ledger.path}: releases of {', '.join(others)} count too: other records need a folder of their own")


@command(epilog="Example: silodp predict releases/patients_1/model.npz new.csv --output predictions.csv")
@click.argument("model", type=PATH)
@click.argument("file", type=PATH)
@click.option("--output", type=PATH, required=True, help="CSV file to write.")
@click.option("--unknown", type=click.Choice(("empty", "zero")), default="empty", help="For unknown categories.")
@click.option("--schema", type=PATH, help="Run file of a model that is older than schemas.")
def predict(model: Path, file: Path, output: Path, unknown: str, schema: Path | None) -> None:
    """Predict every record of FILE by a released MODEL: probabilities of classes, or values.

    A row with a category that the model does not know is empty; `--unknown zero` takes it for none of those known.
    """
    known = None
    if schema is not None:
        own = [one.dataset for one in load(schema).experiments.values() if not isinstance(one.dataset, str)]
        known = schema_of(own[0]) if own else None
    if output.exists() and any(output.samefile(given) for given in (model, file) if given.exists()):
        raise ConfigError(f"command line: --output: {str(output)!r}: must be neither the model nor the file")
    try:
        released = load_model(model, known)
        frame = released.read(file)
        table = released.predict(frame, unknown, file)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    for column, count in table.attrs["unknown"].items():
        log.warning("%s: column %r: %d of %d values are unknown to the model", file, column, count, len(frame))
    write_csv(table, output)
    print(f"{output}: {len(table)} predictions")
