"""Subcommands of random check-ins: Figure 2 of their paper, and the comparison at equal central ε beyond it."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from silodp.cli.options import experiment_command, resolved_with
from silodp.config.errors import ConfigError
from silodp.experiments.checkins.figure_2 import BOUNDS, CLIENTS, DELTA, EPSILON0
from silodp.federation.rng import Streams
from silodp.files import write_csv

log = logging.getLogger("silodp")

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("checkins-figure-2", figure_2, "Figure 2 of the check-ins paper, with later bounds")
    sub.add_argument("--output", type=Path, required=True, help="CSV file; `silodp redraw` draws its figure")

    sub = experiment_command(add, "checkins", checkins, "random check-ins against other amplification")
    sub.add_argument("--trials", type=int, help="the first so many (default: the experiment's)")
    sub.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS, metavar="E", help="central epsilon")
    sub.add_argument("--delta", type=float, default=DELTA, help="central delta (default %(default)g)")
    sub.add_argument("--output", type=Path, required=True, help="CSV file; `silodp redraw` draws its figure")


def figure_2(options: argparse.Namespace) -> None:
    """Central epsilon after shuffling against epsilon0, bound by bound."""
    from silodp.privacy.shuffling.amplification import amplification_table

    write_csv(amplification_table(EPSILON0, CLIENTS, [DELTA], bounds=["none", *BOUNDS]), options.output)


def checkins(options: argparse.Namespace) -> None:
    """Test error of random check-ins, shuffling, subsampling and no amplification at equal central epsilon."""
    resolved = resolved_with(options)
    config = resolved.experiments[options.experiment]
    if config.model.name != "logistic":
        raise ConfigError(
            f"{options.run_file}: experiments.{options.experiment}.model: {config.model.name}: must be logistic"
        )
    count = config.trials if options.trials is None else options.trials
    if not 1 <= count <= config.trials:
        raise ConfigError(f"command line: --trials: {count}: must lie in 1 … {config.trials}")
    for epsilon in options.epsilons:
        if not 0 < epsilon <= 50:
            raise ConfigError(f"command line: --epsilons: {epsilon:g}: must lie above 0 and be at most 50")
    if not 0 < options.delta < 1:
        raise ConfigError(f"command line: --delta: {options.delta:g}: must lie strictly between 0 and 1")
    from silodp.experiments.checkins.comparison import clients_of, compare
    from silodp.federation.trial_data import load_dataset

    streams = Streams(resolved.run.seed).child(options.experiment, "checkins")
    data = load_dataset(config, resolved.run)
    trials = [clients_of(data, config, resolved.run, streams.child(trial)) for trial in range(count)]
    table = compare(options.experiment, trials, sorted(set(options.epsilons)), streams, delta=options.delta)
    write_csv(table, options.output)
    log.info("%s: %d protocols at %d epsilons", options.experiment, table["protocol"].nunique(), len(options.epsilons))
