"""A race over the grid: what each rung trains, on losses that are worked out here, and on runs of the real thing."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import task, train

from silodp.config.experiment import Race
from silodp.experiments.race import finalists, play, points, rungs
from silodp.experiments.selection import select
from silodp.experiments.task import POINT
from silodp.jobs.__main__ import main as run_job

EPSILONS = [0.75, 1.0, 1.5, 3.0, 6.0, 12.0, 18.0]


def grid(steps=12, clips=6, phases=1, epsilons=EPSILONS, silent=False):
    axes = [np.geomspace(0.01, 1, steps).tolist(), np.geomspace(0.1, 10, clips).tolist(), range(1, phases + 1)]
    lines = [*epsilons, *([math.nan] if silent else [])]
    return pd.DataFrame(list(itertools.product(lines, *axes)), columns=POINT).astype({"phase_length": int})


def bowl(frame):
    """Losses with one lowest place for each ε, further along the step sizes for a larger one."""
    best = 0.02 * frame["epsilon"].fillna(30) ** 0.8
    return np.log(frame["stepsize"] / best) ** 2 + np.log(frame["clip"]) ** 2 + 0.1 * (frame["phase_length"] - 3) ** 2


def keys(frame, *more):
    return set(frame[[*POINT, *more]].fillna(-1.0).itertuples(index=False, name=None))


@pytest.mark.parametrize("phases", [1, 4])
def test_a_race_over_a_bowl_ends_at_its_bottom_for_a_small_part_of_the_grid(phases):
    whole = grid(phases=phases, silent=True)
    done = play(Race(), whole, lambda some: some.assign(train_loss=bowl))
    last = finalists(done)
    means = last.groupby(POINT, dropna=False)["train_loss"].mean().reset_index()
    lowest = whole.assign(train_loss=bowl).groupby("epsilon", dropna=False)["train_loss"].min()
    for epsilon, found in means.groupby("epsilon", dropna=False)["train_loss"].min().items():
        wanted = lowest[lowest.index.isna()].iloc[0] if math.isnan(epsilon) else lowest[epsilon]
        assert found == pytest.approx(wanted)
    assert len(means["epsilon"].drop_duplicates()) == len(EPSILONS) + 1
    assert len(done) < 0.06 * len(whole) * 10 * (1 if phases == 1 else 0.5), "ten trials of the whole grid"


def test_the_coarse_rung_by_hand():
    """Every fourth of 12 step sizes, every second of 6 clips and of 7 ε, as far from one end as from the other."""
    whole = grid(silent=True)
    coarse = points(Race(stride=4), 0, whole, None)
    steps, clips = (sorted(whole[axis].unique()) for axis in ("stepsize", "clip"))
    assert sorted(coarse["stepsize"].unique()) == [steps[1], steps[5], steps[9]]
    assert sorted(coarse["clip"].unique()) == [clips[0], clips[2], clips[4]]
    assert set(coarse["epsilon"].dropna()) == {1.0, 3.0, 12.0}
    assert len(coarse) == 3 * 3 * (3 + 1)


@settings(deadline=None, max_examples=10)
@given(
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 7),
    st.booleans(),
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
)
def test_every_race_trains_points_of_the_grid_once_and_ends_with_one_of_each_epsilon(
    steps, clips, phases, epsilons, silent, seed, stride, searches, kept
):
    whole = grid(steps, clips, phases, EPSILONS[:epsilons], silent)
    race = Race(stride=stride, searches=searches, kept=sorted(kept, reverse=True))
    drawn = np.random.default_rng(seed)

    def train(some):
        losses = np.where(drawn.random(len(some)) < 0.2, math.nan, drawn.random(len(some)))
        return some.assign(train_loss=losses)

    done = play(race, whole, train)
    assert keys(done) <= keys(whole)
    assert not done.duplicated([*POINT, "trial"]).any()
    assert sorted(done["rung"].unique()) == [n for n in range(race.rungs) if (done["rung"] == n).any()]
    for number, rung in enumerate(rungs(race)):
        assert set(done.loc[done["rung"] == number, "trial"]) <= {rung.trial}
    # Whoever runs a trial ran all before it, and no ε drops out.
    for trial in range(1, len(kept) + 1):
        assert keys(done[done["trial"] == trial]) <= keys(done[done["trial"] == trial - 1])
    assert finalists(done)["epsilon"].nunique(dropna=False) == len(whole["epsilon"].unique())
    # The order of the rows before a rung does not matter.
    for number in range(1, race.rungs):
        before = done[done["rung"] < number]
        again = points(race, number, whole, before.sample(frac=1, random_state=seed))
        pd.testing.assert_frame_equal(again, points(race, number, whole, before))


def test_raced_runs_equal_runs_of_the_whole_grid():
    grid = {"low": -4, "high": 0, "points": 6, "spacing": "exponential"}
    job = task("minibatch_sgd", trials=4, epsilons=[1.0, 4.0, 9.0], stepsizes=grid, clips=[0.1, 1.0, 10.0])
    whole = train(job, range(3))

    def rung(some):
        return train(job, some["trial"].unique(), points=some) if len(some) else whole.iloc[:0]

    done = play(Race(), job.grid(), rung)
    both = done.merge(whole, on=["trial", *POINT], suffixes=("", "_whole"))
    assert len(both) == len(done) < len(whole)
    for name in ("train_loss", "test_error", "K"):
        assert (both[name] == both[f"{name}_whole"]).all(), name
    # What is chosen is chosen among those that ran every trial of the race, for all trials of the experiment.
    raced = job.config.model_copy(update={"tuning": "race"})
    chosen = select(done, raced)
    assert set(chosen["trial"]) == set(range(4))
    assert keys(chosen) <= keys(done[done["trial"] == 2])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("job", [["train"], ["race", "rung=0", "earlier="]], ids=["train", "race"])
def test_a_job_for_a_gpu_says_in_one_line_that_there_is_none(job, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SILODP_CUDA", "1")  # as on a login node: others have one
    path = tmp_path / "run.yaml"
    path.write_text("run: r\nexperiments: {wbcd_mlp: {device: cuda}}\n")
    words = [*job, f"run_file={path}", "experiment=wbcd_mlp", "algorithm=minibatch_sgd", "setting=M2_R25"]
    assert run_job([*words, f"silos={tmp_path}", f"output={tmp_path / 'trials.parquet'}"]) == 2
    assert "this machine has no CUDA device: must be cpu" in capsys.readouterr().err


def test_a_device_without_memory_is_one_line_with_the_key_of_the_piece(tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("silodp.jobs.train.run_trials", full)
    monkeypatch.setattr("silodp.jobs.train.check_silos", lambda *_: None)
    path = tmp_path / "run.yaml"
    path.write_text("run: r\nexperiments: {cifar10_cnn: {device: cpu}}\n")
    words = ["train", f"run_file={path}", "experiment=cifar10_cnn", "algorithm=minibatch_sgd", "setting=M10_R50"]
    assert run_job([*words, f"silos={tmp_path}", f"output={tmp_path / 'trials.parquet'}"]) == 2
    assert "experiments.cifar10_cnn.model.workspace_mb: 256: more than the device's memory" in capsys.readouterr().err
