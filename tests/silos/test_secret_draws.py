"""Draws are exact: with two or three first digits nearly every comparison needs later ones, and the law is the same."""

import hashlib

import numpy as np
import pytest
from scipy import stats

from silodp.silos.secret_draws import SecretDraws


def draws(bits=32, name="a"):
    return SecretDraws(hashlib.sha256(name.encode()).digest(), bits)


@pytest.mark.parametrize("bits", [3, 32])
def test_a_rounded_gaussian_has_the_law_of_a_real_one(bits):
    deviation, k = 3, np.arange(-9, 10)
    found = draws(bits).rounded_gaussian(40_000, deviation)
    chances = stats.norm.cdf((k + 0.5) / deviation) - stats.norm.cdf((k - 0.5) / deviation)
    counts = [int((found == number).sum()) for number in k]
    chances, counts = np.r_[chances, 1 - chances.sum()], np.r_[counts, len(found) - sum(counts)]
    assert stats.chisquare(counts, chances * len(found)).pvalue > 1e-3


def test_numbers_are_uniform_and_orders_are_permutations():
    counts = np.bincount(draws().integers(2, 7, 20_000), minlength=7)
    assert not counts[:2].any()
    assert stats.chisquare(counts[2:]).pvalue > 1e-3
    assert stats.chisquare(np.bincount(draws().choice(5, 20_000, replace=True), minlength=5)).pvalue > 1e-3
    assert sorted(draws().permutation(500)) == list(range(500))
    assert len(set(draws().choice(500, 100, replace=False).tolist())) == 100
