"""What tests of published tables need of an experiment: its data and its silos."""

from silodp.experiments.task import Task
from silodp.partition.experiment_data import dataset_of
from silodp.partition.trial_data import draw_partition


def data_of(config, needs_data):
    dataset = dataset_of(config)
    return dataset.load(None if dataset.embedded else needs_data(dataset.name))


def first_partition(task: Task, run, needs_data):
    """The silos of trial 0."""
    return draw_partition(task.experiment, task.config, task.readings, run, data_of(task.config, needs_data), 0)
