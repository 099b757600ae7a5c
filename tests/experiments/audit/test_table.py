"""Which algorithms of an experiment have rows in audit.csv."""

import small

from silodp.experiments.audit.lower_bound import audit_rows
from silodp.files import AUDIT_COLUMNS, AUDIT_EXTRA


def test_algorithms_that_assume_a_smooth_loss_have_no_row():
    """Noise that follows the step is private if every record's loss is as smooth as it says: nothing to be audited."""
    own = {"minibatch_sgd": {}, "fedprox_spider": {"options": {"smoothness": 2.0}}}
    rows = audit_rows(small.run(), "small", small.experiment(algorithms=own), [20, 20], runs=8)
    assert set(rows["algorithm"]) == {"minibatch_sgd"}
    alone = small.experiment(algorithms={"fedprox_spider": own["fedprox_spider"]})
    rows = audit_rows(small.run(), "small", alone, [20, 20], runs=8)
    assert rows.empty
    assert list(rows.columns) == [*AUDIT_COLUMNS, *AUDIT_EXTRA]
