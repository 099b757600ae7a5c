"""What a silo is charged beside what it is promised, for every algorithm that silos run."""

import pytest
from three_silos import CASES, SIZES, run_plan

from silodp.silos.ledger import opened


def totals(plan, folder):
    """ε of an empty ledger after one charge of the first silo's plan, and after a second."""
    found = []
    for run in ("first", "second"):
        with opened(folder) as ledger:
            ledger.charge(plan.accounted[0], {"run": run})
            found.append(ledger.total()[0])
    return found


@pytest.mark.parametrize(("name", "options"), CASES)
def test_no_charge_is_below_the_promise(name, options, tmp_path):
    plan = run_plan(name, options)
    promised = plan.epsilon(0)[1]
    first, second = totals(plan, tmp_path)
    assert promised <= first * (1 + 1e-9)
    assert first <= second


def test_noisy_steps_count_one_by_one_as_they_do_in_the_promise(tmp_path):
    """Steps on a lattice may expand distances: 3.215 was charged where 3.9995 is proven."""
    silos = {name: {"records": 200, "epsilon": 4.0, "delta": 1e-4, "certificate": name} for name in SIZES}
    plan = run_plan("local_sgd", {"noise_at": "contracted_step"}, rounds=20, batch_records=10, silos=silos)
    lower, promised = plan.epsilon(0)
    first, second = totals(plan, tmp_path)
    assert lower < promised == pytest.approx(first, rel=1e-9)
    assert first < second
