"""A claim about messages seen together is for M silos with one noise: nothing else is trained under it."""

import pytest
from jobs import task, train

from silodp.experiments.training import check_accounted


@pytest.mark.parametrize("name", ["shuffled_minibatch_sgd", "sdp_prox_sgd", "sdp_fedprox_spider"])
def test_random_participants_are_refused(name):
    job = task(name, settings=[{"M": 1, "R": 3, "participants": [1, 2]}])
    with pytest.raises(ValueError, match=r"participants = \[1, 2\]: must be the plan's M = 1 in every round"):
        train(job, [0])


def test_silos_with_noise_of_their_own_are_refused():
    quiet, loud = (
        task("shuffled_minibatch_sgd", algorithms={"shuffled_minibatch_sgd": {"noise": noise}}).plans(2.0, 1, [150])
        for noise in (0.4, 0.8)
    )
    summed = task("sdp_prox_svrg", readings={"records": "own"}).plans(2.0, 1, [150, 285])
    for plans in ([*quiet, *loud], summed):
        with pytest.raises(ValueError, match="silos with different noise or batches"):
            check_accounted(plans, plans[0].trusted_sum or plans[0].shuffler.M)


def test_other_numbers_of_silos_than_the_shufflers_are_refused():
    plans = task("shuffled_minibatch_sgd").plans(2.0, 1, [150] * 3)
    with pytest.raises(ValueError, match="N = 3: must be the plan's N = 2"):
        check_accounted(plans, 2)


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd", "fed_spider"])
def test_a_claim_about_a_silos_own_messages_holds_whoever_takes_part(name):
    plans = task(name, readings={"records": "own"}).plans(2.0, 1, [150, 285])
    assert plans[0].releases != plans[1].releases
    check_accounted(plans, [1, 2])
