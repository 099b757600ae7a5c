"""Subcommands useful by themselves: the delivered ε of a federated run, the noise for a wanted ε, amplification."""

import argparse
import dataclasses
import json
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.cli.parser import aligned, near
from silodp.privacy.plan import ADJACENCY, Budget, PrivacyPlan

if TYPE_CHECKING:
    from silodp.algorithms.base import Algorithm


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("epsilon", epsilon, "delivered epsilon of a federated run")
    _describe_run(sub)
    sub.add_argument(
        "--sigma", type=float, required=True, help="noise per coordinate of a gradient message (or local step)"
    )
    sub.add_argument("--sigma-difference", type=float, help="noise per coordinate of a difference message (SPIDER)")
    sub.add_argument("--clip", type=float, required=True, help="clip threshold L on each record's gradient")
    sub.add_argument("--by-round", action="store_true", help="also epsilon so far at the end of every round")
    sub.add_argument("--figure", help="with --by-round: draw it, as PDF and PNG beside each other under this name")
    sub.add_argument("--person-silos", type=int, default=1, help="silos that hold records of one person (default 1)")
    sub.add_argument("--person-records", type=int, default=1, help="records of one person in a silo (default 1)")
    sub.add_argument("--tries", type=float, help="also epsilon of the best of this many runs, on average")

    sub = add("noise", noise, "noise for a wanted epsilon")
    _describe_run(sub)
    sub.add_argument("--epsilon", type=float, required=True, help="wanted epsilon")
    sub.add_argument("--clip", type=float, default=1.0, help="clip threshold L (default 1)")

    sub = add("amplification", amplification, "central epsilon of shuffled or sampled local reports")
    sub.add_argument("--epsilon0", type=float, nargs="+", required=True, help="epsilon of a report, one or several")
    sub.add_argument("--reports", type=int, nargs="+", required=True, help="N, shuffled reports, one or several")
    sub.add_argument("--delta", type=float, nargs="+", required=True, help="central delta, one or several")
    sub.add_argument("--records", type=int, default=1, help="n, records of a report's sender (default 1)")
    sub.add_argument("--json", action="store_true", help="print JSON")


def _describe_run(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--algorithm", default="minibatch_sgd", help="a registered algorithm (default minibatch_sgd)")
    sub.add_argument("--rounds", type=int, required=True, help="R, rounds of communication")
    sub.add_argument("--records", type=int, required=True, help="n, training records of a silo")
    sub.add_argument("--batch", type=int, required=True, help="K, records drawn in a round (local steps of local_sgd)")
    sub.add_argument("--delta", type=float, help="delta (default 1/n^2)")
    sub.add_argument(
        "--sampler",
        choices=("replacement", "subset"),
        default="replacement",
        help="records of a message: drawn with replacement (default), or distinct ones",
    )
    sub.add_argument("--phase-length", type=int, default=1, help="q of fedprox_spider (default 1)")
    sub.add_argument("--json", action="store_true", help="print JSON")


def _plan(options: argparse.Namespace, epsilon: float) -> PrivacyPlan:
    if options.algorithm not in ALGORITHMS:
        raise ValueError(
            f"command line: --algorithm: {options.algorithm!r}: must be one of {', '.join(sorted(ALGORITHMS))}"
            + near(options.algorithm, ALGORITHMS)
        )
    for name in ("rounds", "records", "batch", "phase_length"):
        if getattr(options, name) < 1:
            raise ValueError(f"command line: --{name.replace('_', '-')}: {getattr(options, name)}: must be at least 1")
    if options.batch > options.records:
        raise ValueError(f"command line: --batch: {options.batch}: must be at most --records = {options.records}")
    for name in ("clip", "epsilon", "sigma", "sigma_difference"):
        value = getattr(options, name, None)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"command line: --{name.replace('_', '-')}: {value}: must be positive and finite")
    delta = options.delta if options.delta is not None else options.records**-2.0
    if not 0 < delta < 1:
        raise ValueError(f"command line: --delta: {delta}: must lie between 0 and 1 (the default 1/n^2 needs n > 1)")
    plan = _algorithm(options).plan(Budget(options.records, options.rounds, epsilon, delta, 1.0, options.batch))
    return plan.distinct if options.sampler == "subset" else plan


