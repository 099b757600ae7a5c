"""Commands that need no training: Figure 2 of the check-ins paper, check-ins at equal central ε, noise formulas."""

import logging
from collections.abc import Sequence
from pathlib import Path

from silodp.cli.options import Number, experiment, job_command, option_of_values, output, run_file
from silodp.config.errors import ConfigError
from silodp.experiments.checkins.comparison import clients_of, compare
from silodp.experiments.formulas import formula_rows
from silodp.experiments.validation import experiment_of
from silodp.files import write_csv
from silodp.partition.trial_data import load_dataset
from silodp.privacy.shuffling.local_reports import amplification_table
from silodp.streams import Streams

log = logging.getLogger("silodp")

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
# What is on the axes of Figure 2 of the check-ins paper.
DELTA = 1e-6
CLIENTS = (1_000, 10_000, 100_000, 1_000_000)
EPSILON0 = tuple(step / 5 for step in range(1, 21))
# Beside no amplification at all; the last two are both ends of random allocation.
BOUNDS = (
    *("earlier bound", "check-ins paper 5.1", "clones, closed form", "clones, numerical", "random check-ins"),
    *("random allocation", "lower bound"),
)


@job_command("checkins-figure-2")
@output
def figure_2(output: Path) -> None:
    """Compute central epsilon after shuffling against epsilon0, bound by bound."""
    write_figure_2(output)


def write_figure_2(path: Path) -> None:
    bounds = ["none", *BOUNDS]
    write_csv(amplification_table(EPSILON0, CLIENTS, [DELTA], bounds=bounds), path)


@job_command()
@run_file
@experiment
@option_of_values("--epsilons", type=Number(min=0, max=50, min_open=True), default=EPSILONS, help="Central epsilons.")
@output
def checkins(run_file: Path, experiment: str, epsilons: Sequence[float], output: Path) -> None:
    """Compare random check-ins, shuffling, subsampling and no amplification at equal central epsilon."""
    run, config = experiment_of(run_file, experiment)
    if config.model.name != "logistic":
        raise ConfigError(f"{run_file}: experiments.{experiment}.model: {config.model.name}: must be logistic")
    streams = Streams(run.seed).child(experiment, "checkins")
    data = load_dataset(config, run)
    clients = [clients_of(data, config, run, streams.child(trial)) for trial in range(config.trials)]
    table = compare(experiment, clients, sorted(set(epsilons)), streams, delta=DELTA)
    write_csv(table, output)
    log.info("%s: %d protocols at %d epsilons", experiment, table["protocol"].nunique(), len(epsilons))


@job_command()
@output
def formulas(output: Path) -> None:
    """Bound the true epsilon of every noise formula of the papers, and of released programs."""
    write_csv(formula_rows(), output)
