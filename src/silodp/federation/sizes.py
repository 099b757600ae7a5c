"""How many silos an experiment has, known before its records are read."""

from silodp.config.experiment import Experiment
from silodp.datasets import DATASETS


def number_of_silos(config: Experiment) -> int:
    """N, as the scheme or the config fixes it."""
    if config.silos.scheme == "digit_pairs":
        return 25
    return config.silos.count or len(DATASETS[config.dataset].class_counts or ())
