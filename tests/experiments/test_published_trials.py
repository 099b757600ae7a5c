"""A published trial of every algorithm, form and protocol variant, trained again, gives the published numbers."""

import pandas as pd
import pytest
from published import data_of, one_in_five
from small import ROOT

from silodp.config.board import on_board
from silodp.experiments.task import POINT, task_at
from silodp.experiments.training import run_trial
from silodp.experiments.validation import experiment_of
from silodp.partition.trial_data import draw_partition, prepare

# Those whose trials take a second. Without penalty insurance's steps expand distances, so that another processor's
# rounding grows to per cent.
QUICK = ("wbcd", "digits", "lasso")


def published_trials() -> list[pytest.param]:
    """(publication, experiment, row of its reported table) at a middle ε, private and not, for each of `QUICK`."""
    found = {}
    for publication in ("published", "published-protocols"):
        for file in sorted((ROOT / "results" / publication / "reported").glob("*.csv")):
            if file.stem.startswith(QUICK):
                table = pd.read_csv(file).fillna({"reading": ""}).query("not diverged and algorithm != 'spider'")
                table["private"] = table["epsilon"].notna()
                for key, own in table.groupby(["algorithm", "reading", "private"], sort=False):
                    data = file.stem.split("_")[0], on_board(file.stem)
                    row = own.iloc[len(own) // 2].to_dict()
                    found.setdefault((publication, *data, *key), (publication, file.stem, row))
    return [pytest.param(*one, id="-".join(map(str, key))) for key, one in found.items()]


@pytest.mark.parametrize(("publication", "name", "row"), one_in_five(published_trials()))
def test_a_trial_is_that_of_the_published_table(publication, name, row, needs_data):
    run, config = experiment_of(ROOT / "results" / publication / "config.json", name)
    data, task, trial = data_of(config, needs_data), task_at(name, config, row), int(row["trial"])
    records = prepare(data, config, task.readings, draw_partition(name, config, task.readings, run, data, trial), run)
    purpose = "fresh" if config.reports[0].evaluation == "fresh" else "grid"
    found = run_trial(task, run, records, trial, pd.DataFrame([row])[POINT], purpose).iloc[0]
    assert found["train_loss"] == pytest.approx(row["train_loss"], rel=1e-5)
    # A record whose outputs are all but equal may fall to either side in single precision.
    assert found["test_error"] == pytest.approx(row["test_error"], rel=1e-5, abs=0.01)
