"""The sentences at the top of a study's page, as properties of errors that are made up."""

import numpy as np
import pytest

from silodp.report.page.own_study_page import MOSTLY, Study, _noise_cost, paragraph

SPLITS = np.array([-0.01, 0.0, 0.01])


def model(name, error, epsilon=None, most=60, spread=SPLITS, **more):
    errors = (error + spread).tolist()
    found = {"name": name, "error": error, "errors": errors, "silos": [error] * 2, "most": [most, 100], "most_class": 0}
    return found | {"balanced": 1 - error, "epsilon": epsilon, "rounds": 25, "edge": ""} | more


def said(guess=0.4, pooled=0.1, plain=0.1, told=0.15, alone=0.3, task="classification", most=60, spread=SPLITS, **more):
    """The paragraph of a study: `most` of 100 records get the first class, `spread` is of a silo alone's errors."""
    models = [model("guess", guess), model("pooled", pooled, auc=more.pop("auc", 0.9)), model("best silo", pooled)]
    models += [model("minibatch_sgd", told, 1.0, most), model("minibatch_sgd", plain)]
    models += [model("silo_only", alone, 1.0, spread=spread), model("silo_only", alone)]
    found = {"task": task, "classes": ["no", "yes"], "silos": ["A", "B"], "records": [80, 20], "trials": len(SPLITS)}
    return " ".join(paragraph(Study(found | {"models": models, "weak": [], "delta": 1e-4, "points": 3} | more)))


@pytest.mark.parametrize("most", [0, 50, 98, 99, 100])
def test_a_model_that_says_one_class_nearly_always_is_called_that(most):
    assert (f"It says “no” for {most} of 100 test records" in said(most=most)) == (most >= 100 * MOSTLY)


HELPS, ALONE, NEITHER = "federating helps", "staying alone is better", "no difference is found"


@pytest.mark.parametrize(("told", "alone", "words"), [(0.15, 0.3, HELPS), (0.3, 0.15, ALONE), (0.2, 0.2, NEITHER)])
def test_federating_is_held_against_staying_alone_at_the_same_epsilon(told, alone, words):
    text = said(told=told, alone=alone)
    assert f"at the same ε, has {100 * alone:.3g} % of wrong answers: " in text
    assert [one for one in (HELPS, ALONE, NEITHER) if one in text] == [words]


@pytest.mark.parametrize(("spread", "words"), [(-SPLITS, HELPS), (-30 * SPLITS, NEITHER)])
def test_a_difference_within_chance_helps_nobody(spread, words):
    """The same gap of means, in splits that agree and in splits that do not."""
    assert words in said(alone=0.2, spread=spread)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("told", [0.1, 0.2, 0.39, 0.4, 0.41, 0.9])
def test_nothing_learnt_is_said_exactly_where_guessing_is_not_beaten_beyond_chance(told, task):
    text = said(told=told, task=task)
    assert ("Nothing was learnt at this ε" in text) == (told >= 0.4)
    assert "Nor is a linear model" not in text


@pytest.mark.parametrize(("auc", "words"), [(0.5, ": it does not learn these data."), (0.8, "yet it ranks records")])
def test_a_pooled_fit_that_beats_nothing_is_said_and_so_is_what_it_ranks(auc, words):
    text = said(pooled=0.4, plain=0.4, told=0.4, auc=auc)
    assert "Nor is a linear model with all records in one place and no noise" in text
    assert words in text


@pytest.mark.parametrize("plain", [0.1, 0.115, 0.13, 0.25, 0.4, 0.5])
def test_training_that_loses_more_than_a_twentieth_of_the_gain_has_not_converged(plain):
    text = said(plain=plain)
    assert ("training has not converged" in text) == (plain > 0.115)
    assert ("reaches nothing of" in text) == (plain >= 0.4)


def test_the_price_of_noise_is_the_difference_of_the_two_errors_it_names():
    text = said(plain=0.1, told=0.15)
    assert "At ε = 1 for a record the model that 2 silos train together has 15 % of wrong answers" in text
    assert "Without noise it has 10 % of wrong answers: noise costs 5 % of the answers." in text
    assert "noise costs nothing that shows" in said(plain=0.15, told=0.15)


def test_a_weak_delta_is_said_with_what_it_allows():
    text = said(weak=[12], delta=12.0**-2)
    assert "with 12 training records δ = 0.0069 allows" in text
    assert "probability 0.083 (n·δ)" in text


def without_noise(task="classification"):
    models = [model("guess", 0.4), model("pooled", 0.1), model("best silo", 0.1), model("minibatch_sgd", 0.1)]
    return Study({"task": task, "silos": ["A"], "trials": 3, "models": models})


@pytest.mark.parametrize(
    ("task", "words"), [("regression", "typical error of 12.5 % of guessing's"), ("classification", "12.5 % of wrong")]
)
def test_an_error_without_bound_is_called_so_and_has_no_price(task, words):
    study, bounded, unbounded = without_noise(task), {"error": 0.125}, {"error": None}
    assert study.amount(unbounded) == "an error without bound"
    assert words in study.amount(bounded)
    for pair, priced in (((bounded, bounded), True), ((unbounded, bounded), False), ((bounded, unbounded), False)):
        assert ("noise costs" in _noise_cost(study, *pair)) == priced


def test_a_study_in_which_no_noise_was_added_says_that_alone():
    assert paragraph(without_noise()) == ["Nothing was trained with noise."]
