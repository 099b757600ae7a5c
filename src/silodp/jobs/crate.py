"""Write the manifest of a finished run, an RO-Crate."""

from pathlib import Path

from silodp.workflow.crate import renew


def crate(folder: Path) -> None:
    """Write the manifest of a folder: inputs, outputs and every checksum."""
    renew(folder)
