"""The commands of random check-ins: Figure 2 of their paper, and the comparison at equal central ε."""

import logging
from collections.abc import Sequence
from pathlib import Path

from silodp.cli.experiments import experiment_of
from silodp.cli.options import Number, experiment, job_command, output, run_file, several
from silodp.config.errors import ConfigError
from silodp.experiments.checkins import figure_2 as figure
from silodp.experiments.checkins.comparison import clients_of, compare
from silodp.federation.rng import Streams
from silodp.federation.trial_data import load_dataset
from silodp.files import write_csv
from silodp.privacy.shuffling.amplification import amplification_table

log = logging.getLogger("silodp")

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@job_command("checkins-figure-2")
@output
def figure_2(output: Path) -> None:
    """Compute central epsilon after shuffling against epsilon0, bound by bound."""
    write_figure_2(output)


def write_figure_2(path: Path) -> None:
    """Write the table behind Figure 2 of the check-ins paper."""
    bounds = ["none", *figure.BOUNDS]
    write_csv(amplification_table(figure.EPSILON0, figure.CLIENTS, [figure.DELTA], bounds=bounds), path)


@job_command()
@run_file
@experiment
@several("--epsilons", type=Number(min=0, max=50, min_open=True), default=EPSILONS, help="Central epsilons.")
@output
def checkins(run_file: Path, experiment: str, epsilons: Sequence[float], output: Path) -> None:
    """Compare random check-ins, shuffling, subsampling and no amplification at equal central epsilon."""
    run, config = experiment_of(run_file, experiment)
    if config.model.name != "logistic":
        raise ConfigError(f"{run_file}: experiments.{experiment}.model: {config.model.name}: must be logistic")
    streams = Streams(run.seed).child(experiment, "checkins")
    data = load_dataset(config, run)
    clients = [clients_of(data, config, run, streams.child(trial)) for trial in range(config.trials)]
    table = compare(experiment, clients, sorted(set(epsilons)), streams, delta=figure.DELTA)
    write_csv(table, output)
    log.info("%s: %d protocols at %d epsilons", experiment, table["protocol"].nunique(), len(epsilons))
