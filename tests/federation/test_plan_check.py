"""The plan is what runs: algorithms that ask for more than their plan has are stopped wherever they run."""

import dataclasses
import math

import pytest
import small
import torch
from events import upper_epsilon
from small import MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.fedprox_spider import FedProxSpider
from silodp.algorithms.minibatch_sgd import MinibatchSGD
from silodp.audit.mechanism_check import check_mechanism
from silodp.experiments.training import train_stack
from silodp.extending.contract import Broken, sends_its_plan
from silodp.federation.interface import Query
from silodp.federation.plan_check import BrokenPlan, PlanCheck
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.streams import Streams

ROUNDS, SIZES, POINTS = 8, (9, 9), [Point(1.0, 0.05, 1.0), Point(3.0, 0.05, 1.0)]


class TwiceARound(MinibatchSGD):
    def round(self, r, state, federation):
        return super().round(r, super().round(r, state, federation), federation)


class MoreRounds(MinibatchSGD):
    """A second message under the name of a round to come."""

    def round(self, r, state, federation):
        return super().round(r + self.rounds, super().round(r, state, federation), federation)


class QuietLater(MinibatchSGD):
    def round(self, r, state, federation):
        factor = torch.zeros(len(state.w)).to(state.w) if r >= 6 else None
        gradient = federation.mean(Query(state.w, r, noise_factor=factor))
        return dataclasses.replace(state, w=state.w - federation.stepsize * gradient)


class Doubled(MinibatchSGD):
    """A difference, of twice the sensitivity, sent as a gradient."""

    def round(self, r, state, federation):
        gradient = federation.mean_message(state.w, r, "gradient", -state.w)
        return dataclasses.replace(state, w=state.w - federation.stepsize * gradient)


class TurnedOff(MinibatchSGD):
    """Writes into the noise of the federation that it is given."""

    def round(self, r, state, federation):
        for kinds in federation.noise:
            for scale in kinds.values():
                scale.mul_(0.1)
        return super().round(r, state, federation)


class Unclipped(MinibatchSGD):
    def round(self, r, state, federation):
        federation.clip.mul_(10)
        return super().round(r, state, federation)


class PastTheDoor(MinibatchSGD):
    """Asks the silos' messages themselves, without noise."""

    def round(self, r, state, federation):
        release, clip = federation.releases[0]["gradient"], federation.clip
        federation.messages.record_gradients(Query(state.w, r), 0, release, clip)
        return super().round(r, state, federation)


LIARS = {
    TwiceARound: "sent twice",
    MoreRounds: "round must be a whole number from 0 to 7",
    QuietLater: "the plan states no assumption",
    Doubled: "gradient(s) of a record",
    TurnedOff: "must have the noise of the plan",
    Unclipped: "sampler, clipping and clip",
    PastTheDoor: "sent without noise",
}


def trained(method, points=POINTS):
    case = MODEL_CASES["linear"]
    silos = small.records(case, SIZES, torch.float64)
    federation = small.federation(case.model(), silos, small.plans(method, points, SIZES), points)
    start = small.start(case.model(), torch.float64)
    return train_stack(method, federation, case.model(), start, silos)


@pytest.mark.parametrize("liar", LIARS)
def test_training_stops_an_algorithm_that_does_not_keep_its_plan(liar):
    with pytest.raises(BrokenPlan, match=r"minibatch_sgd: round .*, silo .*, message 'gradient': ") as caught:
        trained(liar(ROUNDS))
    assert LIARS[liar] in str(caught.value)
    assert "\n" not in str(caught.value)


OTHER = {"records": 5, "gradients": 2, "steps": 2, "sampler": "subset", "clipping": "per_tensor", "tensors": 4}
OTHER |= {"contracted": True, "mixing": (1.0, 0.5), "joint": True, "part": (0, 5), "slack": 0.5, "kind": "other"}


@pytest.mark.parametrize("field", OTHER)
def test_a_message_has_every_field_of_the_plans_release_but_its_count_and_noise(field):
    assert {*OTHER, "count", "noise"} == {one.name for one in dataclasses.fields(Release)}
    plan = MinibatchSGD(ROUNDS).plan(Budget(20, ROUNDS, 1.0, 1e-3, 4.0))
    clip, noise = torch.ones(1), torch.tensor([plan["gradient"].noise])
    check = PlanCheck([[plan]], clip, [{"gradient": noise}])
    more = {"sampler": "disjoint"} if field == "mixing" else {}  # which mixed noise needs
    changed = dataclasses.replace(plan["gradient"], **{field: OTHER[field]}, **more)
    with pytest.raises(BrokenPlan, match="must have the plan's records, sampler, clipping and clip"):
        check(Query(torch.zeros(1, 2), 0), [0], [changed], clip, [noise])
    check(Query(torch.zeros(1, 2), 0), [0], [dataclasses.replace(plan["gradient"], count=1, noise=9.0)], clip, [noise])


