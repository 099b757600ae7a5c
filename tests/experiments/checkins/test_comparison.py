"""The comparison at equal central ε: its rows, what they promise, and that nothing else than names decides them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import small
import torch

from silodp.datasets import DATASETS
from silodp.experiments.checkins.comparison import COLUMNS, NON_PRIVATE, Trial, clients_of, compare
from silodp.experiments.checkins.protocols import PROTOCOLS
from silodp.models.linear import Logistic
from silodp.streams import Streams

STEPS = (0.25, 1.0)


def trial(seed: int, n: int = 120) -> Trial:
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((n + 60, 5)))
    y = (x[:, 0] + 0.3 * x[:, 1] > 0).double()
    return Trial(Logistic(5), (x[:n], y[:n]), (x[n:], y[n:]))


@pytest.fixture(scope="module")
def table():
    return compare("toy", [trial(1), trial(2)], [0.1, 4.0], Streams(3), steps=STEPS)


def test_every_protocol_has_a_row_at_every_epsilon_and_one_row_has_no_noise(table):
    assert list(table.columns) == COLUMNS
    assert table["protocol"].tolist() == [name for name in PROTOCOLS for _ in range(2)] + [NON_PRIVATE]
    assert table["epsilon"].tolist()[:-1] == [0.1, 4.0] * len(PROTOCOLS)
    assert math.isnan(table["epsilon"].iloc[-1])


def test_errors_updates_and_dummies_make_sense(table):
    assert (table["test_error_p05"] <= table["test_error_p95"]).all()
    assert table["test_error_mean"].between(0, 1).all()
    assert set(table["step"]) <= set(STEPS)
    dummies = table[table["dummies_mean"] > 0]["protocol"]
    assert set(dummies) == {"a_fix", "a_sldw"}
    averaged = table[table["protocol"] == "a_avg"]
    assert (averaged["updates_mean"] <= averaged["slots"]).all()
    noiseless = table.iloc[-1]
    assert noiseless["report_norm"] == 1
    assert noiseless["test_error_mean"] < table["test_error_mean"][:-1].mean()


def test_rows_do_not_depend_on_other_epsilons(table):
    again = compare("toy", [trial(1), trial(2)], [4.0], Streams(3), steps=STEPS)
    shared = table[table["epsilon"] == 4.0].reset_index(drop=True)
    errors = again[again["epsilon"] == 4.0]["test_error_mean"]
    assert np.allclose(shared["test_error_mean"], errors)


def test_names_of_random_streams_are_fixed():
    """Golden: another name here is another published table."""
    names = {name: protocol.schedule for name, protocol in PROTOCOLS.items()}
    assert names == {
        "none": "in_random_order",
        "subsampling": "sampled",
        "shuffling": "in_random_order",
        "shuffling_clones": "in_random_order",
        "a_fix": "fixed",
        "a_avg": "averaging",
        "a_sldw": "sliding",
    }


def test_every_record_is_a_client_or_a_test_record():
    changes = {"dataset": "digits", "label": "parity", "silos": {"scheme": "digit_pairs", "train_share": 0.8}}
    config = small.experiment(**changes, model={"name": "logistic"}, settings=[{"M": 25, "R": 3}])
    data = DATASETS["digits"].load(None)
    one = clients_of(data, config, small.run(), Streams(1))
    assert (len(one.train[1]), len(one.test[1])) == (1438, 359)
    other = clients_of(data, config, small.run(), Streams(2))
    assert not torch.equal(one.train[1], other.train[1])
    # Records that the data's authors set apart are tested on, whatever is drawn.
    official = replace(data, official_test=np.arange(len(data.y)) >= 1500)
    for seed in (1, 2):
        made = clients_of(official, config, small.run(), Streams(seed))
        assert made.train[1].tolist() == (data.y[:1500] % 2).tolist()
        assert made.test[1].tolist() == (data.y[1500:] % 2).tolist()