def _algorithm(options: argparse.Namespace) -> "Algorithm":
    return ALGORITHMS[options.algorithm].with_options({"rounds": options.rounds, "phase_length": options.phase_length})


def epsilon(options: argparse.Namespace) -> None:
    """Delivered epsilon of a federated run: what a silo's whole transcript guarantees against replacing one record.

    Prints a proven upper bound, a lower bound from an explicit pair of neighbouring silos, and an estimate between.
    """
    from silodp.privacy.accounting.accountant import delivered_epsilon

    plan = _plan(options, epsilon=1.0)
    kinds = dict.fromkeys(("gradient", "anchor", "step"), options.sigma) | {"difference": options.sigma_difference}
    releases = []
    for release in plan.releases:
        if not release.count:
            continue
        sigma = kinds.get(release.kind)
        if sigma is None:
            raise ValueError(f"command line: --sigma-difference: missing: {options.algorithm} also sends differences")
        releases.append(dataclasses.replace(release, noise=sigma / options.clip))
    plan = dataclasses.replace(plan, releases=tuple(releases))
    beside = _beside(options, plan)
    result = delivered_epsilon(plan, plan.budget.delta)
    _print(
        options,
        {
            "delivered_epsilon": result.upper,
            # Of disjoint batches the order is secret, and no neighbours are known that reach the upper end.
            "lower": None if "disjoint" in {one.sampler for one in releases} else result.lower,
            "estimate": None if "disjoint" in {one.sampler for one in releases} else result.estimate,
            "delta": plan.budget.delta,
            "accountant": result.method,
            "adjacency": ADJACENCY,
            "sampling": plan.sampling,
            "noise_multiplier": plan.noise_multiplier,
            "releases": sum(release.count for release in releases),
        }
        | beside,
    )


def _beside(options: argparse.Namespace, plan: PrivacyPlan) -> dict:
    """What is asked for beside the record's epsilon: a person's, a chosen run's, and by round."""
    from silodp.experiments.by_round import epsilon_by_round
    from silodp.privacy.person import person_epsilon
    from silodp.privacy.selection import selection_epsilon

    found: dict = {}
    silos, records = options.person_silos, options.person_records
    for name, value, most in (("silos", silos, math.inf), ("records", records, options.records)):
        if not 1 <= value <= most:
            allowed = "at least 1" if most == math.inf else f"between 1 and --records = {most}"
            raise ValueError(f"command line: --person-{name}: {value}: must be {allowed}")
    if options.tries is not None and not 1 <= options.tries < math.inf:
        raise ValueError(f"command line: --tries: {options.tries}: must be at least 1, and finite")
    if options.figure and not options.by_round:
        raise ValueError(f"command line: --figure: {options.figure}: needs --by-round")
    if (silos, records) != (1, 1):
        found["epsilon_person"] = person_epsilon(plan, silos, records)
    if options.tries is not None:
        found["epsilon_selection"] = selection_epsilon([plan], options.tries)
    if options.by_round:
        rounds = epsilon_by_round(_algorithm(options), plan)
        found["by_round"] = [value for _, value in rounds]
        if options.figure:
            _draw(options, rounds)
    return found


def _draw(options: argparse.Namespace, rounds: list[tuple[int, float]]) -> None:
    from silodp.report.figures import save
    from silodp.report.figures.by_round import draw_by_round

    rows = pd.DataFrame(rounds, columns=["round", "epsilon"])
    rows = rows.assign(algorithm=options.algorithm, claimed_epsilon=math.nan)
    save(draw_by_round(rows, title=f"ε by round, n = {options.records}, K = {options.batch}"), options.figure)


def noise(options: argparse.Namespace) -> None:
    """Smallest noise with which a federated run delivers a wanted epsilon, on the private side.

    An algorithm with several kinds of messages keeps their noises in the proportion that its paper gives them.
    """
    from silodp.privacy.accounting.accountant import delivered_epsilon
    from silodp.privacy.calibration import calibrated_plan

    plan = _plan(options, epsilon=options.epsilon)
    # The noise of a kind that is never sent is nobody's.
    plan = dataclasses.replace(plan, releases=tuple(release for release in plan.releases if release.count))
    found = calibrated_plan(plan)
    result = delivered_epsilon(found, plan.budget.delta)
    sigmas = {f"sigma_{release.kind}": release.noise * options.clip for release in found.releases}
    papers = {f"paper_sigma_{release.kind}": release.noise * options.clip for release in plan.releases}
    _print(
        options,
        sigmas
        | papers
        | {
            "delivered_epsilon": result.upper,
            "delta": plan.budget.delta,
            "accountant": result.method,
            "adjacency": ADJACENCY,
            "sampling": found.sampling,
            "noise_multiplier": found.noise_multiplier,
        },
    )


