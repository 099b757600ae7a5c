"""The table of races played again, on whole grids with losses that are worked out here."""

import numpy as np
import pandas as pd
import pytest

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


def test_without_luck_a_race_ends_where_the_whole_grid_does():
    found = race.cells(Race(), grid(), trials(grid(), 0.0))
    assert found["same"].all()
    assert (found["loss"] == 0).all()
    assert (found["error"] == 0).all()
    assert (found["raced"] < 0.6 * found["whole"]).all()
    assert found["whole"].iloc[0] == 4 * len(grid())


def test_regret_is_never_negative_in_the_training_loss_and_is_told():
    found = race.cells(Race(searches=1, kept=[1]), grid(), trials(grid(), 3.0))
    assert (found["loss"] >= 0).all()
    assert not found["same"].all()
    assert (found.loc[~found["same"], "loss"] > 0).all()


def test_the_table_goes_between_its_marks(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{race.BEGIN}\nold\n{race.END}\nafter\n")
    monkeypatch.setattr(race, "rows", lambda plan: [[str(n) for n in range(len(race.HEADINGS))]])
    monkeypatch.setattr(race, "load", lambda path: path)
    monkeypatch.setattr(race, "Plan", lambda resolved: resolved)
    table = tmp_path / "races.csv"
    assert race.main(["run.yaml", "--output", str(page), "--csv", str(table)]) == 0
    assert pd.read_csv(table, dtype=str).loc[0].tolist() == [str(n) for n in range(len(race.HEADINGS))]
    lines = page.read_text().splitlines()
    assert lines[0] == "before"
    assert lines[-1] == "after"
    assert lines[2].startswith("| experiment | setting |")
    assert lines[4] == "| " + " | ".join(str(n) for n in range(len(race.HEADINGS))) + " |"


@pytest.mark.parametrize("heading", ["same choice", "regret, training loss", "share"])
def test_the_table_has_what_the_page_explains(heading):
    assert heading in race.HEADINGS
