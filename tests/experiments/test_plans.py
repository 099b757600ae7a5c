"""One plan, made once and complete, for guard, training, privacy table and audit."""

import collections

import small
from jobs import prepared_of, task

from silodp.algorithms import ALGORITHMS
from silodp.experiments import plans
from silodp.experiments.audit.lower_bound import _points
from silodp.experiments.delivered import privacy_rows
from silodp.experiments.guard import unproven, unproven_task
from silodp.experiments.selection import select
from silodp.experiments.training import run_trials, stacks


def test_guard_training_table_and_audit_share_one_plan(monkeypatch):
    """Each is made once, whoever asks, and nothing comes of it but what was made."""
    made, kind = collections.Counter(), ALGORITHMS["fedprox_spider"]
    plain = kind.plan
    plans.complete_plan.cache_clear()
    monkeypatch.setattr(kind, "plan", lambda self, budget: made.update([(self, budget)]) or plain(self, budget))
    readings = {"noise": "calibrated", "clipping": "per_tensor"}
    changes = {"readings": readings, "allow_unproven": False, "epsilons": [8.0], "phase_lengths": [2]}
    job = task("fedprox_spider", algorithms={"fedprox_spider": {}}, **changes)
    prepared = prepared_of(job, small.run())
    sizes = prepared(0).sizes
    assert unproven("small", job.config, sizes) is None
    assert unproven_task(job, sizes) is None
    trained = run_trials(job, small.run(), prepared, [0, 1])
    privacy_rows("small", job.config, select(trained, job.config), sizes)
    audited = [plan for _, each, _ in stacks(job, _points(job), sizes) for plan in each]
    assert set(made.values()) == {1}
    assert len(made) == len(job.grid()[["epsilon", "phase_length"]].drop_duplicates())
    assert audited[0][0] is job.plans(audited[0][0].budget.epsilon, 2, sizes)[1]


def test_silos_of_one_size_have_one_plan_and_others_their_own():
    equal = task().plans(2.0, 1, [169, 285, 169])
    assert equal[0] is equal[1] is equal[2]
    own = task(readings={"records": "own"}).plans(2.0, 1, [169, 285, 169])
    assert own[0] is own[2]
    assert own[1].budget.n == 285
