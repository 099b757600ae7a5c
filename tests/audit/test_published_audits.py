"""Audits of the published tables, played again, give the published findings."""

import numpy as np
import pandas as pd
import pytest
from published import first_partition, one_in_five
from small import ROOT

from silodp.audit.audit_rows import audit_rows
from silodp.experiments.task import Task
from silodp.experiments.validation import experiment_of

KEY = ["algorithm", "setting", "phase_length", "claimed_epsilon"]
AUDITS = [("published", "wbcd_mlp", name) for name in ("fedprox_spider", "local_sgd")]
AUDITS += [("published", "wbcd_leaderboard", "dp_scaffold")]
AUDITS += [("published", "lasso_pl_insurance", "prox_svrg")]


@pytest.mark.parametrize(("publication", "name", "algorithm"), one_in_five(pytest.param(*one) for one in AUDITS))
def test_audits_are_those_of_the_published_table(publication, name, algorithm, needs_data):
    folder = ROOT / "results" / publication
    run, config = experiment_of(folder / "config.json", name)
    task = Task(name, config, algorithm, config.settings[0])
    sizes = [len(records) for records in first_partition(task, run, needs_data).train]
    wanted = pd.read_csv(folder / "audit.csv").query("experiment == @name and algorithm == @algorithm")
    alone = config.model_copy(update={"algorithms": {algorithm: config.algorithms[algorithm]}})
    both = audit_rows(run, name, alone, sizes).merge(wanted, on=KEY, suffixes=("", "_published"))
    assert len(both) == len(wanted)
    for column in ("delivered_epsilon", "mechanism_p"):
        np.testing.assert_allclose(both[column], both[f"{column}_published"], rtol=1e-6, err_msg=column)
    assert both["mechanism"].tolist() == both["mechanism_published"].tolist()
