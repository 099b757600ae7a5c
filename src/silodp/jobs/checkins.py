"""Compare random check-ins with other amplification."""

import logging
from pathlib import Path

from silodp.config.errors import ConfigError
from silodp.experiments.checkins.comparison import clients_of, compare
from silodp.experiments.validation import experiment_of
from silodp.federation.streams import Streams
from silodp.federation.trial_data import load_dataset
from silodp.files import write_csv

log = logging.getLogger("silodp")

# Central ones.
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6


def checkins(run_file: Path, experiment: str, output: Path) -> None:
    """Compare random check-ins, shuffling, subsampling and no amplification at equal central epsilon."""
    run, config = experiment_of(run_file, experiment)
    if config.model.name != "logistic":
        raise ConfigError(f"{run_file}: experiments.{experiment}.model: {config.model.name}: must be logistic")
    streams = Streams(run.seed).child(experiment, "checkins")
    data = load_dataset(config, run)
    clients = [clients_of(data, config, run, streams.child(trial)) for trial in range(config.trials)]
    table = compare(experiment, clients, EPSILONS, streams, delta=DELTA)
    write_csv(table, output)
    log.info("%s: %d protocols at %d epsilons", experiment, table["protocol"].nunique(), len(EPSILONS))
