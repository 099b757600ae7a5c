"""The table of races played again, on whole grids with losses that are worked out here."""

import numpy as np
import pandas as pd

import race
from silodp.config.experiment import Race
from silodp.experiments.task import POINT


def grid(steps=9):
    rows = [(e, s, c, 1) for e in (1.0, 2.0, 4.0) for s in np.geomspace(0.01, 1, steps) for c in (0.1, 1.0, 10.0)]
    return pd.DataFrame(rows, columns=POINT)


def trials(frame, noise, numbers=4):
    drawn = np.random.default_rng(0)
    smooth = (np.log(frame["stepsize"] / 0.1) ** 2 + np.log(frame["clip"]) ** 2 + 1).to_numpy()
    return pd.concat(
        [
            frame.assign(trial=t, train_loss=smooth * (1 + noise * drawn.random(len(frame))), test_error=smooth / 10)
            for t in range(numbers)
        ],
        ignore_index=True,
    )


def test_race_without_noise_ends_where_the_whole_grid_does():
    found = race.cells(Race(), grid(), trials(grid(), 0.0))
    assert found["same"].all()
    assert (found["loss"] == 0).all()
    assert (found["error"] == 0).all()
    assert (found["raced"] < 0.6 * found["whole"]).all()
    assert found["whole"].iloc[0] == 4 * len(grid())


def test_regret_in_the_training_loss_is_never_negative():
    found = race.cells(Race(searches=1, kept=[1]), grid(), trials(grid(), 3.0))
    assert (found["loss"] >= 0).all()
    assert not found["same"].all()
    assert (found.loc[~found["same"], "loss"] > 0).all()
