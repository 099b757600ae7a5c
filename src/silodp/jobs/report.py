"""Build the self-contained report page of a run."""

from pathlib import Path

from silodp.report.page.build import build


def report(folder: Path, output: Path) -> None:
    build(folder, output)
