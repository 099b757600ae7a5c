"""Texts that are the same but for the last digits of their numbers."""

import re

import numpy as np

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"


def assert_alike(made: str, kept: str, least: float = 2e-6) -> None:
    """The same text, but for the last digits of numbers, `least`, and names that are made of coordinates.

    Where the change is meant, `make docs` and `make report` write what is kept.
    """
    made, kept = (re.sub(r"\b[mp][0-9a-f]{10}\b", "", text) for text in (made, kept))
    assert re.sub(NUMBER, "0", made) == re.sub(NUMBER, "0", kept)
    numbers = (np.array(re.findall(NUMBER, text), float) for text in (made, kept))
    np.testing.assert_allclose(*numbers, rtol=1e-6, atol=least)
