"""The commands about data: fetch, partition."""

import logging
from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd
from threadpoolctl import threadpool_limits

from silodp.cli.options import PATH, among, experiment, job_command, run_file
from silodp.datasets import DATASETS
from silodp.datasets.fetch import fetch as get
from silodp.datasets.sources import sources
from silodp.experiments.made_for import silos_for
from silodp.experiments.validation import experiment_of, load
from silodp.experiments.variants import readings_of
from silodp.files import write_csv
from silodp.partition.partition import write_partition
from silodp.partition.trial_data import load_dataset, partition_and_measure, write_records

log = logging.getLogger("silodp")


@job_command(epilog="Example: silodp fetch mnist")
@click.argument("names", metavar="DATASET...", nargs=-1, required=True)
@click.option("--run-file", type=PATH, help="Run file whose `data` names cache, mirror and limits.")
@click.option("--listing", type=PATH, help="CSV file for the files' names and checksums.")
def fetch(names: Sequence[str], run_file: Path | None, listing: Path | None) -> None:
    """Download the files of data sets, or of `all`, and check their SHA-256.

    The mirror (SILODP_DATA_MIRROR) is tried first, then the official address; SILODP_DATA_CACHE names their folder.
    """
    places: dict = {}
    if run_file:
        data = load(run_file).run.data
        places = {"cache": data.cache, "mirror": data.mirror, "deadline": data.deadline_seconds}
        places |= {"least_speed": data.least_bytes_per_second}
    rows = []
    for name in DATASETS if list(names) == ["all"] else names:
        among("dataset", name, DATASETS)
        paths = get(name, **places, progress=log.isEnabledFor(logging.INFO))
        what = f"{len(paths)} files in {paths[0].parent}" if paths else "ships with scikit-learn, nothing to fetch"
        log.info("%s: %s", name, what)
        if paths:
            files = sources(name).files
            rows += [{"dataset": name, "file": source.file, "checksum": source.digest} for source in files]
    if listing:
        write_csv(pd.DataFrame(rows, columns=["dataset", "file", "checksum"]), listing)


@job_command()
@run_file
@experiment
@click.option("--reading", default="default", help="Name of the reading.")
@click.option("--output", type=PATH, required=True, help="Folder for the index and its summaries.")
def partition(run_file: Path, experiment: str, reading: str, output: Path) -> None:
    """Divide an experiment's records among silos, one partition a trial, with label counts and heterogeneity."""
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
