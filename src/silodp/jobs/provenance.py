"""Record what a run was made from: code, lock, configuration, data, machine; options and plug-ins are copied beside."""

from collections.abc import Sequence
from pathlib import Path

from silodp.experiments.validation import load
from silodp.workflow.provenance import record


def provenance(run_file: Path, listings: Sequence[Path], output: Path) -> None:
    record(load(run_file), listings, output)
