"""The command `silodp audit`."""

import json
import logging
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.audit.audit_columns import AS_PLANNED
from silodp.audit.audit_rows import POINT_COLUMNS, audit_rows, point_rows, warn_of_fault
from silodp.audit.mechanism_check import RUN_SIZE
from silodp.cli.options import COUNT, DELTA, FILE, PATH, POSITIVE, as_json, command, option_of_values
from silodp.config.errors import ConfigError
from silodp.experiments.validation import experiment_of, load
from silodp.files import read_csv, write_csv
from silodp.partition.partition import read_partition
from silodp.privacy.plan import Budget
from silodp.streams import Streams

log = logging.getLogger("silodp")

# The published breast cancer runs: their smaller silo, their rounds and the epsilon in their batch sizes.
_RECORDS, _ROUNDS, _BATCH_EPSILON, _CLAIMS = 169, 25, 24.0, (0.75, 3.0, 18.0)
# Of an algorithm by itself.
_SILOS = 4
_HEADINGS = {
    "claimed_epsilon": "claimed",
    "delivered_epsilon": "delivered at most",
    "mechanism": "mechanism",
    "mechanism_p": "p",
}


@command(epilog="Example: silodp audit minibatch_sgd --epsilon 1")
@click.argument("subject", metavar="ALGORITHM|RUN_FILE|PUBLICATION")
@click.argument("experiment", required=False)
@click.option("--silos", type=PATH, help="With a run file: a partition, as results/RUN/silos/EXPERIMENT/default.")
@click.option("--output", type=FILE, help="CSV file to write; required with a run file or a publication.")
@option_of_values("--epsilon", type=POSITIVE, default=_CLAIMS, help="Claims of an algorithm (0.75 3 18).")
@click.option("--records", type=COUNT, default=_RECORDS, help="n, records of a silo.", show_default=True)
@click.option("--rounds", type=COUNT, default=_ROUNDS, help="R, rounds.", show_default=True)
@click.option("--batch", type=COUNT, help="K, records drawn in a round (default: the papers' formula).")
@click.option("--delta", type=DELTA, help="Delta (default 1/n^2).")
@click.option("--seed", type=int, default=0, help="Seed of all draws.", show_default=True)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="Parameter of the algorithm; repeatable."
)
@as_json
def audit(subject: str, experiment: str | None, silos: Path | None, output: Path | None, **more: Any) -> int:
    """Test whether the trainer's messages are made as the plan says: noise, draws, clipping and their number.

    With RUN_FILE, every private algorithm of the experiment, at a few points; with the folder of a PUBLICATION, of all
    its experiments or of one, from its tables alone. Exit code 1 where a plan is broken.
    """
    if subject in ALGORITHMS:
        if experiment is not None or silos is not None:
            raise ConfigError(f"command line: {subject} is an algorithm: it takes no experiment and no --silos")
        return _audit_algorithm(subject, output, **more)
    if Path(subject).is_dir():
        if silos is not None or output is None:
            raise ConfigError("command line: a publication is audited with --output and without --silos")
        return _audit_publication(Path(subject), experiment, output)
    if experiment is None:
        known = ", ".join(sorted(ALGORITHMS))
        allowed = f"must be an algorithm ({known}), a publication, or a run file with experiment"
        raise ConfigError(f"command line: {subject!r}: {allowed}")
    if silos is None or output is None:
        missing = "--silos" if silos is None else "--output"
        raise ConfigError(f"command line: {missing}: missing: required with a run file")
    run, config = experiment_of(Path(subject), experiment)
    sizes = [len(records) for records in read_partition(silos, 0).train]
    table = audit_rows(run, experiment, config, sizes)
    write_csv(table, output)
    return _broken(table)


def _audit_publication(folder: Path, experiment: str | None, output: Path) -> int:
    """Its tables say how many silos there are and how many records the smallest one trains on: no data is read."""
    tables = []
    for name in [experiment] if experiment else load(folder / "config.json").experiments:
        run, config = experiment_of(folder / "config.json", name)
        silos = read_csv(folder / f"tables/{name}.csv", ("N", "n")).iloc[0]
        tables.append(audit_rows(run, name, config, [int(silos["n"])] * int(silos["N"])))
        log.info("%s: %d audits", name, len(tables[-1]))
    table = pd.concat(tables)
    write_csv(table, output)
    return _broken(table)


def _broken(table: pd.DataFrame) -> int:
    return int(not table["mechanism"].eq(AS_PLANNED).all())


def _audit_algorithm(
    name: str,
    output: Path | None,
    epsilon: Sequence[float],
    records: int,
    rounds: int,
    batch: int | None,
    delta: float | None,
    seed: int,
    options: Sequence[str],
    as_json: bool,
) -> int:
    if batch is not None and batch > records:
        raise ConfigError(f"command line: --batch: {batch}: must be at most --records = {records}")
    if delta is None and records == 1:
        raise ConfigError("command line: --delta: missing: the default 1/n^2 needs --records > 1")
    delta = records**-2.0 if delta is None else delta
    try:
        algorithm = _with_options(name, rounds, options).fitted(records, batch)
        budgets = [Budget(records, algorithm.rounds, claim, delta, _BATCH_EPSILON, batch) for claim in epsilon]
        made = [algorithm.plan(budget) for budget in budgets]
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigError) or not (options or isinstance(error, TypeError)):
            raise
        raise ConfigError(f"command line: --option: {' '.join(options) or 'missing'}: {error}") from error
    # Points whose batches differ cannot share a stack.
    stacks: dict[tuple[int, ...], list] = {}
    for plan in made:
        stacks.setdefault(tuple(release.records_drawn for release in plan.releases), []).append(plan)
    streams = Streams(seed).child("audit", algorithm.name)
    rows = []
    for number, plans in enumerate(stacks.values()):
        silos = 1 if algorithm.alone else _SILOS
        rows += point_rows(algorithm, [[plan] * silos for plan in plans], streams.child(number), RUN_SIZE)
    table = pd.DataFrame(rows, columns=POINT_COLUMNS)
    if output is not None:
        write_csv(table, output)
    if as_json:
        print(table.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
    else:
        print(f"{algorithm.name}: n = {records}, R = {algorithm.rounds}, delta = {delta:.3g}")
        shown = table[list(_HEADINGS)].rename(columns=_HEADINGS)
        print(shown.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    for row in rows:
        warn_of_fault(algorithm.name, row)
    return _broken(table)


def _with_options(name: str, rounds: int, options: Sequence[str]) -> Any:
    kind = ALGORITHMS[name]
    known = [field.name for field in fields(kind) if field.name != "rounds"]
    values: dict[str, Any] = {"silos": _SILOS, "cohort": _SILOS}
    for text in options:
        option, _, value = text.partition("=")
        if option not in known or not value:
            raise ConfigError(f"command line: --option: {text!r}: must be NAME=VALUE with NAME of {', '.join(known)}")
        try:
            values[option] = json.loads(value)
        except ValueError:
            values[option] = value
    return kind.with_options({"rounds": rounds, **values})
