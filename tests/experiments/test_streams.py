"""Names of all noise and batch streams of a run on own data: no two draws have one name."""

import itertools
from collections import Counter

import pandas as pd
import patients
import pytest
import torch

from silodp.algorithms import ALGORITHMS
from silodp.config.experiment import AlgorithmOptions
from silodp.config.readings import Readings
from silodp.experiments import training
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import run_trial
from silodp.experiments.validation import load
from silodp.partition.experiment_data import dataset_of
from silodp.partition.trial_data import partition_and_measure, prepare
from silodp.streams import Streams

# First words of the names of streams that make a message: its records, its noise, and both of a shuffled sum.
DRAWS = ("noise", "records", "order", "shuffled sum")
PURPOSES = ("grid", "race0")
READINGS = [
    {},
    {"noise": "favourable"},
    {"sampler": "subset"},
    {"output": "own", "clipping": "batch_mean"},
    {"summation": "shuffled"},
]


@pytest.fixture
def drawn(monkeypatch):
    """Counter of the whole names under which generators were asked for."""
    names, generator = Counter(), Streams.generator

    def recorded(self, *parts):
        if parts[0] in DRAWS:
            names[(self.seed, *self.path, *map(str, parts))] += 1
        return generator(self, *parts)

    monkeypatch.setattr(Streams, "generator", recorded)
    return names


@pytest.fixture
def study(tmp_path):
    """(run, config, records of a trial) of a run on own data with every registered algorithm."""
    patients.write_records(tmp_path / "patients.csv", {"North": 16, "South": 16})
    resolved = load(patients.run_file(tmp_path, settings=[{"M": 2, "R": 2}, {"M": 2, "R": 1}]))
    config = resolved.experiments["patients"]
    update = {"algorithms": {name: AlgorithmOptions() for name in ALGORITHMS}, "phase_lengths": [1, 2]}
    update |= {"readings": Readings(), "alternatives": [], "epsilons": [1.0, 4.0]}
    config = config.model_copy(update=update)
    data = dataset_of(config).load()
    part = partition_and_measure("patients", config, config.readings, resolved.run, data)[0][0]
    return resolved.run, config, prepare(data, config, config.readings, part, resolved.run)


def points_of(task):
    return task.grid().drop_duplicates(["epsilon", "phase_length"])[POINT].reset_index(drop=True)


def test_no_two_runs_of_a_study_of_own_data_share_a_draw(study, drawn, monkeypatch):
    """Every algorithm, setting, reading, ε, phase and purpose; a race's rungs are purposes."""
    # Names do not depend on losses.
    monkeypatch.setattr(training, "evaluate", lambda model, weights, silos: torch.zeros(2, len(weights)).double())
    run, config, prepared = study
    seen: Counter[tuple] = Counter()
    for readings in READINGS:
        label = ";".join(f"{key}={value}" for key, value in readings.items())
        for name in ALGORITHMS:
            if not set(readings) <= {*ALGORITHMS[name].variants, "output", "noise"}:
                continue
            if readings.get("noise") and name != "local_sgd":
                continue
            changed = config.model_copy(update={"readings": Readings(**readings)})
            # Of other readings one run each: the rest of their names is that of the default reading.
            runs = [(config.settings[0], "fresh")] if readings else itertools.product(config.settings, PURPOSES)
            for setting, purpose in runs:
                task = _Labelled("patients", changed, name, setting, label)
                drawn.clear()
                run_trial(task, run, prepared, 0, points_of(task), purpose)
                # A run with mixed noise makes its own earlier draws again.
                seen.update(dict.fromkeys(drawn, 1) if name.endswith(("correlated", "difference")) else drawn)
    assert len(seen) > 2000
    assert {name for name, count in seen.items() if count > 1} == set()
    summed = {part for name in seen if "shuffled sum" in name for part in name}
    assert {"sdp_prox_svrg", "sdp_prox_pl_svrg"} <= summed


class _Labelled(Task):
    """A task under a reading that is its experiment's own."""

    @property
    def readings(self):
        return self.config.readings


def test_points_that_share_a_stack_are_step_sizes_and_clips_of_one_epsilon(study, drawn):
    """The rest of the grid would be a stack of its own; papers' data keep theirs."""
    run, config, prepared = study
    task = Task("patients", config, "minibatch_sgd", config.settings[0])
    points = pd.DataFrame([(e, s, 1.0, 1) for e in (1.0, 4.0) for s in (0.1, 0.2)], columns=POINT)
    run_trial(task, run, prepared, 0, points)
    noises = [name[: name.index("noise")] for name in drawn if "noise" in name]
    assert {name[-2:] for name in noises} == {("1.0", "1.0"), ("4.0", "1.0")}
