"""Choose the grid point of smallest training loss, for every algorithm, setting and epsilon."""

from collections.abc import Sequence
from pathlib import Path

from silodp.experiments.made_for import write_trained
from silodp.experiments.planned_rows import read_planned
from silodp.experiments.selection import select as choose
from silodp.experiments.validation import experiment_of


def select(run_file: Path, experiment: str, trials: Sequence[Path], output: Path) -> None:
    run, config = experiment_of(run_file, experiment)
    write_trained(choose(read_planned(trials, experiment, config, run), config), output, experiment, config, run)
