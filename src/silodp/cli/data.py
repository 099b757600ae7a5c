"""Subcommands about data: fetch, partition."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from silodp.cli.options import among, experiment_command, resolved_with
from silodp.datasets import DATASETS
from silodp.datasets.sources import sources
from silodp.experiments.names import readings_of
from silodp.experiments.validation import load
from silodp.federation.partition import write_partition
from silodp.federation.stored_records import write_records
from silodp.files import write_csv

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("fetch", fetch, "get the files of a data set")
    sub.add_argument("dataset", nargs="+", help="name of a data set; `all` for every one")
    sub.add_argument("--cache", help="folder the files go to (default: SILODP_DATA_CACHE, else the user's cache)")
    sub.add_argument("--mirror", help="folder or address tried first (default: SILODP_DATA_MIRROR)")
    sub.add_argument("--run-file", type=Path, help="run file whose `data` says cache, mirror and limits")
    sub.add_argument("--listing", type=Path, help="also write the files' names and checksums to this CSV file")

    sub = experiment_command(add, "partition", partition, "cut an experiment's records into silos")
    sub.add_argument("--reading", default="default", help="name of the reading")
    sub.add_argument("--output", type=Path, required=True, help="folder for the index and its summaries")


def fetch(options: argparse.Namespace) -> None:
    """Get the files of data sets into the cache, from a mirror or the official address, and check their SHA-256."""
    from silodp.datasets.fetch import fetch as get

    names = list(DATASETS) if options.dataset == ["all"] else options.dataset
    named = {"cache": options.cache, "mirror": options.mirror}
    if options.run_file:
        said = load(options.run_file).run.data
        named = {"cache": options.cache or said.cache, "mirror": options.mirror or said.mirror}
        named |= {"deadline": said.deadline_seconds, "least_speed": said.least_bytes_per_second}
    rows = []
    for name in names:
        among("dataset", name, DATASETS)
        paths = get(name, **named, progress=not options.quiet)
        log.info(
            "%s: %s",
            name,
            f"{len(paths)} files in {paths[0].parent}" if paths else "ships with scikit-learn, nothing to fetch",
        )
        if paths:
            files = sources(name).files
            rows += [{"dataset": name, "file": source.file, "checksum": source.digest} for source in files]
    if options.listing:
        write_csv(pd.DataFrame(rows, columns=["dataset", "file", "checksum"]), options.listing)


def partition(options: argparse.Namespace) -> None:
    """Cut an experiment's records into silos, one partition a trial, with label counts and heterogeneity."""
    from silodp.federation.trial_data import load_dataset, partition_and_measure

    resolved = resolved_with(options)
    experiment = resolved.experiments[options.experiment]
    readings = readings_of(experiment)
    label = readings[among("reading", options.reading, readings)]
    data = load_dataset(experiment, resolved.run)
    parts, measured, kept = partition_and_measure(
        options.experiment, experiment, experiment.variants()[label], resolved.run, data
    )
    write_records(options.output, kept)
    # Of records of one's own nothing is written but how many a silo has: an extreme target is a cell of the file.
    y = data.y if isinstance(experiment.dataset, str) else None
    write_partition(options.output, parts, y=y, heterogeneity=measured)
