"""Readers meet titles, algorithms and variants in words, not the keys of run files."""

import typing

import pytest

from silodp.config.loading import known_shorts, known_titles
from silodp.config.readings import Readings
from silodp.report.figures.reader_words import VARIANTS, readable_text, short_title, variant_words


def test_every_choice_of_a_run_file_has_words():
    choices = [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, field in Readings.model_fields.items()
        for value in ((True, False) if field.annotation is bool else typing.get_args(field.annotation))
    ]
    assert len(choices) > 20
    assert [one for one in choices if one not in VARIANTS] == []
    assert not any("=" in words and "q = 1" not in words for words in VARIANTS.values())
    assert variant_words("clip_rule=max_norm;evaluation=same").startswith("clip at twice the longest record, errors")
    assert variant_words("") == ""


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("wbcd_mlp M=2 R=25, minibatch_sgd", "Wisconsin breast cancer, perceptron 30-5-2, M = 2, R = 25, MB-SGD"),
        ("minibatch_sgd − local_sgd:non_private -0.5", "MB-SGD − Local SGD (non-private) −0.5"),
        ("over 35 of wbcd_mlp", "over 35 of “Wisconsin breast cancer, perceptron 30-5-2”"),
        (
            "wbcd_mlp spider, [clipping=per_tensor]",
            "Wisconsin breast cancer, perceptron 30-5-2: SPIDER, [each tensor clipped by itself]",
        ),
        ("check rates_convex, slope in epsilon0", "Rates of the convex paper, slope in ε0"),
        ("check of_nothing that is registered", "check of_nothing that is registered"),
        ("a mine of 1-2", "a “Mine, too” of 1-2"),
        ("nothing to say", "nothing to say"),
    ],
)
def test_keys_in_a_sentence_become_words(keys, words):
    assert readable_text(keys, {"mine": "Mine, too"}) == words


def test_figures_call_every_experiment_by_a_short_title_of_its_own():
    """A child that lacks `short` would bear the name of the experiment that it extends."""
    shorts = known_shorts()
    assert len(set(shorts.values())) == len(shorts) == len(known_titles())
    assert max(map(len, shorts.values())) <= 40
    assert short_title("wbcd_mlp") == "Breast cancer"
    assert short_title("wbcd_mlp", "mine") == "mine"
    assert short_title("patients", title="Our patients") == "Our patients"
