"""How many silos an experiment has, known before its records are read."""

from silodp.config.experiment import Experiment
from silodp.federation.data_of import dataset_of


def number_of_silos(config: Experiment) -> int:
    """N, as the scheme, the config or the data's own silos fix it."""
    if config.silos.scheme == "digit_pairs":
        return 25
    dataset = dataset_of(config)
    if dataset.silo_records is not None:
        return len(dataset.silo_records)
    return config.silos.count or len(dataset.class_counts or ())
