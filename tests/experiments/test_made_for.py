"""Files of a run are taken for the experiment, seed, precision and device that they were made for, and for no other."""

import pandas as pd
import pytest
import small

from silodp.experiments.made_for import cards, hold_silos, read_trained, silos_for, write_trained

ROWS = pd.DataFrame({"trial": [0, 1], "test_error": [0.1, 0.2]})


def read(path, experiment="small", config=None, **run):
    return read_trained(path, ("trial",), experiment, config or small.experiment(), small.run(**run))


def is_refused(*given, **named):
    with pytest.raises(ValueError, match="made for another experiment, run file or seed"):
        read(*given, **named)
    return True


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_trained_rows_are_those_of_their_run(device, tmp_path):
    path = tmp_path / "rows.parquet"
    write_trained(ROWS.copy(), path, "small", small.experiment(), small.run(device=device))
    pd.testing.assert_frame_equal(read(path, device=device), ROWS)
    assert is_refused(path, device="cuda" if device == "cpu" else "cpu")
    assert is_refused(path, device=device, seed=8)
    assert is_refused(path, device=device, dtype="float64")
    assert is_refused(path, "other", device=device)
    assert is_refused(path, config=small.experiment(epsilons=[2.0]), device=device)
    # An experiment's device goes before the run's; how rows are shown does not matter.
    other = "cuda" if device == "cpu" else "cpu"
    pd.testing.assert_frame_equal(read(path, config=small.experiment(device=device), device=other), ROWS)
    assert is_refused(path, config=small.experiment(device=other), device=device)
    pd.testing.assert_frame_equal(read(path, config=small.experiment(title="renamed", trials=2), device=device), ROWS)
    assert cards(tmp_path) == []


def test_a_partition_is_made_for_its_silos_seed_and_experiment(tmp_path):
    config, run = small.experiment(), small.run()
    (tmp_path / "indices.parquet").write_bytes(b"silos")
    made = silos_for(tmp_path, "small", config, config.readings, run)
    assert made == silos_for(tmp_path, "small", small.experiment(epsilons=[2.0]), config.readings, run)
    others = {
        silos_for(tmp_path, "other", config, config.readings, run),
        silos_for(tmp_path, "small", small.experiment(trials=2), config.readings, run),
        silos_for(tmp_path, "small", config, config.readings.model_copy(update={"resample": True}), run),
        silos_for(tmp_path, "small", config, config.readings, small.run(seed=8)),
    }
    (tmp_path / "indices.parquet").write_bytes(b"other silos")
    others.add(silos_for(tmp_path, "small", config, config.readings, run))
    assert len(others - {made}) == 5
    with pytest.raises(ValueError, match="no such file; a partition is written by the job `partition`"):
        hold_silos(tmp_path, "small", config, config.readings, run)
