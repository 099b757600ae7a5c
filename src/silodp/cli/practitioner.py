"""Subcommands useful by themselves: the delivered ε of a federated run, the noise for a wanted ε, amplification."""

import argparse
import dataclasses
import json
import math
from collections.abc import Callable

from silodp.privacy.plan import ADJACENCY, Budget, PrivacyPlan


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("epsilon", epsilon, "delivered epsilon of a federated run")
    _describe_run(sub)
    sub.add_argument(
        "--sigma", type=float, required=True, help="noise per coordinate of a gradient message (or local step)"
    )
    sub.add_argument("--sigma-difference", type=float, help="noise per coordinate of a difference message (SPIDER)")
    sub.add_argument("--clip", type=float, required=True, help="clip threshold L on each record's gradient")

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
    sub.add_argument("--phase-length", type=int, default=1, help="q of fedprox_spider (default 1)")
    sub.add_argument("--json", action="store_true", help="print JSON")


def _plan(options: argparse.Namespace, epsilon: float) -> PrivacyPlan:
    from silodp.algorithms import ALGORITHMS

    if options.algorithm not in ALGORITHMS:
        raise ValueError(
            f"command line: --algorithm: {options.algorithm!r}: must be one of {', '.join(sorted(ALGORITHMS))}"
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
    algorithm = ALGORITHMS[options.algorithm].with_options(
        {"rounds": options.rounds, "phase_length": options.phase_length}
    )
    return algorithm.plan(Budget(options.records, options.rounds, epsilon, delta, 1.0, options.batch))


def epsilon(options: argparse.Namespace) -> None:
    """Delivered epsilon of a federated run: what a silo's whole transcript guarantees against replacing one record.

    Prints a proven upper bound, a lower bound from an explicit pair of neighbouring silos, and an estimate between.
    """
    from silodp.privacy.accounting import delivered_epsilon

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
    result = delivered_epsilon(plan, plan.budget.delta)
    _print(
        options,
        {
            "delivered_epsilon": result.upper,
            "lower": result.lower,
            "estimate": result.estimate,
            "delta": plan.budget.delta,
            "accountant": result.method,
            "adjacency": ADJACENCY,
            "sampling": plan.sampling,
            "noise_multiplier": plan.noise_multiplier,
            "releases": sum(release.count for release in releases),
        },
    )


def noise(options: argparse.Namespace) -> None:
    """Smallest noise with which a federated run delivers a wanted epsilon, on the private side.

    An algorithm with several kinds of messages keeps their noises in the proportion that its paper gives them.
    """
    from silodp.privacy.accounting import delivered_epsilon
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
    from silodp.privacy.amplification import amplification_table

    try:
        table = amplification_table(options.epsilon0, options.reports, options.delta, records=options.records)
    except ValueError as error:
        raise ValueError(f"command line: --{str(error).replace(' = ', ': ', 1)}") from error
    if options.json:
        print(table.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
    else:
        print(table.to_string(index=False, na_rep="-"))


def _print(options: argparse.Namespace, values: dict) -> None:
    if options.json:
        print(json.dumps(values, indent=1, sort_keys=True))
        return
    width = max(map(len, values))
    for name, value in values.items():
        # Every digit: a rounded noise could be too small, a rounded ε too good.
        print(f"{name:<{width}}  {value}")
