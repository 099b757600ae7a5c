"""Write the manifest of a finished run, an RO-Crate."""

import os
from pathlib import Path

from silodp.workflow import contents, engine
from silodp.workflow.crate import renew


def crate(folder: Path) -> None:
    """Write the manifest of a folder: inputs, outputs and every checksum."""
    if engine.JOB_VARIABLE not in os.environ:
        contents.refuse_own_data(folder)
    with engine.results_locked(folder):
        renew(folder)
