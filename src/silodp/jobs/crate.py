"""Write the manifest of a finished run, an RO-Crate."""

from pathlib import Path

from silodp.workflow.crate import renew


def crate(folder: Path) -> None:
    renew(folder)
