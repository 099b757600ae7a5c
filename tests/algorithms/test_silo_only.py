"""Silo-only training: every silo's own model, told by its own records and nothing else."""

import dataclasses

import jobs
import pytest
import small
import torch

from silodp.experiments import training
from silodp.experiments.training import evaluate, train_stack
from silodp.partition.trial_data import build_model

CASES = ("perceptron", "linear")


def trained(job, prepared, monkeypatch):
    """Rows and models (G, N, d) of one trial."""
    models = []

    def kept(*arguments):
        weights, left = train_stack(*arguments)
        models.append(weights)
        return weights, left

    monkeypatch.setattr(training, "train_stack", kept)
    rows = training.run_trial(job, small.run(), prepared, 0, job.grid())
    monkeypatch.undo()
    return rows, torch.stack(models, 1)


def the_job(case):
    return jobs.task("silo_only", algorithms={"silo_only": {"private": "both"}}, **jobs.CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_errors_are_the_mean_over_silos_of_each_silos_own_model(case, monkeypatch):
    job = the_job(case)
    prepared = jobs.prepared_of(job, small.run())(0)
    rows, weights = trained(job, prepared, monkeypatch)
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


def test_a_silos_model_does_not_move_with_another_silos_records(monkeypatch):
    job = the_job("perceptron")
    prepared = jobs.prepared_of(job, small.run())(0)
    x, y = prepared.train[1]
    other = dataclasses.replace(prepared, train=[prepared.train[0], (x.flip(0) * 3, 1 - y)])
    before, after = (trained(job, records, monkeypatch)[1] for records in (prepared, other))
    assert torch.equal(before[:, 0], after[:, 0])
    assert not torch.equal(before[:, 1], after[:, 1])
