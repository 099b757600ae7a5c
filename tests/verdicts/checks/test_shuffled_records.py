"""Shuffled privacy with several records a silo: rounds within the theorem, records drawn, planted exponents."""

import dataclasses
import math

import numpy as np
import pytest

from silodp.federation.rng import Streams
from silodp.privacy.plan import Release
from silodp.privacy.shuffling.shuffled_gaussian import ShuffledNoise
from silodp.theory import THEOREMS
from silodp.theory.problems.known import Quadratic
from silodp.theory.registry import AssumptionError
from silodp.verdicts.checks import shuffled_records
from silodp.verdicts.checks.base import Context, sweep_rows
from silodp.verdicts.checks.shuffled_records import AXES, SILOS, AlikeSilos, _records, _schedule, _sweep

CONTEXT = Context(Streams(7))


@pytest.fixture(autouse=True)
def quick_noise(monkeypatch):
    """Noise by the theorem's formula at C = 105, near what calibration finds, which takes seconds; and fewer rounds."""

    def noise(epsilon, **point):
        unit = THEOREMS["convex-4.1-noise"](**point, L=1.0, epsilon=epsilon).terms["unit"]
        return ShuffledNoise(math.sqrt(105 * unit), 105.0)

    monkeypatch.setattr(shuffled_records, "shuffled_noise", noise)
    for axis, part in (("n", slice(3)), ("M", slice(2, 5))):
        exponent, rivals, values = AXES[axis]
        monkeypatch.setitem(AXES, axis, (exponent, rivals, values[part]))
    _schedule.cache_clear()
    yield
    _schedule.cache_clear()


@pytest.mark.parametrize(("axis", "wrong", "rivals"), [("n", -1.0, (-0.5, -2.0)), ("M", -1.0, (-2.0, 0.0))])
def test_a_wrong_exponent_is_refuted_and_the_right_one_is_not(axis, wrong, rivals):
    """In n the rate of the other term; in M that of ISRL-DP."""
    sweep = _sweep(CONTEXT, axis)
    # The rows that `sweep` has measured once.
    samples = {value: sweep.sample(value) for value in sweep.values}
    sweep = dataclasses.replace(sweep, sample=samples.get)
    right = sweep_rows(sweep, CONTEXT.streams)[-1]
    assert right["verdict"] in ("confirmed", "order agrees")
    planted = dataclasses.replace(sweep, exponent=wrong, neighbours=rivals, formula=lambda value: value**wrong)
    assert sweep_rows(planted, CONTEXT.streams)[-1]["verdict"] == "refuted"


def test_a_theorem_with_a_planted_wrong_exponent_is_refuted():
    """M² in place of N² in the private term."""
    theorem = THEOREMS["convex-4.1-strong"]

    def wrong(**point):
        found = theorem.function(**point)
        factor = (point["N"] / point["M"]) ** 2
        return dataclasses.replace(found, terms={"private": found.terms["private"] * factor})

    planted = THEOREMS | {"convex-4.1-strong": dataclasses.replace(theorem, function=wrong)}
    sweep = _sweep(dataclasses.replace(CONTEXT, theorems=planted), "M")
    sweep = dataclasses.replace(sweep, sample=lambda M: np.linspace(0.9, 1.1, 8))
    found = sweep_rows(sweep, CONTEXT.streams)[-1]
    assert (found["verdict"], found["detail"][:27]) == ("refuted", "the formula's own slope is ")


def test_rounds_are_the_theorems_and_too_few_silos_are_refused():
    """n²N²ε²/M where it leads; M has to be at least 16 ln(18RM²/(Nδ))."""
    assert _schedule(16, SILOS).rounds == 256 * SILOS // 3200**2
    assert _schedule(4, SILOS // 16).rounds == 16 * 16 * SILOS // 3200**2
    with pytest.raises(AssumptionError, match="enough shuffled messages: M = 100 is not allowed"):
        _schedule(1, 100)


def test_records_of_a_silo_differ_around_the_mean_and_are_drawn_one_a_silo():
    problem = Quadratic(4, bias=0.5)
    records = _records(problem, 5)
    assert records.shape == (1, 1, 5, 4)
    assert len(np.unique(records[0, 0].round(9), axis=0)) == 5
    assert records.mean(axis=2).ravel() == pytest.approx(np.full(4, 0.25))
    assert np.linalg.norm(records, axis=-1).max() <= problem.D
    release = Release("gradient", 3, 1, 0.0)
    silos = AlikeSilos(problem.gradients, records, [release], trials=4000, N=2, streams=Streams(3))
    drawn = silos._rows(release, silos.draw(0), 0)[:, 0, 0]
    # Of two silos: each record with variance 1/2 of one's, and the same silos draw anew in another round.
    assert drawn.mean(axis=0) == pytest.approx(np.full(4, 0.25), abs=0.02)
    assert drawn.var(axis=0)[:2] == pytest.approx(records[0, 0].var(axis=0)[:2] / 2, rel=0.1)
    assert (silos._rows(release, silos.draw(1), 1)[:, 0, 0] != drawn).any()
