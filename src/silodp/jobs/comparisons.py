"""Compute the paired comparisons of the page's first figure."""

from collections.abc import Sequence
from pathlib import Path

from silodp.algorithms import ALGORITHMS
from silodp.experiments.columns import PRIVACY_COLUMNS, REPORTED_COLUMNS
from silodp.files import read_table, with_reading, write_csv
from silodp.verdicts.claims.claim_files import read_protocol
from silodp.verdicts.comparisons import headline


def comparisons(reported: Sequence[Path], output: Path, privacy: Path | None = None) -> None:
    """Compare SPIDER, minibatch SGD and local SGD in pairs in every experiment, with the margins of decided.yaml.

    The run's privacy.csv finds rows of the same algorithm.
    """
    margins = {name: about["margin"] for name, about in read_protocol()["data_sets"].items()}
    tables = {file.stem: read_table(file, REPORTED_COLUMNS) for file in reported}
    plans = with_reading(read_table(privacy, PRIVACY_COLUMNS)) if privacy else None
    write_csv(headline(tables, margins, plans, sorted(ALGORITHMS.own)), output)
