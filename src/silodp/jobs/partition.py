"""Divide an experiment's records among silos."""

from pathlib import Path

from threadpoolctl import threadpool_limits

from silodp.config.errors import among
from silodp.experiments.made_for import silos_for
from silodp.experiments.validation import experiment_of
from silodp.experiments.variants import readings_of
from silodp.partition.partition import write_partition
from silodp.partition.trial_data import load_dataset, partition_and_measure, write_records


def partition(run_file: Path, experiment: str, output: Path, reading: str = "default") -> None:
    """Write one partition a trial to the folder `output`, with label counts and heterogeneity."""
    run, config = experiment_of(run_file, experiment)
    readings = readings_of(config)
    label = readings[among("reading", reading, readings)]
    # As in training (models/threads.py): cores would change results. SciPy's library is loaded by now.
    threadpool_limits(1, user_api="blas")
    data = load_dataset(config, run)
    parts, measured, kept = partition_and_measure(experiment, config, config.variants()[label], run, data)
    # Of a user's file only the number of records a silo is written: an extreme target is a cell of the file.
    y = None if config.is_own else data.y
    write_partition(output, parts, y=y, heterogeneity=measured)
    write_records(output, kept, silos_for(output, experiment, config, config.variants()[label], run))
