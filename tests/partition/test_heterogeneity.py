"""Heterogeneity: hand-worked values, agreement with a general minimiser, and honesty where there is no minimiser."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from silodp.partition.heterogeneity import heterogeneity


def noisy_labels(n: int, d: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, np.argmax(x @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes)), axis=1)


@pytest.mark.parametrize("size", [1, 10])
def test_two_silos_by_hand_which_count_equally_whatever_their_size(size: int) -> None:
    # F_1 = (w - 1)²/2, F_2 = (w - 5)²/2: w* = 3, gradients 2 and -2, mean square 4.
    result = heterogeneity([np.ones((size, 1)), np.ones((1, 1))], [np.ones(size), np.array([5.0])], "regression")
    assert result.value == pytest.approx(4.0)
    assert result.converged
    assert result.gradient_norm < 1e-12


@pytest.mark.parametrize("classes", [2, 4])
def test_agrees_with_a_general_minimiser(classes: int) -> None:
    x, y = noisy_labels(300, 5, classes, seed=4)
    parts = np.split(np.argsort(y, kind="stable"), [80, 150])
    xs, ys = [x[part] for part in parts], [y[part] for part in parts]

    # Softmax for any number of classes; for two the logistic gradient is one of the two opposite rows, hence the half.
    def silo_loss(w: np.ndarray, features: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
        scores = features @ w.reshape(classes, -1).T
        logarithms = scipy.special.log_softmax(scores, axis=1)
        residuals = np.exp(logarithms) - np.eye(classes)[labels]
        gradient = (residuals.T @ features / len(labels)).ravel()
        return -logarithms[np.arange(len(labels)), labels].mean(), gradient

    def average(w: np.ndarray) -> tuple[float, np.ndarray]:
        losses, gradients = zip(*(silo_loss(w, a, b) for a, b in zip(xs, ys, strict=True)), strict=True)
        return float(np.mean(losses)), np.mean(gradients, axis=0)

    options = {"gtol": 1e-10, "ftol": 1e-15, "maxiter": 5000}
    found = scipy.optimize.minimize(average, np.zeros(classes * 5), jac=True, method="L-BFGS-B", options=options)
    value = np.mean([np.sum(silo_loss(found.x, a, b)[1] ** 2) for a, b in zip(xs, ys, strict=True)])
    result = heterogeneity(xs, ys, "classification", classes)
    assert result.converged
    assert result.value == pytest.approx(value / 2 if classes == 2 else value, rel=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_have_no_minimiser(classes: int) -> None:
    y = np.repeat(np.arange(classes), 20)
    x = np.eye(classes)[y] + 0.01 * np.random.default_rng(0).normal(size=(len(y), classes))
    result = heterogeneity([x[::2], x[1::2]], [y[::2], y[1::2]], "classification", classes)
    assert not result.converged
    assert np.isfinite(result.value)


def test_classes_that_overlap_have_a_minimiser_that_is_found():
    for seed in range(40):
        generator = np.random.default_rng(seed)
        classes = 2 + seed % 2
        xs = [generator.normal(size=(20, 3)) * 10.0 ** generator.uniform(-1, 1) for _ in range(3)]
        ys = [generator.integers(0, classes, 20) for _ in xs]
        assert heterogeneity(xs, ys, "classification", classes).converged
