"""The commands useful by themselves: the true ε of a federated run or of shuffled reports, noise for a wanted ε."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from tabulate import tabulate

from silodp.algorithms import ALGORITHMS
from silodp.cli.messages_file import read_messages
from silodp.cli.options import COUNT, DELTA, PATH, POSITIVE, Number, as_json, command, option_of_values
from silodp.config.errors import ConfigError, among
from silodp.privacy.calibration import calibrated_plan
from silodp.privacy.message_counts import RECORD, Whom
from silodp.privacy.person import person_epsilon
from silodp.privacy.plan import ADJACENCY, MOST_MESSAGES, Budget, PrivacyPlan
from silodp.privacy.private_selection import selection_epsilon
from silodp.privacy.shuffling.local_reports import amplification_table
from silodp.privacy.standing import standing
from silodp.privacy.true_epsilon import ends, refuting_epsilon


class _RequiredOption(click.Option):
    """An option that must be given, unless --messages describes the run or --amplification asks for none."""

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, required=True, **keywords)

    def get_help_extra(self, context: click.Context) -> Any:
        described = any(option.name == "messages" for option in context.command.params)
        word = "required without --messages or --amplification" if described else "required"
        return super().get_help_extra(context) | {"required": word}

    def process_value(self, context: click.Context, value: Any) -> Any:
        try:
            return super().process_value(context, value)
        except click.MissingParameter:
            if isinstance(context.params.get("messages"), Path) or context.params.get("amplification"):
                return None
            raise


_RUN = (
    click.option("--algorithm", default="minibatch_sgd", help="A registered algorithm.", show_default=True),
    click.option(
        "--rounds", type=click.IntRange(1, MOST_MESSAGES), cls=_RequiredOption, help="R, rounds of communication."
    ),
    click.option("--records", type=COUNT, cls=_RequiredOption, help="n, training records of a silo."),
    click.option(
        "--batch", type=COUNT, cls=_RequiredOption, help="K, records drawn in a round (local_sgd: local steps)."
    ),
    click.option("--delta", type=DELTA, help="Delta (default 1/n^2)."),
    click.option("--phase-length", type=COUNT, default=1, help="q of fedprox_spider.", show_default=True),
    as_json,
)


def _federated_run(function: Callable) -> Callable:
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
    # A kind of message that is never sent has no noise.
    return made, replace(plan, releases=tuple(release for release in plan.releases if release.count))


@command(epilog="Example: silodp epsilon --rounds 25 --records 1234 --batch 604 --sigma 0.05 --clip 1 --delta 1e-6")
@click.option(
    "--messages",
    type=PATH,
    is_eager=True,
    help="YAML file of a silo's messages (docs/privacy.md); only --claimed, --tries and --person-* go with it.",
)
@click.option(
    "--amplification",
    is_flag=True,
    is_eager=True,
    help="Bound the central epsilon of N local reports; only --epsilon0, --reports, --delta and --records go with it.",
)
@option_of_values("--epsilon0", type=Number(min=0, max=500, min_open=True), help="Epsilon of a report.")
@option_of_values("--reports", type=COUNT, help="N, reports behind a shuffler.")
@_federated_run
@click.option(
    "--sigma", type=POSITIVE, cls=_RequiredOption, help="Noise per coordinate of a gradient message (or step)."
)
@click.option("--sigma-difference", type=POSITIVE, help="Noise per coordinate of a difference message (SPIDER).")
@click.option("--clip", type=POSITIVE, cls=_RequiredOption, help="Clip threshold L on each record's gradient.")
@click.option("--by-round", is_flag=True, help="Also epsilon so far at the end of every round.")
@click.option("--person-silos", type=COUNT, default=1, help="Silos that hold records of one person.", show_default=True)
@click.option("--person-records", type=COUNT, default=1, help="Records of one person in a silo.", show_default=True)
@click.option("--claimed", type=POSITIVE, help="Also whether a claim of this epsilon is kept.")
@click.option("--tries", type=Number(min=1), help="Also epsilon of releasing the best of about N runs.")
def epsilon(
    as_json: bool,
    sigma: float,
    sigma_difference: float | None,
    clip: float,
    by_round: bool,
    person_silos: int,
    person_records: int,
    claimed: float | None,
    tries: float | None,
    messages: Path | None,
    amplification: bool,
    epsilon0: Sequence[float],
    reports: Sequence[int],
    **run: Any,
) -> None:
    """Bound the true epsilon of a silo's whole transcript against replacing one record.

    Prints [lower, upper]: no two neighbouring silos lose more than the upper end, and an explicit pair reaches the
    lower one. A claim is kept from the upper end on, violated below the lower one, and not certified between.

    With --amplification, the central epsilon of N local reports behind a shuffler (or sampled, or sent at random
    times), of senders with --records each (default 1), against replacing one record of one sender. Where the
    assumptions of a bound fail, the table says why.
    """
    if amplification:
        _refuse_other_options("amplification", "epsilon0", "reports", "delta", "records")
        _print_amplification(epsilon0, reports, run["delta"], run["records"] or 1)
        return
    if epsilon0 or reports:
        raise ConfigError(f"command line: --{'epsilon0' if epsilon0 else 'reports'}: goes with --amplification")
    if messages is None:
        algorithm, plan = _run_of_options(run, sigma, sigma_difference, clip)
    else:
        _refuse_other_options("messages", "claimed", "tries", "person_silos", "person_records", "as_json")
        plan = read_messages(messages)
    if person_records > plan.budget.n:
        allowed = f"must be at most the silo's {plan.budget.n} records"
        raise ConfigError(f"command line: --person-records: {person_records}: {allowed}")
    more: dict[str, Any] = {}
    if Whom(person_silos, person_records) != RECORD:
        more["epsilon_person"] = person_epsilon(plan, Whom(person_silos, person_records))
    if tries is not None:
        more["epsilon_selection"] = selection_epsilon([plan], tries)
    if by_round:
        from silodp.experiments.privacy_table import epsilon_by_round  # loads PyTorch

        more["by_round"] = [value for _, value in epsilon_by_round(algorithm, plan)]
    values = _bounds(plan) | {"releases": sum(release.count for release in plan.releases)}
    if claimed is not None:
        values["claim"] = standing(claimed, values["lower"], values["delivered_epsilon"])
    _print(values | more, as_json)


def _run_of_options(
    run: dict[str, Any], sigma: float, sigma_difference: float | None, clip: float
) -> tuple[Any, PrivacyPlan]:
    algorithm, plan = _plan(1.0, **run)
    noise: dict[str, Any] = {
        release.kind: sigma_difference if release.kind == "difference" else sigma for release in plan.releases
    }
    if None in noise.values():
        raise ConfigError(f"command line: --sigma-difference: missing: {run['algorithm']} also sends differences")
    releases = tuple(replace(release, noise=noise[release.kind] / clip) for release in plan.releases)
    return algorithm, replace(plan, releases=releases)


def _refuse_other_options(mode: str, *kept: str) -> None:
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") == ParameterSource.COMMANDLINE
        if given and option.name not in (mode, *kept):
            raise ConfigError(f"command line: {option.opts[0]}: must be left out with --{mode}")


def _bounds(plan: PrivacyPlan) -> dict[str, Any]:
    result = ends([plan])
    lower = refuting_epsilon(plan, result, everyone=True)
    return {
        "delivered_epsilon": result.upper,
        "lower": lower,
        "delta": plan.budget.delta,
        "accountant": result.method,
        "adjacency": ADJACENCY,
        "sampling": plan.sampling,
        "noise_multiplier": plan.noise_multiplier,
    }


@command(epilog="Example: silodp noise --rounds 25 --records 1234 --batch 604 --epsilon 1 --delta 1e-6")
@_federated_run
@click.option("--epsilon", type=POSITIVE, required=True, help="Wanted epsilon.")
@click.option("--clip", type=POSITIVE, default=1.0, help="Clip threshold L.", show_default=True)
def noise(as_json: bool, epsilon: float, clip: float, **run: Any) -> None:
    """Compute the smallest noise whose upper bound on the true epsilon is at most a wanted epsilon.

    The noises of an algorithm with several kinds of messages keep the proportion of its paper.
    """
    _, plan = _plan(epsilon, **run)
    calibrated = calibrated_plan(plan)
    values = {f"sigma_{release.kind}": release.noise * clip for release in calibrated.releases}
    values |= {f"paper_sigma_{release.kind}": release.noise * clip for release in plan.releases}
    _print(values | _bounds(calibrated), as_json)


def _print_amplification(epsilon0: Sequence[float], reports: Sequence[int], delta: float | None, records: int) -> None:
    if not epsilon0 or not reports or delta is None:
        raise ConfigError("command line: --epsilon0, --reports, --delta: must be given with --amplification")
    table = amplification_table(epsilon0, reports, [delta], records=records)
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
    "true ε": ("", "proven bounds, rounded outwards: neighbouring silos reach the lower one, none lose more"),
    "claim": ("", "whether the bounds keep the claim, violate it, or certify neither"),
    "epsilon_person": ("up", "upper bound for all records of one person"),
    "epsilon_selection": ("up", "upper bound for releasing the best of a random number of runs (docs/privacy.md)"),
    "delta": ("near", "probability with which ε may be exceeded"),
    "accountant": ("", "method behind both ends (docs/accounting.md)"),
    "adjacency": ("", "difference of neighbouring silos"),
    "noise_multiplier": ("near", "noise over what one replaced record moves; that of Opacus is twice as large"),
    "sampling": ("", "how the records of a message are drawn"),
    "releases": ("", "messages with noise that a silo sends"),
}
# By the beginning of the name.
_ABOUT_EACH = {
    "sigma_": ("up", "noise per coordinate that the wanted ε needs (rounded up)"),
    "paper_sigma_": ("up", "noise by the paper's formula"),
    "after_round_": ("up", "upper bound on the true ε of all messages so far"),
}


def rounded(value: Any, side: str) -> str:
    """A number to four significant digits, rounded "up", "down" or to the "near" side; any other value as it is."""
    if not isinstance(value, float):
        return str(value)
    rounding = {"up": ROUND_CEILING, "down": ROUND_FLOOR}.get(side, ROUND_HALF_EVEN)
    return f"{float(Context(prec=4, rounding=rounding).create_decimal(repr(value))):g}"


def _print(values: dict, as_json: bool) -> None:
    lower = values["lower"]
    if as_json:
        print(json.dumps(values | {"lower": None if math.isnan(lower) else lower}, indent=1, sort_keys=True))
        return
    ends = "0" if math.isnan(lower) else rounded(lower, "down"), rounded(values.pop("delivered_epsilon"), "up")
    del values["lower"]
    values = {"true ε": f"[{', '.join(ends)}]"} | values
    rounds = enumerate(values.pop("by_round", []), start=1)
    values |= {f"after_round_{number}": value for number, value in rounds}
    rows = []
    for name, value in values.items():
        matching = (about for start, about in _ABOUT_EACH.items() if name.startswith(start))
        side, about = _ABOUT.get(name) or next(matching, ("near", ""))
        rows.append((name, rounded(value, side), about))
    print(tabulate(rows, tablefmt="plain", disable_numparse=True))
