"""The commands useful by themselves: delivered ε of a federated run, noise for a wanted ε, amplification."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Any

import click
from tabulate import tabulate

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import COUNT, DELTA, POSITIVE, Number, among, as_json, command, several
from silodp.config.errors import ConfigError
from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.calibration import calibrated_plan
from silodp.privacy.person import person_epsilon
from silodp.privacy.plan import ADJACENCY, Budget, PrivacyPlan
from silodp.privacy.selection import selection_epsilon
from silodp.privacy.shuffling.amplification import amplification_table

_RUN = (
    click.option("--algorithm", default="minibatch_sgd", help="A registered algorithm.", show_default=True),
    click.option("--rounds", type=COUNT, required=True, help="R, rounds of communication."),
    click.option("--records", type=COUNT, required=True, help="n, training records of a silo."),
    click.option("--batch", type=COUNT, required=True, help="K, records drawn in a round (local_sgd: local steps)."),
    click.option("--delta", type=DELTA, help="Delta (default 1/n^2)."),
    click.option(
        "--sampler",
        type=click.Choice(("replacement", "subset")),
        default="replacement",
        help="Records of a message: drawn with replacement (default), or distinct.",
    ),
    click.option("--phase-length", type=COUNT, default=1, help="q of fedprox_spider.", show_default=True),
    as_json,
)


def _federated_run(function: Callable) -> Callable:
    """The options that describe a federated run."""
    for option in reversed(_RUN):
        function = option(function)
    return function


def _plan(
    epsilon: float,
    algorithm: str,
    rounds: int,
    records: int,
    batch: int,
    delta: float | None,
    sampler: str,
    phase_length: int,
) -> tuple[Any, PrivacyPlan]:
    """The algorithm that the options describe, and its plan at a claim of `epsilon`."""
    among("--algorithm", algorithm, sorted(ALGORITHMS))
    if batch > records:
        raise ConfigError(f"command line: --batch: {batch}: must be at most --records = {records}")
    if delta is None and records == 1:
        raise ConfigError("command line: --delta: missing: the default 1/n^2 needs --records > 1")
    made = ALGORITHMS[algorithm].with_options({"rounds": rounds, "phase_length": phase_length})
    plan = made.plan(Budget(records, rounds, epsilon, records**-2.0 if delta is None else delta, 1.0, batch))
    plan = plan.distinct if sampler == "subset" else plan
    # A kind of message that is never sent has no noise.
    return made, replace(plan, releases=tuple(release for release in plan.releases if release.count))


@command(epilog="Example: silodp epsilon --rounds 25 --records 1234 --batch 604 --sigma 0.05 --clip 1 --delta 1e-6")
@_federated_run
@click.option("--sigma", type=POSITIVE, required=True, help="Noise per coordinate of a gradient message (or step).")
@click.option("--sigma-difference", type=POSITIVE, help="Noise per coordinate of a difference message (SPIDER).")
@click.option("--clip", type=POSITIVE, required=True, help="Clip threshold L on each record's gradient.")
@click.option("--by-round", is_flag=True, help="Also epsilon so far at the end of every round.")
@click.option("--person-silos", type=COUNT, default=1, help="Silos that hold records of one person.", show_default=True)
@click.option("--person-records", type=COUNT, default=1, help="Records of one person in a silo.", show_default=True)
@click.option("--tries", type=Number(min=1), help="Also epsilon of releasing the best of about N runs.")
def epsilon(
    as_json: bool,
    sigma: float,
    sigma_difference: float | None,
    clip: float,
    by_round: bool,
    person_silos: int,
    person_records: int,
    tries: float | None,
    **run: Any,
) -> None:
    """Compute the epsilon that a silo's whole transcript guarantees against replacing one record.

    Prints a proven upper bound, a lower bound from an explicit pair of neighbouring silos, and an estimate between.
    """
    algorithm, plan = _plan(1.0, **run)
    noise: dict[str, Any] = dict.fromkeys(("gradient", "anchor", "step"), sigma) | {"difference": sigma_difference}
    if any(noise[release.kind] is None for release in plan.releases):
        raise ConfigError(f"command line: --sigma-difference: missing: {run['algorithm']} also sends differences")
    releases = tuple(replace(release, noise=noise[release.kind] / clip) for release in plan.releases)
    plan = replace(plan, releases=releases)
    if person_records > run["records"]:
        raise ConfigError(
            f"command line: --person-records: {person_records}: must be at most --records = {run['records']}"
        )
    more: dict[str, Any] = {}
    if (person_silos, person_records) != (1, 1):
        more["epsilon_person"] = person_epsilon(plan, person_silos, person_records)
    if tries is not None:
        more["epsilon_selection"] = selection_epsilon([plan], tries)
    if by_round:
        from silodp.experiments.by_round import epsilon_by_round  # loads PyTorch

        more["by_round"] = [value for _, value in epsilon_by_round(algorithm, plan)]
    result = delivered_epsilon(plan, plan.budget.delta)
    # Disjoint batches hide their order, and no known neighbours reach the upper end.
    is_disjoint = "disjoint" in {release.sampler for release in releases}
    values = {
        "delivered_epsilon": result.upper,
        "lower": None if is_disjoint else result.lower,
        "estimate": None if is_disjoint else result.estimate,
        "delta": plan.budget.delta,
        "accountant": result.method,
        "adjacency": ADJACENCY,
        "sampling": plan.sampling,
        "noise_multiplier": plan.noise_multiplier,
        "releases": sum(release.count for release in releases),
    }
    _print(values | more, as_json)


@command(epilog="Example: silodp noise --rounds 25 --records 1234 --batch 604 --epsilon 1 --delta 1e-6")
@_federated_run
@click.option("--epsilon", type=POSITIVE, required=True, help="Wanted epsilon.")
@click.option("--clip", type=POSITIVE, default=1.0, help="Clip threshold L.", show_default=True)
def noise(as_json: bool, epsilon: float, clip: float, **run: Any) -> None:
    """Compute the smallest noise with which a federated run delivers a wanted epsilon, on the private side.

    The noises of an algorithm with several kinds of messages keep the proportion of its paper.
    """
    _, plan = _plan(epsilon, **run)
    calibrated = calibrated_plan(plan)
    result = delivered_epsilon(calibrated, plan.budget.delta)
    values = {f"sigma_{release.kind}": release.noise * clip for release in calibrated.releases}
    values |= {f"paper_sigma_{release.kind}": release.noise * clip for release in plan.releases}
    about = {
        "delivered_epsilon": result.upper,
        "delta": plan.budget.delta,
        "accountant": result.method,
        "adjacency": ADJACENCY,
        "sampling": calibrated.sampling,
        "noise_multiplier": calibrated.noise_multiplier,
    }
    _print(values | about, as_json)


@command(epilog="Example: silodp amplification --epsilon0 0.5 1 --reports 10000 --delta 1e-6")
@several("--epsilon0", type=float, required=True, help="Epsilon of a report.")
@several("--reports", type=int, required=True, help="N, shuffled reports.")
@several("--delta", type=float, required=True, help="Central delta.")
@click.option("--records", type=int, default=1, help="n, records of a report's sender.", show_default=True)
@as_json
def amplification(
    epsilon0: Sequence[float], reports: Sequence[int], delta: Sequence[float], records: int, as_json: bool
) -> None:
    """Bound the central epsilon of N local reports behind a shuffler (or sampled, or sent at random times).

    Neighbours replace one record of one sender. Where the assumptions of a bound fail, the table says why.
    """
    try:
        table = amplification_table(epsilon0, reports, delta, records=records)
    except ValueError as error:
        raise ConfigError(f"command line: --{str(error).replace(' = ', ': ', 1)}") from error
    if as_json:
        print(table.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
        return
    rows = []
    for row in table.to_dict("records"):
        side = "down" if row["bound"] == "lower bound" else "up"
        central = "-" if math.isnan(row["epsilon"]) else rounded(row["epsilon"], side)
        sizes = {"ε0": row["epsilon0"], "N": row["reports"], "n": row["records"], "δ": f"{row['delta']:g}"}
        rows.append(sizes | {"bound": row["bound"], "central ε": central, "": row["note"] or ""})
    print(tabulate(rows, headers="keys", tablefmt="plain", disable_numparse=True))
    print("Upper bounds, rounded up; “lower bound”: no analysis can give less (rounded down).")


# Quantity → the side to which it is rounded, so that a bound stays a bound, and what it is.
_ABOUT = {
    "delivered_epsilon": ("up", "proven upper bound: no two neighbouring silos lose more (rounded up)"),
    "lower": ("down", "privacy loss of an explicit pair of neighbouring silos (rounded down)"),
    "epsilon_person": ("up", "the upper bound for all records of one person"),
    "epsilon_selection": ("up", "the upper bound for releasing the best of a random number of runs (docs/privacy.md)"),
    "estimate": ("near", "the middle of both ends; claims nothing by itself"),
    "delta": ("near", "probability with which ε may be exceeded"),
    "accountant": ("", "method behind both ends (docs/accounting.md)"),
    "adjacency": ("", "difference of neighbouring silos"),
    "noise_multiplier": ("near", "noise over the sensitivity of a message"),
    "sampling": ("", "how the records of a message are drawn"),
    "releases": ("", "messages with noise that a silo sends"),
}
# By the beginning of the name.
_ABOUT_EACH = {
    "sigma_": ("up", "noise per coordinate that the wanted ε needs (rounded up)"),
    "paper_sigma_": ("up", "noise by the paper's formula"),
    "after_round_": ("up", "ε of all messages so far (rounded up)"),
}


def rounded(value: Any, side: str) -> str:
    """A number to four significant digits, rounded "up", "down" or to the "near" side; any other value as it is."""
    if not isinstance(value, float):
        return str(value)
    rounding = {"up": ROUND_CEILING, "down": ROUND_FLOOR}.get(side, ROUND_HALF_EVEN)
    return f"{float(Context(prec=4, rounding=rounding).create_decimal(repr(value))):g}"


def _print(values: dict, as_json: bool) -> None:
    if as_json:
        print(json.dumps(values, indent=1, sort_keys=True))
        return
    rounds = enumerate(values.pop("by_round", []), start=1)
    values |= {f"after_round_{number}": value for number, value in rounds}
    rows = []
    for name, value in values.items():
        matching = (about for start, about in _ABOUT_EACH.items() if name.startswith(start))
        side, about = _ABOUT.get(name) or next(matching, ("near", ""))
        rows.append((name, rounded(value, side), about))
    print(tabulate(rows, tablefmt="plain", disable_numparse=True))
