"""Which source files a result was computed by: their digests say when a job is to be done again."""

import functools
import hashlib
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# Sources whose change makes trained results stale; an algorithm's own files are added to them.
TRAINED_BY = (
    "algorithms/base.py",
    "messages.py",
    "models",
    "preprocess.py",
    "privacy/plan.py",
    "prox.py",
    "rng.py",
    "stored_records.py",
    "tasks.py",
    "training.py",
    "trialdata.py",
)
# Sources of messages that go through a shuffled sum.
SUMMED_BY = ("shuffle.py", "shuffled_summation.py")
# Folders whose files algorithms are built on.
_FORMULAS = {"algorithms", "privacy", "theory"}
PARTITIONED_BY = (
    "datasets",
    "heterogeneity.py",
    "preprocess.py",
    "rng.py",
    "silos.py",
    "stored_records.py",
    "trialdata.py",
)
PAGE = (
    "report.py",
    "report_audit.py",
    "report_bounds.py",
    "report_claims.py",
    "report_figures.py",
    "report_numbers.py",
)


def from_here(path: Path | str) -> str:
    """A path below the working folder as seen from there, so that a checkout that is moved redoes nothing."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@functools.cache
def sources_digest(names: tuple[str, ...]) -> str:
    """SHA-256 over the text of source files and folders of the package."""
    found = hashlib.sha256()
    for name in names:
        path = PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


@functools.cache
def built_on(file: str) -> tuple[str, ...]:
    """A source file, and those of the algorithms, formulas and accounting that it is built on."""
    found: set[str] = set()
    waiting = [file]
    while waiting:
        one = waiting.pop()
        found.add(one)
        text = (PACKAGE / one).read_text(encoding="utf-8")
        for module in re.findall(r"^from silodp\.([\w.]+) import ", text, flags=re.MULTILINE):
            other = f"{module.replace('.', '/')}.py"
            if other.split("/")[0] in _FORMULAS and other not in found and (PACKAGE / other).is_file():
                waiting.append(other)
    return tuple(sorted(found - set(TRAINED_BY)))


def algorithm_files(algorithm: str) -> tuple[str, ...]:
    """The algorithm's own file, and those that it is built on."""
    return built_on(f"algorithms/{algorithm}.py")
