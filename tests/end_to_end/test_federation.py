"""A federation of processes on one machine, from files to a model that predicts."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from three_silos import SIZES, federation_keys

from silodp.cli import main
from silodp.silos.ledger import Ledger

pytest.importorskip("grpc", reason="make federation installs what this needs")
pytestmark = pytest.mark.slow


def table(seed, size):
    generator = np.random.default_rng(seed)
    rows = pd.DataFrame({"age": generator.integers(0, 120, size), "bmi": generator.uniform(10, 50, size)})
    return rows.assign(ill=np.where(rows["bmi"] > 30, "yes", "no"))


def test_silos_of_one_curator_train_a_model_that_beats_doing_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for seed, (name, size) in enumerate(SIZES.items()):
        table(seed, size).to_csv(f"{name}.csv", index=False)
    keys = federation_keys(rounds=10, reply_after=0.5, wait=60.0)
    (tmp_path / "federation.yaml").write_text(yaml.safe_dump(keys))
    words = ["-q", "federate", "federation.yaml", "--here", ".", "--output", "out"]
    subprocess.run([sys.executable, "-m", "silodp", *words], check=True, timeout=300)
    assert "central" in (tmp_path / "out" / "card.md").read_text()
    assert [len(Ledger(tmp_path / f"{name}.ledger").charges) for name in SIZES] == [1, 1, 1]
    held_out = table(9, 400)
    held_out.to_csv("new.csv", index=False)
    assert main(["-q", "predict", "out/model.npz", "new.csv", "--output", "predicted.csv"]) == 0
    wrong = pd.read_csv("predicted.csv")["predicted"] != held_out["ill"]
    assert wrong.mean() < 0.3 < (held_out["ill"] == "yes").mean()
    assert main(words) == 2
    assert "has a finished run" in capsys.readouterr().err
