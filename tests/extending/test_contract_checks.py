"""What a registered entry lacks is named: a fault is told by the check that it belongs to, in its own words."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from toy_sign import ToySign

from silodp.algorithms.base import State
from silodp.datasets.base import Data, Dataset
from silodp.extending.contract import BUDGET, make_algorithm, results
from silodp.privacy.plan import Budget
from silodp.privacy.true_epsilon import upper_end

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
GOOD = Dataset(
    "toy", "Toy", "classification", True, "none", "nobody", 10, 2, lambda files: Data(X, Y, 2), (5, 5), (1, 2)
)
TARGETS = replace(GOOD, task="regression", class_counts=None, test_counts=None)


def told(entry):
    return {check: said for check, said in results(entry) if said}


def holding(dataset, *data):
    return replace(dataset, loader=lambda files: Data(*data))


@pytest.mark.parametrize(
    ("dataset", "check", "said"),
    [
        *(
            (replace(GOOD, **{name: ""}), "declared", f"{name}: must be given")
            for name in ("title", "licence", "citation")
        ),
        (replace(GOOD, task="regression"), "declared", "class_counts: for classification, and only"),
        (replace(GOOD, class_counts=None), "declared", "class_counts: for classification, and only"),
        (replace(GOOD, class_counts=(5, 6)), "declared", "class_counts: must add up to the records"),
        (replace(GOOD, records=9), "records", "records: 10 are there: must be 9"),
        (replace(GOOD, features=3), "records", "features: 2 are there: must be 3"),
        (holding(GOOD, np.where(X == 3, np.inf, X), Y, 2), "records", "x: must be finite"),
        (holding(GOOD, X, np.minimum(np.arange(10), 1), 2), "records", "class_counts: (1, 9) are there"),
        (holding(GOOD, X, Y, 3), "records", "class_counts: (5, 5) are there"),
        (
            holding(TARGETS, X, np.where(X[:, 0] == 2, np.nan, 0), None),
            "records",
            "y: must be finite targets, classes None",
        ),
        (holding(TARGETS, X, Y * 1.0, 2), "records", "y: must be finite targets, classes None"),
        (
            replace(GOOD, loader=lambda files: Data(np.random.default_rng().normal(size=(10, 2)), Y, 2)),
            "records",
            "loader: must give the same records every time",
        ),
        (
            replace(TARGETS, loader=lambda files: Data(X, np.random.default_rng().normal(size=10), None)),
            "records",
            "loader: must give the same records every time",
        ),
    ],
)
def test_a_fault_of_a_data_set_is_told(dataset, check, said):
    assert told(dataset)[check].startswith(said)


def test_data_sets_without_fault_pass():
    for dataset in (GOOD, replace(GOOD, test_counts=None), holding(TARGETS, X, Y * 0.5, None)):
        assert told(dataset) == {}
    pictures = replace(GOOD, images=True, features=12)
    assert told(holding(pictures, np.zeros((10, 3, 2, 2)), Y, 2)) == {}


class OfAnother(ToySign):
    def plan(self, budget):
        return replace(super().plan(budget), algorithm="another")


class Silent(ToySign):
    def plan(self, budget):
        return replace(super().plan(budget), releases=())


class WithoutBudget(ToySign):
    def plan(self, budget):
        return super().plan(replace(budget, epsilon=None))


class HalfBare(ToySign):
    def plan(self, budget):
        plan = super().plan(budget)
        return replace(plan, releases=(*plan.releases, replace(plan.releases[0], kind="more", noise=0.0)))


class NeverSent(ToySign):
    def plan(self, budget):
        plan = super().plan(budget)
        return replace(plan, releases=(replace(plan.releases[0], count=0),))


class Assuming(ToySign):
    def plan(self, budget):
        return replace(super().plan(budget), assumption="nobody looks")


class AlwaysNoisy(ToySign):
    def plan(self, budget):
        return super().plan(budget if budget.epsilon else replace(budget, epsilon=1.0))


class HalfNoisy(ToySign):
    def plan(self, budget):
        plan = super().plan(budget)
        return replace(plan, releases=(*plan.releases, replace(plan.releases[0], kind="more", noise=1.0)))


class Failing(ToySign):
    def plan(self, budget):
        raise ValueError("x" * 400)


@dataclass(frozen=True)
class Twice(State):
    more: object = None


class Meddling(ToySign):
    def start(self, weights):
        return Twice(weights, weights.clone())

    def round(self, r, state, federation):
        state.more.add_(1)
        return Twice(super().round(r, state, federation).w, state.more)


class Changing(ToySign):
    def round(self, r, state, federation):
        after = super().round(r, state, federation)
        return Twice(after.w, after.w)


class Growing(ToySign):
    def start(self, weights):
        return Twice(weights)

    def round(self, r, state, federation):
        return Twice(super().round(r, state, federation).w, state.w)


class Flat(ToySign):
    def round(self, r, state, federation):
        return State(super().round(r, state, federation).w[:, :1])


class Endless(ToySign):
    def round(self, r, state, federation):
        w = super().round(r, state, federation).w
        return State(w.where(w != w.max(), w / 0))


class Crowded(ToySign):
    """Two points of three move by 500 when the third leaves; of `beside` that is more than 1 in 1e13."""

    beside = 5e15 - 1

    def round(self, r, state, federation):
        return State(state.w * 0 + self.beside + (500 if len(state.w) == 2 else 0))


class LessCrowded(Crowded):
    beside = 5e15


class One(ToySign):
    def output(self, state):
        return state.w[:1]


class Still(ToySign):
    def round(self, r, state, federation):
        super().round(r, state, federation)
        return state


@pytest.mark.parametrize(
    ("kind", "check", "said"),
    [
        (OfAnother, "plan", "the plan is of 'another': must be of 'toy_sign'"),
        (Silent, "plan", "the plan must release something, with noise"),
        (WithoutBudget, "plan", "the plan must release something, with noise"),
        (HalfBare, "plan", "every release of the plan must have noise at a finite epsilon"),
        (NeverSent, "plan", "true epsilon up to 0.0: must be positive and finite"),
        (Assuming, "plan", "true epsilon up to inf: must be positive and finite"),
        (AlwaysNoisy, "plan", "without epsilon the plan must have no noise"),
        (HalfNoisy, "plan", "without epsilon the plan must have no noise"),
        (Failing, "plan", "ValueError: " + "x" * 288),
        (Meddling, "states", "round must not change the state that it is given"),
        (Changing, "states", "round must give a state of the same class as start"),
        (Growing, "states", "a state must keep the same tensors from round to round"),
        (Flat, "states", "linear: w is (3, 1): must be (G, d) = (3, 4), or (G, N, d)"),
        (Endless, "states", "linear: w is not finite after round 0"),
        (One, "states", "output must give one model for each point, (G, d)"),
        (Still, "states", "noise must change the model"),
        (Crowded, "rows", "w: a point must not depend on the others of the stack"),
    ],
)
def test_a_fault_of_an_algorithm_is_told(kind, check, said):
    found = told(kind)[check]
    assert found.startswith(said)
    assert len(found) <= 300


class Quiet(ToySign):
    def plan(self, budget):
        return super().plan(budget if budget.epsilon is None else replace(budget, epsilon=budget.epsilon / 50))


def test_an_algorithm_without_fault_passes():
    assert told(ToySign) == {}
    assert upper_end([make_algorithm(Quiet).plan(BUDGET)]) < 0.1
    assert told(Quiet) == {}
    assert "rows" not in told(LessCrowded)


class Recording(ToySign):
    made, budgets, played, first, order = [], [], [], [], []

    @classmethod
    def with_options(cls, options):
        cls.made.append(options)
        return super().with_options(options)

    def plan(self, budget):
        self.budgets.append(budget)
        return super().plan(budget)

    def round(self, r, state, federation):
        points = tuple(zip(federation.stepsize.flatten().tolist(), federation.clip.tolist(), strict=True))
        values = {float(value) for _, y in federation.messages.silos if y is not None for value in y}
        ends = (min(values), max(values)) if values and all(value % 1 == 0 for value in values) else None
        self.played.append((tuple(state.w.shape), points, self.rounds, ends))
        self.first += [state.w[0]] if r == 0 else []
        self.order.append((federation.M, r, state.w.sum().item()))
        return super().round(r, state, federation)


def test_an_algorithm_is_tried_by_silos_of_two_sizes_with_and_without_noise_in_every_form_of_model():
    assert told(Recording) == {}
    fixed = {"phase_length": 2, "silos": 2, "cohort": 1}
    assert Recording.made == [fixed | {"rounds": made["rounds"]} for made in Recording.made]
    assert {made["rounds"] for made in Recording.made} == {6, 12}
    whole = {Budget(200, 6, epsilon, 1e-4, 4.0) for epsilon in (2.0, None)}
    tiny = {Budget(n, R, epsilon, 0.02, 9.0) for n in (3, 2) for R in (6, 12) for epsilon in (1.0, None, 3.0)}
    assert set(Recording.budgets) == whole | tiny
    # d of linear, logistic, softmax of 3 classes, and 3 hidden units of 2 classes; two of three points at the end.
    sizes = {3: (4, 4 * 3 + 3, 4 * 3 + 3 + 3 * 2 + 2), 2: (4,)}
    assert {shape for shape, *_ in Recording.played} == {(G, d) for G, of in sizes.items() for d in of}
    assert {points for _, points, *_ in Recording.played} == {((0.1, 1), (0.1, 1), (0.2, 1)), ((0.1, 1), (0.2, 1))}
    assert sum(rounds == 12 for _, _, rounds, _ in Recording.played) == 12
    # How many of the two silos take part in a run, and its rounds.
    runs = "".join(f"{r:x}" if r else f" {M}:0" for M, r, _ in Recording.order).split()
    assert Counter(runs) == {"1:012": 4, "2:01": 2, "2:012345": 1, "2:0123456789ab": 1}
    # The same records and noise for everybody.
    assert Recording.order[-1][2] == pytest.approx(-2.1934072302780385, rel=1e-12)
    # The first and last class of logistic, softmax and perceptron; a linear target is none.
    classes = {(4, None), (4, (0, 1)), (15, (0, 2)), (23, (0, 1))}
    assert {(d, ends) for (_, d), *_, ends in Recording.played} == classes
    # Runs begin neither at 0 nor where a sigmoid is flat.
    assert all(0.2 < first.square().mean().sqrt() < 0.6 for first in Recording.first)
