"""Options of the convex paper's algorithms in run files and experiments, and experiments that extend others."""

import pytest
from runfiles import message, overriding, project, write

from silodp.experiments.validation import load


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


SCHEDULED = {"schedule": "theorem-2.1", "private": "private", "clips": [1], "constants": {"d": 30, "beta": 1}}

# Algorithms that a ball for all steps does not fit.
NO_PROJECTION = ("dp_scaffold", "local_sgd", "localised_accelerated", "mr_mtl")
# What stands after the file and "experiments.<name>.".
OVERRIDES = {
    "cancer": [
        ({"radius": 1}, "radius: 1.0: dp_scaffold does not project: must be left out, or dp_scaffold be"),
        (
            {"regulariser": {"name": "l1", "weight": 1}},
            "regulariser: 'l1': dp_scaffold has no proximal step: leave out regulariser or dp_scaffold",
        ),
        ({"regulariser": {"name": "l1"}}, "regulariser.weight: missing: this key must be given"),
        (
            {"algorithms": {"prox_sgd": {"noise": "theorem"}}, "epsilons": [200]},
            "algorithms.prox_sgd.noise: 'theorem': nonconvex-2.1-noise: conversion from zCDP: epsilon = 200",
        ),
        (
            {"settings": [{"M": 2, "R": 5, "participants": [1, 3]}]},
            "settings[0].participants: [1, 3]: must be at most N = 2, the number of silos",
        ),
        (
            {"settings": [{"M": 2, "R": 5, "participants": [1, 2]}]},
            "settings[0].M: 2: must be the harmonic mean of participants, 1.333, rounded",
        ),
        (
            {"algorithms": {"accelerated_minibatch_sgd": {"stages": [{"rounds": 2, "upsilon": 1}]}}},
            "algorithms.accelerated_minibatch_sgd.stages: 2: rounds of the stages must add up to R = 3",
        ),
        (
            {"algorithms": {"local_sgd": {"schedule": "theorem-2.1"}}},
            "algorithms.local_sgd.schedule: 'theorem-2.1': schedules of local_sgd: none",
        ),
        (
            {"algorithms": {"minibatch_sgd": {"schedule": "theorem-2.3"}}},
            "algorithms.minibatch_sgd.schedule: 'theorem-2.3': schedules of minibatch_sgd: theorem-2.1, ",
        ),
        (
            {"algorithms": {"minibatch_sgd": SCHEDULED | {"private": "both"}}},
            "algorithms.minibatch_sgd.private: 'both': must be private, as the schedule's theorem is about an epsilon",
        ),
        (
            {"algorithms": {"minibatch_sgd": SCHEDULED | {"clips": [1, 2]}}},
            "algorithms.minibatch_sgd.clips: [1.0, 2.0]: must be one value, the theorem's L",
        ),
        (
            {"algorithms": {"minibatch_sgd": SCHEDULED}},
            "algorithms.minibatch_sgd.schedule: 'theorem-2.1': theorem-2.1 asks for radius",
        ),
    ],
}
CASES = [(name, *case) for name, cases in OVERRIDES.items() for case in cases]


@pytest.mark.parametrize(("name", "overrides", "wanted"), CASES, ids=lambda value: str(value)[:50])
def test_a_wrong_option_is_one_line_that_names_the_run_file(root, name, overrides, wanted):
    text = message(root, overriding(name, **overrides))
    assert text.startswith(f"{root}/config/run.yaml: experiments.{name}.")
    assert wanted in text


def test_an_experiment_may_extend_another(root):
    """Keys are laid over the other's; None removes one."""
    text = "extends: cancer\nmodel: {name: logistic}\nphase_lengths: [3]\nalgorithms: {fed_spider: null}\n"
    (root / "config" / "experiments" / "again.yaml").write_text(text)
    found = load(write(root, {"run": "r", "experiments": {"cancer": None, "again": {"trials": 7}}}), root).experiments
    assert found["again"].model.name == "logistic"
    assert found["again"].trials == 7
    assert found["again"].phase_lengths == [3]
    assert set(found["again"].algorithms) == set(found["cancer"].algorithms) - {"fed_spider"}
    assert found["again"].silos == found["cancer"].silos


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("extends: nothing", "extends: 'nothing': must name another experiment's file"),
        ("extends: chain", "extends: 'chain': must be an experiment that extends none itself"),
    ],
)
def test_what_is_extended_must_be_there_and_stand_by_itself(root, text, wanted):
    folder = root / "config" / "experiments"
    (folder / "chain.yaml").write_text("extends: cancer")
    (folder / "again.yaml").write_text(text)
    found = message(root, {"run": "r", "experiments": {"again": None}})
    assert found == f"{folder}/again.yaml: {wanted}"