@pytest.mark.parametrize("wrong", [7.0, "7", math.nan, -1, 10**30, None, (1,), True, ROUNDS])
def test_a_refused_question_changes_nothing(wrong):
    """7 and "7" name one stream: the difference of their messages had no noise. −10 took a used record again."""
    plan = MinibatchSGD(ROUNDS).plan(Budget(20, ROUNDS, 1.0, 1e-3, 4.0))
    clip, noise = torch.ones(1), [{"gradient": torch.tensor([plan["gradient"].noise])}]
    check = PlanCheck([[plan]], clip, noise)
    for _ in range(2 * ROUNDS):
        with pytest.raises(BrokenPlan, match="round must be a whole number from 0 to 7"):
            check(Query(torch.zeros(1, 2), wrong), [0], [plan["gradient"]], clip, [noise[0]["gradient"]])
    for kind in ("difference", None, 0):
        with pytest.raises(BrokenPlan, match="must be of a kind that the plan has: gradient"):
            check(Query(torch.zeros(1, 2), 0, kind), [0], [plan["gradient"]], clip, [noise[0]["gradient"]])
    for silo in (-1, 1, True):
        with pytest.raises(BrokenPlan, match="silo must be a whole number from 0 to 0"):
            check(Query(torch.zeros(1, 2), 0), [silo], [plan["gradient"]], clip, [noise[0]["gradient"]])
    for r in range(ROUNDS):
        check(Query(torch.zeros(1, 2), r), [0], [plan["gradient"]], clip, [noise[0]["gradient"]])


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("field", ["weights", "previous"])
def test_a_question_has_a_row_for_each_point_of_the_plan(field, rows):
    """Two models in one question were answered with one draw of noise: their difference had none."""
    release = Release("difference", 1, 5, 1.0, gradients=2)
    plan = PrivacyPlan("fed_spider", Budget(20, 1, 1.0, 1e-3, 4.0), (release,))
    clip, noise = torch.ones(1), torch.ones(1)
    check = PlanCheck([[plan]], clip, [{"difference": noise}])
    asked = {"weights": torch.zeros(1, 2), "previous": torch.zeros(1, 2)}
    with pytest.raises(BrokenPlan, match="weights: must be of 1 point"):
        check(Query(round=0, kind="difference", **asked | {field: torch.zeros(rows, 2)}), [0], [release], clip, [noise])
    check(Query(round=0, kind="difference", **asked), [0], [release], clip, [noise])


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd"])
def test_messages_made_at_once_are_refused_at_once(name):
    """Silos before the one that refused had used up a message that was never made."""
    algorithm = ALGORITHMS[name].with_options({"rounds": ROUNDS, "silos": 3, "cohort": 3}).fitted(20, None)
    plan = algorithm.plan(Budget(20, ROUNDS, 1.0, 1e-3, 4.0))
    clip, noise = torch.ones(1), torch.tensor([plan.releases[0].noise])
    check, query = PlanCheck([[plan] * 3], clip, [{plan.releases[0].kind: noise}] * 3), Query(torch.zeros(1, 2), 0)
    query, release = dataclasses.replace(query, kind=plan.releases[0].kind), plan.releases[0]
    check(query, [2], [release], clip, [noise])
    for silos, fault in (([0, 1, 2], "silo 2.*sent twice"), ([0, 0], "named twice")):
        with pytest.raises(BrokenPlan, match=fault):
            check(query, silos, [release] * len(silos), clip, [noise] * len(silos))
    check(query, [0, 1], [release] * 2, clip, [noise] * 2)


@pytest.mark.parametrize("liar", LIARS)
def test_so_do_audit_and_contract(liar):
    plans = [[liar(ROUNDS).plan(Budget(20, ROUNDS, epsilon, 1e-3, 4.0))] * 2 for epsilon in (1.0, 3.0)]
    with pytest.raises(BrokenPlan) as caught:
        check_mechanism(liar(ROUNDS), plans, Streams(0))
    assert LIARS[liar] in str(caught.value)
    with pytest.raises((BrokenPlan, Broken)):
        sends_its_plan(liar)


def test_two_messages_where_the_plan_has_one_were_worth_more_than_the_claim():
    """What the check is for: twice the messages at the noise of one a round."""
    plan = MinibatchSGD(ROUNDS).plan(Budget(200, ROUNDS, 3.0, 1e-4, 4.0))
    (one,) = plan.releases
    twice = dataclasses.replace(plan, releases=(dataclasses.replace(one, count=2 * one.count),))
    assert upper_epsilon(twice, 1e-4) > 1.3 * upper_epsilon(plan, 1e-4)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if "shuffled" not in name])
def test_registered_algorithms_keep_their_plans_also_when_points_leave(name):
    points = [*POINTS, Point(2.0, 1e12, 1e12)]
    method = ALGORITHMS[name].with_options({"rounds": ROUNDS, "phase_length": 2, "silos": 2, "cohort": 2})
    _, left = trained(method, points)
    assert left[2] >= 0 or not method.rounds


def test_noise_that_an_assumption_allows_may_follow_the_step():
    method = FedProxSpider(ROUNDS, phase_length=2, smoothness=1.0)
    weights, _ = trained(method)
    assert torch.isfinite(weights).all()
