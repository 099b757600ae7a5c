"""Record what a run was made from."""

from collections.abc import Sequence
from pathlib import Path

from silodp.experiments.validation import load
from silodp.workflow.provenance import record


def provenance(run_file: Path, listings: Sequence[Path], output: Path) -> None:
    """Write code, lock, configuration, data and machine as `output`; options and plug-ins are copied beside it."""
    record(load(run_file), listings, output)
