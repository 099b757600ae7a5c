"""Download the files of data sets."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from silodp.config.errors import among
from silodp.datasets import DATASETS
from silodp.datasets.fetch import fetch as get
from silodp.datasets.sources import sources
from silodp.experiments.validation import load
from silodp.files import write_csv

log = logging.getLogger("silodp")


def fetch(names: Sequence[str], run_file: Path | None = None, listing: Path | None = None) -> None:
    """Download the files of data sets and check them; the run file's `data` names cache, mirror and limits.

    `listing` is a CSV file for the files' names and checksums.
    """
    places: dict = {}
    if run_file:
        data = load(run_file).run.data
        places = {"cache": data.cache, "mirror": data.mirror, "deadline": data.deadline_seconds}
        places |= {"least_speed": data.least_bytes_per_second}
    rows = []
    for name in names:
        among("dataset", name, DATASETS)
        paths = get(name, **places, progress=log.isEnabledFor(logging.INFO))
        what = f"{len(paths)} files in {paths[0].parent}" if paths else "ships with scikit-learn, nothing to fetch"
        log.info("%s: %s", name, what)
        if paths:
            files = sources(name).files
            rows += [{"dataset": name, "file": source.file, "checksum": source.digest} for source in files]
    if listing:
        write_csv(pd.DataFrame(rows, columns=["dataset", "file", "checksum"]), listing)
