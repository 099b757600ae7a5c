"""Three silos and a coordinator on one machine, by the commands that hospitals type: breast cancer, cut unequally.

Keys, a CSV file for each silo, mutual TLS, three promises, three ledgers: what `make federation` runs.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import yaml
from sklearn.datasets import load_breast_cancer

from silodp import load_model
from silodp.federation.simulated import SiloFederation
from silodp.silos.federation_file import read_federation, read_silo
from silodp.silos.lattice import LatticeMessages
from silodp.silos.run_plan import work_out
from silodp.silos.silo_records import read_silo_records
from silodp.streams import Streams

SIZES = {"north": 200, "east": 120, "west": 79}
# Records of a separate public file: bounds come from it, and the error is measured on it.
PUBLIC = 170
SIMULATIONS = 5


def silodp(*words, folder, **options):
    return subprocess.run([sys.executable, "-m", "silodp", *words], cwd=folder, check=True, **options)


def write_files(folder: Path, port: int) -> None:
    data = load_breast_cancer(as_frame=True)
    frame = data.data.assign(tumour=np.where(data.target == 0, "malignant", "benign"))
    frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    public, rest = frame[:PUBLIC], frame[PUBLIC:]
    public.to_csv(folder / "public.csv", index=False)
    numbers = list(data.data)
    columns = dict.fromkeys(numbers, "number") | {"tumour": {"type": "category", "values": ["benign", "malignant"]}}
    bounds = {name: [0.0, float(f"{1.2 * public[name].max():.2g}")] for name in numbers}
    silos, start = {}, 0
    for name, size in SIZES.items():
        home = folder / name
        home.mkdir()
        rest[start : start + size].to_csv(home / "records.csv", index=False)
        start += size
        silodp("silo", "key", name, folder=home, capture_output=True)
        certificate = (home / f"{name}.crt").read_text()
        silos[name] = {"records": size, "epsilon": 4.0, "delta": 1e-5, "certificate": certificate}
        keys = {"name": name, "federation": "../federation.yaml", "file": "records.csv", "key": f"{name}.key"}
        keys |= {"budget": 8.0, "delta": 1e-5, "answer_within": 60.0}
        (home / "silo.yaml").write_text(yaml.safe_dump(keys, sort_keys=False))
    silodp("silo", "key", "coordinator", folder=folder, capture_output=True)
    coordinator = {"address": f"127.0.0.1:{port}", "certificate": (folder / "coordinator.crt").read_text()}
    federation = {"title": "breast cancer in three silos", "model": {"name": "logistic"}, "participants": 3}
    federation |= {"schema": {"target": "tumour", "columns": columns, "bounds": bounds}}
    federation |= {"algorithm": {"name": "minibatch_sgd"}, "rounds": 20, "stepsize": 1.0, "clip": 1.0, "bound": 100.0}
    federation |= {"reply_after": 0.5, "coordinator": coordinator, "silos": silos}
    (folder / "federation.yaml").write_text(yaml.safe_dump(federation, sort_keys=False))


def error(weights: np.ndarray, folder: Path) -> float:
    """Share of the public file's records that a model of these weights gets wrong."""
    model = load_model(folder / "out" / "model.npz")
    frame = pd.read_csv(folder / "public.csv", dtype=str)
    found = type(model)(weights, model.about, model.schema).predict(frame)["predicted"]
    return float((found.to_numpy() != frame["tumour"].to_numpy()).mean())


def simulated(folder: Path, seed: int) -> np.ndarray:
    """Weights of the same plan in one process that holds all records, with other noise."""
    federation = read_federation(folder / "federation.yaml")
    plan = work_out(federation, "federation.yaml")
    records = [read_silo_records(read_silo(folder / name / "silo.yaml"), federation)[0] for name in SIZES]
    bits = np.random.default_rng(seed)
    keys: dict[tuple, bytes] = {}
    messages = LatticeMessages(plan.model, records, lambda *w: keys.setdefault(w, bits.bytes(32)), federation.bound)
    silos = SiloFederation(messages, [plan.plans], *plan.point(), federation.participants, Streams(seed))
    state = plan.algorithm.start(torch.zeros(1, plan.size, dtype=torch.float64))
    for r in range(plan.algorithm.rounds):
        state = plan.algorithm.round(r, state, silos)
    return plan.algorithm.output(state)[0].numpy()


def main(folder: Path, port: int = 8470) -> dict[str, float]:
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_files(folder, port)
    silodp("silo", "check", "silo.yaml", folder=folder / next(iter(SIZES)))
    joins = [
        subprocess.Popen([sys.executable, "-m", "silodp", "-q", "silo", "join", "silo.yaml"], cwd=folder / name)
        for name in SIZES
    ]
    silodp("-q", "federate", "federation.yaml", "--output", "out", folder=folder)
    assert [join.wait(60) for join in joins] == [0, 0, 0]
    for name in SIZES:
        silodp("ledger", "show", f"{name}/ledger", folder=folder)
    real = error(load_model(folder / "out" / "model.npz").weights, folder)
    others = [error(simulated(folder, seed), folder) for seed in range(SIMULATIONS)]
    print(f"error on {PUBLIC} public records: {real:.3f}; of {SIMULATIONS} simulations {min(others):.3f} to", end=" ")
    print(f"{max(others):.3f}, mean {np.mean(others):.3f}; {time.monotonic() - began:.0f} s")
    return {"error": real, "simulated": float(np.mean(others))}


if __name__ == "__main__":
    main(Path("federation"))
