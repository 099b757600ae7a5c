"""The words for verdicts: each has a meaning, a sign and a class of its own; a claim takes the weakest."""

import pytest

from silodp.verdicts.words import Verdict, combine_verdicts


def test_every_word_has_a_sign_a_class_and_a_meaning_of_its_own():
    for name in ("sign", "style", "meaning"):
        assert len({getattr(one, name) for one in Verdict}) == len(Verdict)
    assert all(one.meaning.endswith(".") for one in Verdict)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ("confirmed, confirmed", "confirmed"),
        ("confirmed, refuted, not testable", "refuted"),
        ("confirmed, not testable", "open"),
        ("confirmed, open", "open"),
        ("confirmed, order agrees, vacuous, derivation", "order agrees"),
        ("order agrees, not contradicted", "not contradicted"),
        ("derivation, vacuous", "derivation"),
        ("vacuous", "vacuous"),
        ("not testable", "not testable"),
    ],
)
def test_a_claim_is_as_strong_as_its_weakest_part(parts, whole):
    assert combine_verdicts([Verdict(one) for one in parts.split(", ")]) == whole
