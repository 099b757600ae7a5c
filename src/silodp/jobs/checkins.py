"""Compare random check-ins, shuffling, subsampling and no amplification at equal central epsilon."""

from pathlib import Path

from silodp.experiments.checkins.comparison import clients_of, compare
from silodp.experiments.validation import experiment_of
from silodp.files import write_csv
from silodp.partition.trial_data import load_dataset
from silodp.streams import Streams

# Central ones.
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6


def checkins(run_file: Path, experiment: str, output: Path) -> None:
    run, config = experiment_of(run_file, experiment)
    streams = Streams(run.seed).child(experiment, "checkins")
    data = load_dataset(config, run)
    clients = [clients_of(data, config, run, streams.child(trial)) for trial in range(config.trials)]
    write_csv(compare(experiment, clients, EPSILONS, streams, delta=DELTA), output)