def amplification(options: argparse.Namespace) -> None:
    """Central epsilon of N local reports behind a shuffler (or sampled, or sent at random times), bound by bound.

    Replacing one record of one sender; a bound whose assumptions fail shows none, and why.
    """
    from silodp.privacy.shuffling.amplification import amplification_table

    try:
        table = amplification_table(options.epsilon0, options.reports, options.delta, records=options.records)
    except ValueError as error:
        raise ValueError(f"command line: --{str(error).replace(' = ', ': ', 1)}") from error
    if options.json:
        print(table.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
    else:
        rows = [
            {
                "ε0": row["epsilon0"],
                "N": row["reports"],
                "n": row["records"],
                "δ": f"{row['delta']:g}",
                "bound": row["bound"],
                "central ε": "-"
                if math.isnan(row["epsilon"])
                else rounded(row["epsilon"], "down" if row["bound"] == "lower bound" else "up"),
                "": row["note"] or "",
            }
            for row in table.to_dict("records")
        ]
        print(aligned(rows))
        print("Upper bounds, rounded up; “lower bound”: no analysis can give less (rounded down).")


# What a number is, and to which side it is rounded where it is shown in short: a bound stays one.
_ABOUT = {
    "delivered_epsilon": ("up", "proven upper bound: no two neighbouring silos lose more (rounded up)"),
    "lower": ("down", "what two neighbouring silos that can be written down do lose (rounded down)"),
    "epsilon_person": ("up", "the same for all records of one person"),
    "epsilon_selection": ("up", "of the best of a random number of runs, with the choice (docs/privacy.md)"),
    "estimate": ("near", "the middle of both ends; claims nothing by itself"),
    "delta": ("near", "probability with which ε may be exceeded"),
    "accountant": ("", "how both ends were found (docs/accounting.md)"),
    "adjacency": ("", "what neighbouring silos differ in"),
    "noise_multiplier": ("near", "noise over the sensitivity of a message"),
    "sampling": ("", "how the records of a message are drawn"),
    "releases": ("", "messages with noise that a silo sends"),
}
# By the beginning of a name, for what there is several of.
_ABOUT_EACH = {
    "sigma_": ("up", "noise per coordinate that the wanted ε needs (rounded up)"),
    "paper_sigma_": ("up", "noise by the paper's formula"),
    "after_round_": ("up", "ε of all messages so far (rounded up)"),
}
# The two ends of an ε seldom agree in more; --json has every digit.
_DIGITS = 4


def rounded(value: Any, side: str) -> str:
    """A number to four significant digits, towards the side that keeps it a bound; anything else as it is."""
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        return str(value)
    rounding = {"up": ROUND_CEILING, "down": ROUND_FLOOR}.get(side, ROUND_HALF_EVEN)
    number = Decimal(repr(value))
    last = Decimal(1).scaleb(number.adjusted() - _DIGITS + 1)
    return f"{float(number.quantize(last, rounding=rounding)):g}"


def _print(options: argparse.Namespace, values: dict) -> None:
    if options.json:
        # Every digit.
        print(json.dumps(values, indent=1, sort_keys=True))
        return
    shown = {}
    by_round = values.pop("by_round", [])
    values |= {f"after_round_{number}": value for number, value in enumerate(by_round, start=1)}
    for name, value in values.items():
        # Noise is rounded up: a smaller one would not be enough.
        of_several = (about for start, about in _ABOUT_EACH.items() if name.startswith(start))
        side, about = _ABOUT.get(name) or next(of_several, ("near", ""))
        shown[name] = (rounded(value, side), about)
    width = max(map(len, shown))
    column = max(len(text) for text, about in shown.values() if about)
    for name, (text, about) in shown.items():
        print(f"{name:<{width}}  {text:<{column}}  {about}".rstrip())
