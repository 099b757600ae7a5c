"""The experiment of a run file that a command works on."""

from pathlib import Path

from silodp.config.errors import ConfigError, near
from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.experiments.validation import load


def experiment_of(run_file: Path, name: str) -> tuple[Run, Experiment]:
    """The checked run, and its experiment called `name`; ConfigError for a wrong run file or no such experiment."""
    resolved = load(run_file)
    if name not in resolved.experiments:
        known = ", ".join(resolved.experiments)
        raise ConfigError(
            f"{run_file}: experiments.{name}: not in this run: must be one of {known}"
            + near(name, resolved.experiments)
        )
    return resolved.run, resolved.experiments[name]
