"""Shuffled privacy with several records a silo: rounds within the theorem, records drawn, planted exponents."""

import dataclasses
import math

import numpy as np
import pytest
from wrong_theorems import last_row, measured_once, planted

from silodp.privacy.plan import Release
from silodp.privacy.shuffling.shuffled_gaussian import ShuffledNoise
from silodp.streams import Streams
from silodp.theory import THEOREMS
from silodp.theory.problems.known import Quadratic
from silodp.theory.theorem import AssumptionError
from silodp.verdicts.checks import shuffled_records
from silodp.verdicts.checks.base import Context
from silodp.verdicts.checks.shuffled_records import AXES, SILOS, AlikeSilos, _records, _schedule, _sweeps

CONTEXT = Context(Streams(7))


def along(axis, context=CONTEXT):
    return next(sweep for sweep in _sweeps(context) if sweep.axis == axis)


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
    sweep = measured_once(along(axis))
    assert last_row(sweep, CONTEXT)["verdict"] in ("confirmed", "order agrees")
    assert last_row(sweep, CONTEXT, wrong, rivals)["verdict"] == "refuted"


def test_a_theorem_with_a_planted_wrong_exponent_is_refuted():
    """M² in place of N² in the private term."""

    def squared(result, point):
        private = result.terms["private"] * (point["N"] / point["M"]) ** 2
        return dataclasses.replace(result, terms={"private": private})

    sweep = along("M", planted(CONTEXT, "convex-4.1-strong", squared))
    row = last_row(dataclasses.replace(sweep, sample=lambda M: np.linspace(0.9, 1.1, 8)), CONTEXT)
    assert (row["verdict"], row["detail"][:27]) == ("refuted", "the formula's own slope is ")


def test_rounds_are_the_theorems_and_too_few_silos_are_refused():
    """n²N²ε²/M where it leads; M has to be at least 16 ln(18RM²/(Nδ))."""
    assert _schedule(16, SILOS).rounds == 256 * SILOS // 3200**2
    assert _schedule(4, SILOS // 16).rounds == 16 * 16 * SILOS // 3200**2
    with pytest.raises(AssumptionError, match="enough shuffled messages: M = 100 is not allowed"):
        _schedule(1, 100)


def test_records_of_a_silo_differ_around_the_mean_and_are_drawn_one_a_silo():
    problem = Quadratic(4, bias=0.5)
    records = _records(5)
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
