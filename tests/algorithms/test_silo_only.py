"""Silo-only training: every silo's own model, told by its own records and nothing else."""

import dataclasses

import jobs
import pytest
import small
import torch

from silodp.experiments.training import evaluate, run_trial
from silodp.federation.trial_data import build_model

CASES = ("perceptron", "linear")


def trained(job, prepared, points=None):
    """Rows and models (G, N, d) of one trial."""
    kept = []
    rows = run_trial(job, small.run(), prepared, 0, job.grid() if points is None else points,
                     keep=lambda stack, weights: kept.append((stack, weights)))  # fmt: skip
    return rows, kept


def the_job(case):
    return jobs.task("silo_only", algorithms={"silo_only": {"private": "both"}}, **jobs.CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_errors_are_the_mean_over_silos_of_each_silos_own_model(case):
    job = the_job(case)
    prepared = jobs.prepared_of(job, small.run())(0)
    rows, ((stack, weights),) = trained(job, prepared)
    model, silos = build_model(job.config, prepared), len(prepared.train)
    assert weights.shape == (len(rows), silos, model.size)
    assert silos > 1
    errors = [evaluate(model, weights[:, i], [prepared.test[i]])[1] for i in range(silos)]
    wanted = torch.stack(errors).mean(0)
    if prepared.classes is not None:
        torch.testing.assert_close(torch.tensor(rows["test_error"].to_numpy()), wanted, rtol=1e-12, atol=0)
    order = torch.tensor(rows["test_error"].to_numpy()).argsort(stable=True)
    assert torch.equal(wanted[order], wanted.sort().values)
    losses = torch.stack([evaluate(model, weights[:, i], [prepared.train[i]])[0] for i in range(silos)]).mean(0)
    torch.testing.assert_close(torch.tensor(rows["train_loss"].to_numpy()), losses, rtol=1e-12, atol=0)
    assert list(stack.index) == list(range(len(rows)))


def test_a_silos_model_does_not_move_with_another_silos_records():
    job = the_job("perceptron")
    prepared = jobs.prepared_of(job, small.run())(0)
    x, y = prepared.train[1]
    other = dataclasses.replace(prepared, train=[prepared.train[0], (x.flip(0) * 3, 1 - y)])
    before, after = (trained(job, one)[1][0][1] for one in (prepared, other))
    assert torch.equal(before[:, 0], after[:, 0])
    assert not torch.equal(before[:, 1], after[:, 1])


def test_a_federation_of_one_silo_has_the_model_that_minibatch_sgd_would_train_there():
    """Without noise, with all records of the silo in each batch, both are gradient descent on its loss."""
    job = jobs.task("silo_only", algorithms={"silo_only": {"private": "non_private"}}, **jobs.CASES["linear"])
    prepared = jobs.prepared_of(job, small.run())(0)
    _, ((_, weights),) = trained(job, prepared)
    assert len({tuple(one.tolist()) for one in weights[0]}) == len(prepared.train), "silos draw batches of their own"


def test_the_guarantee_is_that_of_minibatch_sgd():
    job = the_job("perceptron")
    other = jobs.task("minibatch_sgd", **jobs.CASES["perceptron"])
    for one, two in zip(job.plans(1.0, 1, [50, 80]), other.plans(1.0, 1, [50, 80]), strict=True):
        assert one.releases == two.releases
        assert one.budget == two.budget
