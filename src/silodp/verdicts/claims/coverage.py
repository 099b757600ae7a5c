"""How much of an experiment a run has: a claim about all its settings and ε is not confirmed on some of them."""

import functools
import math

import pandas as pd

from silodp.config.errors import project_root
from silodp.config.experiment import Experiment
from silodp.config.loading import read_experiment


@functools.cache
def _whole(experiment: str) -> tuple[frozenset[tuple[int, int]], frozenset[float]]:
    """Settings (M, R) and ε of the experiment's own file, which a run file may thin; none without one."""
    folder = project_root() / "config" / "experiments"
    path = folder / f"{experiment}.yaml"
    if not path.is_file():
        return frozenset(), frozenset()
    config = Experiment.model_validate(read_experiment(folder, path))
    return frozenset((one.M, one.R) for one in config.settings), frozenset(config.epsilons)


def left_out(experiment: str, rows: pd.DataFrame, least: float = 0, most: float = math.inf) -> str:
    """What of an experiment has no row, as in "mnist_mlp at (M, R) = (12, 50) and ε = 0.75, 1"; "" for nothing.

    Args:
        experiment: of config/experiments.
        rows: with the columns M, R and epsilon.
        least, most: ends of the ε that are asked about.
    """
    settings, epsilons = _whole(experiment)
    gone = sorted(settings - set(zip(rows["M"], rows["R"], strict=True)))
    fewer = sorted(one for one in epsilons - set(rows["epsilon"]) if least <= one <= most)
    parts = [f"(M, R) = {', '.join(f'({M}, {R})' for M, R in gone)}"] if gone else []
    parts += [f"ε = {', '.join(f'{one:g}' for one in fewer)}"] if fewer else []
    return f"{experiment} at {' and '.join(parts)}" if parts else ""
