"""The sentences at the top of a study's page, as properties of errors that are made up."""

import numpy as np
import pytest

from silodp.report.page.study import Study, paragraph

SPLITS = np.array([-0.01, 0.0, 0.01])


def model(name, error, epsilon=None, most=60, spread=SPLITS, **more):
    errors = (error + spread).tolist()
    found = {"name": name, "error": error, "errors": errors, "silos": [error] * 2, "most": [most, 100], "most_class": 0}
    return found | {"balanced": 1 - error, "epsilon": epsilon, "rounds": 25, "edge": ""} | more


def said(guess=0.4, pooled=0.1, plain=0.1, told=0.15, alone=0.3, task="classification", most=60, **more):
    """The paragraph of a study with these errors; `most` of 100 test records get the federated model's first class."""
    models = [model("guess", guess), model("pooled", pooled), model("best silo", pooled)]
    models += [model("minibatch_sgd", told, 1.0, most), model("minibatch_sgd", plain)]
    models += [model("silo_only", alone, 1.0), model("silo_only", alone)]
    found = {"task": task, "classes": ["no", "yes"], "silos": ["A", "B"], "records": [80, 20], "trials": len(SPLITS)}
    return " ".join(paragraph(Study(found | {"models": models, "weak": [], "delta": 1e-4, "points": 3} | more)))


HELPS, ALONE, NEITHER = "federating helps", "staying alone is better", "no difference is found"


@pytest.mark.parametrize(("told", "alone", "words"), [(0.15, 0.3, HELPS), (0.3, 0.15, ALONE), (0.2, 0.2, NEITHER)])
def test_federating_is_held_against_staying_alone_at_the_same_epsilon(told, alone, words):
    text = said(told=told, alone=alone)
    assert f"at the same ε, has {100 * alone:.3g} % of wrong answers: " in text
    assert [one for one in (HELPS, ALONE, NEITHER) if one in text] == [words]


def test_a_difference_within_chance_helps_nobody():
    """The same gap of means, in splits that agree and in splits that do not."""
    for spread, words in ((SPLITS, HELPS), (SPLITS * 30, NEITHER)):
        models = [model("guess", 0.4), model("pooled", 0.1), model("minibatch_sgd", 0.15, 1.0)]
        models += [model("silo_only", 0.2, 1.0, spread=-spread)]
        found = {"task": "classification", "classes": ["no", "yes"], "silos": ["A", "B"], "trials": 3, "weak": []}
        assert words in " ".join(paragraph(Study(found | {"models": models})))


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("told", [0.1, 0.2, 0.39, 0.4, 0.41, 0.9])
def test_nothing_learnt_is_said_exactly_where_guessing_is_not_beaten_beyond_chance(told, task):
    text = said(told=told, task=task)
    assert ("Nothing was learnt at this ε" in text) == (told >= 0.4)
    assert "Nor is a linear model" not in text
