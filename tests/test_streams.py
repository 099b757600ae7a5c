"""Named streams: distinct, stable, and independent of the order in which they are asked for."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import silodp
from silodp.streams import Streams

NAMES = st.lists(st.one_of(st.integers(0, 10**6), st.text("abc_/ .", max_size=6)), min_size=1, max_size=5)


def first(streams, *names):
    return streams.generator(*names).integers(0, 2**63, size=4).tolist()


def test_first_values_do_not_change():
    """Golden: a change here changes every result of every run."""
    assert first(Streams(0), "a")[:3] == [5799987978368419391, 8065774737285671704, 529927469723942995]
    partition = Streams(2023).generator("wbcd_mlp", 0, "partition")
    assert partition.integers(0, 2**63, size=3).tolist() == [
        5266623521667244830,
        5297507042424130595,
        6305842894902630010,
    ]
    names = ("wbcd_mlp", 3, "minibatch_sgd", "M2_R25", "grid", "noise", 1, 24, "gradient")
    noise = Streams(2023).generator(*names).standard_normal(3)
    np.testing.assert_array_equal(noise, [0.06989183182357687, -0.39660581495339264, 1.1246338369050535])


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**40), NAMES)
def test_the_same_name_gives_the_same_numbers_however_it_is_reached(seed, names):
    """And whatever was drawn before."""
    tree = Streams(seed)
    wanted = first(tree, *names)
    for cut in range(len(names) + 1):
        first(tree, cut)
        assert first(tree, *names) == wanted
        assert first(tree.child(*names[:cut]), *names[cut:]) == wanted
        assert first(Streams(seed, tuple(str(name) for name in names[:cut])), *names[cut:]) == wanted


@settings(deadline=None, max_examples=200)
@given(NAMES, NAMES)
def test_different_names_give_different_numbers(a, b):
    same = [str(name) for name in a] == [str(name) for name in b]
    assert (first(Streams(1), *a) == first(Streams(1), *b)) == same


def test_a_name_with_the_separator_would_make_two_streams_one():
    for names in (("a\x1fb",), ("a", "\x1f")):
        with pytest.raises(ValueError, match="must not hold the separator"):
            Streams(0).generator(*names)
    with pytest.raises(ValueError, match="must not hold the separator"):
        Streams(0).child("a\x1fb").generator("c")


def test_streams_of_neighbouring_names_are_not_correlated():
    """Trials, silos and rounds that differ by one: 190 pairs of 1,000 draws, level 0.001."""
    draws = np.stack([Streams(9).generator("noise", silo, 0).standard_normal(1000) for silo in range(20)])
    correlations = np.corrcoef(draws)[np.triu_indices(20, 1)]
    assert np.abs(correlations).max() < stats.norm.isf(0.001 / 2 / len(correlations)) / np.sqrt(1000)


def test_modules_that_draw_from_streams_read_no_name_of_a_definition():
    """A stream that is named by a function would change its numbers when that is renamed."""
    root = Path(silodp.__file__).parent
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in root.rglob("*.py")}
    draw = {name for name, text in texts.items() if re.search(r"\b[Ss]treams\b", text)}
    assert len(draw) > 15
    assert not {name for name in draw if re.search(r"__(qual)?name__|__module__|__class__", texts[name])}
