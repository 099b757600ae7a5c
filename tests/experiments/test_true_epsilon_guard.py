"""A claim that is not proven is refused before any work, unless the experiment says that it may stand."""

import jobs
import pytest
import yaml
from events import upper_epsilon

from silodp.cli import main
from silodp.experiments.true_epsilon_guard import unproven, unproven_task
from silodp.jobs.__main__ import main as run_job

SIZES = [60, 80]


def task(algorithm="minibatch_sgd", **changes):
    return jobs.task(algorithm, **{"allow_unproven": False, "algorithms": {algorithm: {}}} | changes)


def plan_of(one, epsilon, q=1):
    return one.plans(epsilon, q, SIZES)[0]


def test_a_claim_that_is_not_certified_is_refused():
    one = task(epsilons=[0.5, 40.0])
    assert upper_epsilon(plan_of(one, 40.0), plan_of(one, 40.0).budget.delta) > 40
    text = unproven_task(one, SIZES)
    assert text is not None
    assert "is not certified at its claim of 40" in text
    assert "minibatch_sgd" in text
    assert unproven("small", one.config, SIZES) == text


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilons": [0.05]},
        {"epsilons": [40.0], "allow_unproven": True},
        {"epsilons": [40.0], "algorithms": {"minibatch_sgd": {"private": "non_private"}}},
    ],
    ids=["proven", "allowed", "no claim"],
)
def test_what_is_proven_or_allowed_or_claims_nothing_may_run(changes):
    assert unproven("small", task(**changes).config, SIZES) is None


@pytest.mark.parametrize("algorithm", ["minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider"])
@pytest.mark.parametrize("where", ["reading", "option"])
def test_calibrated_noise_delivers_the_claim_and_no_less(algorithm, where):
    changes = {"readings": {"noise": "calibrated"}} if where == "reading" else {}
    options = {"noise": "calibrated"} if where == "option" else {}
    one = task(algorithm, epsilons=[0.5, 12.0], algorithms={algorithm: options}, **changes)
    assert unproven_task(one, SIZES) is None
    for epsilon in (0.5, 12.0):
        plan = plan_of(one, epsilon, 2)
        assert 0.998 * epsilon < upper_epsilon(plan, plan.budget.delta) <= epsilon


def test_calibrated_noise_keeps_the_papers_proportions_and_draws():
    paper = task("fed_spider", epsilons=[3.0])
    calibrated = task("fed_spider", epsilons=[3.0], readings={"noise": "calibrated"})
    before, after = plan_of(paper, 3.0), plan_of(calibrated, 3.0)
    factors = [new.noise / old.noise for new, old in zip(after.releases, before.releases, strict=True)]
    assert factors[0] == pytest.approx(factors[1])
    assert factors[0] != pytest.approx(1, abs=0.01)
    assert [one.records_drawn for one in after.releases] == [one.records_drawn for one in before.releases]
    assert after is plan_of(calibrated, 3.0)  # worked out once


def test_commands_stop_with_exit_code_2(tmp_path, capsys):
    path = tmp_path / "run.yaml"
    run = {"run": "r", "experiments": {"wbcd_mlp": {"allow_unproven": False, "phase_lengths": [1]}}}
    path.write_text(yaml.safe_dump(run))
    for command in (["config", "check", str(path)], ["rebuild", str(path)]):
        assert main(command) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert "experiments.wbcd_mlp.allow_unproven: False: must be true" in lines[0]


def test_a_training_job_looks_at_its_own_silos(tmp_path, capsys, monkeypatch):
    """Where the load could be mistaken about the silos' sizes, the job still stops before it trains."""
    monkeypatch.setattr("silodp.experiments.validation.unproven", lambda *_: None)
    path = tmp_path / "run.yaml"
    run = {"run": "r", "experiments": {"wbcd_mlp": {"allow_unproven": False, "trials": 1}}}
    path.write_text(yaml.safe_dump(run))
    silos, output = tmp_path / "silos", tmp_path / "trials.parquet"
    of = [f"run_file={path}", "experiment=wbcd_mlp"]
    assert run_job(["partition", *of, f"output={silos}"]) == 0
    train = ["train", *of, "algorithm=minibatch_sgd", "setting=M2_R25", f"silos={silos}", f"output={output}"]
    assert run_job(train) == 2
    assert "allow_unproven: False: must be true" in capsys.readouterr().err
    assert not output.exists()
