"""Subcommand audit: of one algorithm, or of all private algorithms of an experiment."""

import argparse
import json
import logging
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import resolved_with
from silodp.config.errors import ConfigError
from silodp.federation.partition import read_partition
from silodp.federation.rng import Streams
from silodp.files import AS_PLANNED, write_csv
from silodp.privacy.plan import Budget

log = logging.getLogger("silodp")

# The published breast cancer runs: their smaller silo, their rounds and the epsilon in their batch sizes.
_RECORDS, _ROUNDS, _BATCH_EPSILON, _CLAIMS, _RUNS = 169, 25, 24.0, (0.75, 3.0, 18.0), 20_000
# What algorithms ask to be told of a federation.
_FEDERATION: dict[str, Any] = {"silos": 2, "cohort": 2}
_HEADINGS = {
    "claimed_epsilon": "claimed",
    "delivered_epsilon": "delivered at most",
    "audited_lower": "at least",
    "audited_profile": "at least, by profile",
    "noise_below": "noise below",
    "mechanism": "mechanism",
    "mechanism_p": "p",
}


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add the subcommand with `add(name, function, help)`."""
    sub = add("audit", audit, "lower bounds on epsilon from runs with a canary, and a test of the mechanism")
    sub.add_argument("run_file", metavar="algorithm | run_file", help="a registered algorithm, or a run file")
    sub.add_argument("experiment", nargs="?", help="an experiment of the run file")
    sub.add_argument("--silos", type=Path, help="of a run file: folder that `silodp partition` wrote")
    sub.add_argument("--output", type=Path, help="CSV file; without one, the table of an algorithm is printed only")
    sub.add_argument("--runs", type=int, help=f"runs with the canary, and as many without ({_RUNS}, or audit_runs)")
    sub.add_argument("--epsilon", type=float, nargs="+", default=_CLAIMS, help="claims of an algorithm (0.75 3 18)")
    sub.add_argument("--records", type=int, default=_RECORDS, help=f"n, records of a silo ({_RECORDS})")
    sub.add_argument("--rounds", type=int, default=_ROUNDS, help=f"R, rounds ({_ROUNDS})")
    sub.add_argument("--batch", type=int, help="K, records drawn in a round (the papers' formula)")
    sub.add_argument("--delta", type=float, help="delta (1/n^2)")
    sub.add_argument("--seed", type=int, default=0, help="of all draws (0)")
    sub.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the algorithm, repeatable"
    )
    sub.add_argument("--json", action="store_true", help="print JSON")


def audit(options: argparse.Namespace) -> int:
    """Lower bounds on epsilon beside the delivered one, and whether messages are made as the plan says.

    Of one algorithm under the papers' noise, if the first word is its name; else of every private algorithm of an
    experiment of a run file, at a few points. Exit code 1 for an algorithm that is not what its plan says.
    """
    if options.runs is not None and options.runs < 4:
        raise ConfigError(f"command line: --runs: {options.runs}: must be at least 4")
    if options.run_file in ALGORITHMS:
        return _audit_algorithm(options)
    _audit_experiment(options)
    return 0


def _audit_experiment(options: argparse.Namespace) -> None:
    from silodp.experiments.audit.table import audit_rows

    if options.experiment is None:
        known = ", ".join(sorted(ALGORITHMS))
        raise ConfigError(
            f"command line: {options.run_file!r}: must be an algorithm ({known}), or a run file and its experiment"
        )
    for name in ("silos", "output"):
        if getattr(options, name) is None:
            raise ConfigError(f"command line: --{name}: missing: must be given with a run file")
    options.run_file = Path(options.run_file)
    resolved = resolved_with(options)
    experiment = resolved.experiments[options.experiment]
    sizes = [len(records) for records in read_partition(options.silos, 0).train]
    rows = audit_rows(resolved.run, options.experiment, experiment, sizes, options.runs)
    for row in rows.to_dict("records"):
        where = f"{row['experiment']} {row['algorithm']} at epsilon = {row['claimed_epsilon']:g}"
        _warn(where, row)
    write_csv(rows, options.output)


def _warn(where: str, row: dict) -> None:
    if not row["holds"]:
        log.warning(
            "%s: audited lower bound %g exceeds the delivered %g",
            *(where, row["audited_lower"], row["delivered_epsilon"]),
        )
    if not row["profile_holds"]:
        log.warning("%s: messages show more than the delivered profile allows", where)
    if row["mechanism"] != AS_PLANNED:
        log.warning("%s: messages are not made as planned: %s", where, row["mechanism"])


def _audit_algorithm(options: argparse.Namespace) -> int:
    from silodp.experiments.audit.table import AUDITED, point_rows

    if options.experiment is not None or options.silos is not None:
        raise ConfigError(f"command line: {options.run_file} is an algorithm: it takes no experiment and no --silos")
    runs, n = options.runs or _RUNS, options.records
    for name in ("records", "rounds"):
        if getattr(options, name) < 1:
            raise ConfigError(f"command line: --{name}: {getattr(options, name)}: must be at least 1")
    for value in options.epsilon:
        if not 0 < value < math.inf:
            raise ConfigError(f"command line: --epsilon: {value}: must be positive and finite")
    if options.batch is not None and not 1 <= options.batch <= n:
        raise ConfigError(f"command line: --batch: {options.batch}: must lie between 1 and --records = {n}")
    delta = options.delta if options.delta is not None else n**-2.0
    if not 0 < delta < 1:
        raise ConfigError(f"command line: --delta: {delta}: must lie between 0 and 1 (the default 1/n^2 needs n > 1)")
    algorithm = _made(options).fitted(n, options.batch)
    budgets = [Budget(n, algorithm.rounds, value, delta, _BATCH_EPSILON, options.batch) for value in options.epsilon]
    # Points whose batches differ cannot share a stack.
    stacks: dict[tuple[int, ...], list] = {}
    for plan in map(algorithm.plan, budgets):
        stacks.setdefault(tuple(release.drawn for release in plan.releases), []).append(plan)
    streams = Streams(options.seed).child("audit", algorithm.name)
    rows = []
    for number, plans in enumerate(stacks.values()):
        rows += point_rows(algorithm, plans, runs, streams.child(number))
    table = pd.DataFrame(rows, columns=AUDITED)
    if options.output is not None:
        write_csv(table, options.output)
    if options.json:
        print(table.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
    else:
        print(f"{algorithm.name}: n = {n}, R = {algorithm.rounds}, delta = {delta:.3g}, {runs} runs of either kind")
        shown = table[list(_HEADINGS)].rename(columns=_HEADINGS)
        print(shown.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    for row in rows:
        _warn(f"{algorithm.name} at epsilon = {row['claimed_epsilon']:g}", row)
    return int(not all(row["holds"] and row["profile_holds"] and row["mechanism"] == AS_PLANNED for row in rows))


def _made(options: argparse.Namespace) -> Any:
    """The algorithm with its `--option`s."""
    kind = ALGORITHMS[options.run_file]
    known = [field.name for field in fields(kind) if field.name != "rounds"]
    given = dict(_FEDERATION)
    for text in options.option:
        name, _, value = text.partition("=")
        if name not in known or not value:
            raise ConfigError(f"command line: --option: {text!r}: must be NAME=VALUE with NAME of {', '.join(known)}")
        try:
            given[name] = json.loads(value)
        except ValueError:
            given[name] = value
    try:
        return kind.with_options({"rounds": options.rounds, **given})
    except TypeError as error:
        raise ConfigError(f"command line: {options.run_file}: {error}: give it with --option") from error
