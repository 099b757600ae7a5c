"""Which device an experiment is faster on, by counted operations and measured rates; no machine is looked at.

So what `device: auto` means depends on the run file alone, and a job's digest does not depend on who plans.
"""

import math

from silodp.config.experiment import Experiment
from silodp.partition.experiment_data import dataset_of

# Multiplications and additions a weight and record: one of each forward, for its gradient, and for that of its input,
# which the first layer does without.
FIRST, LATER = 4, 6
# Operations a second of sums, and of local steps, on a GPU: prototypes on an H200. Other models are held to less.
_ON_GPU = {"convnet": (9.1e12, 1.7e12), "perceptron": (4.3e12, 3.5e12)}
_OTHERS = (1e12, 1e12)
# Seconds of a round's launches on a GPU, and cores with their operations a second that it is held against.
ROUND_ON_GPU, _CORES, _CORE = 1.5e-3, 16, 25e9


def gradient_operations(config: Experiment) -> int:
    """Operations of a record's gradient; a weight of a convolution counts as often as it is used."""
    dataset = dataset_of(config)
    inputs = config.preprocess.pca or dataset.features + config.preprocess.constant_column
    classes = 2 if config.label == "parity" else len(dataset.class_counts or (0,))
    match config.model.name:
        case "perceptron":
            return FIRST * inputs * config.model.hidden + LATER * config.model.hidden * classes
        case "softmax":
            return FIRST * inputs * classes
        case "convnet":
            return FIRST * 28 * 28 * 6 * 75 + LATER * (10 * 10 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10)
    return FIRST * inputs


def gpu_rate(config: Experiment, in_steps: bool = False) -> float:
    """Operations a second that a GPU such as an H200 reaches at sums, or local steps, of the experiment's model."""
    return _ON_GPU.get(config.model.name, _OTHERS)[in_steps]


def gpu_gain(config: Experiment, smallest: int) -> float:
    """How many times as fast as sixteen cores a GPU is expected to make a round of all points of an experiment.

    `smallest` is the number of training records of the smallest silo.
    """
    points = len(config.epsilons) * len(config.clips) * len(config.stepsizes.values())
    setting = max(config.settings, key=lambda setting: setting.M)
    batch = config.batch_of(smallest)
    if batch is None:
        batch = min(smallest, math.ceil(smallest * math.sqrt((config.batch_epsilon or 1.0) / setting.R) / 2))
    operations = float(gradient_operations(config)) * points * batch * setting.M
    return operations / (_CORES * _CORE) / (ROUND_ON_GPU + operations / gpu_rate(config))
