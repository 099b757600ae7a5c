"""A file of one's own at scale: 1,000 silos of 1,000 records with 100 features, logistic, from Parquet to rounds.

`python benchmarks/own_scale.py [--repeats 5]` prints seconds to read, peak memory, also of the partition job by itself,
and seconds a round of the stack and of a plain PyTorch loop over silos and points, in turn on the same records.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

import memory
from logistic import ROUNDS, Logistic
from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.guessing import Wishes, guess_schema
from timing import Work, interleaved

SILOS, RECORDS, FEATURES, BATCH, POINTS = 1000, 1000, 100, 100, 8


def write(path: Path) -> None:
    """The file, a silo's records together in a row group."""
    generator = np.random.default_rng(0)
    names = [f"x{i}" for i in range(FEATURES)]
    schema = pa.schema([("silo", pa.int32()), *((name, pa.float32()) for name in names), ("y", pa.int8())])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, SILOS, 50):
            x = generator.standard_normal((50 * RECORDS, FEATURES), dtype=np.float32)
            y = (x[:, :10].sum(1) + generator.standard_normal(len(x)) > 0).astype(np.int8)
            silo = np.repeat(np.arange(first, first + 50, dtype=np.int32), RECORDS)
            writer.write_table(pa.table([silo, *x.T, y], schema=schema))


def partition_job(folder: Path) -> float:
    """Peak memory in MB of the job `partition` on a file of `folder`, features by bounds as `silodp init` has them."""
    bounds = {f"x{i}": [-6, 6] for i in range(FEATURES)}
    experiment = {
        "title": "scale",
        "dataset": {"file": "scale.parquet", "target": "y", "silo": "silo"},
        "preprocess": {"standardise": "bounds", "bounds": bounds, "constant_column": True},
        "model": {"name": "logistic"},
        "settings": [{"M": SILOS, "R": ROUNDS}],
        "epsilons": [1],
        "batch_share": 0.1,
        "trials": 1,
        "stepsizes": {"low": 0, "high": 0, "points": 1},
        "clips": [1],
        "algorithms": {"minibatch_sgd": {}},
        "readings": {"records": "own", "noise": "calibrated"},
    }
    path = folder / "scale.yaml"
    path.write_text(json.dumps({"run": "scale", "experiments": {"scale": experiment}}))  # JSON is YAML
    return memory.peak(["partition", f"run_file={path}", "experiment=scale", f"output={folder / 'silos'}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scale.parquet"
        write(path)
        partition = partition_job(Path(folder))
        began = time.perf_counter()
        data, _ = read_records(path, guess_schema(path, Wishes("y", "silo")).schema)
        read = time.perf_counter() - began
    reading = memory.own_peak()
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y).to(torch.float32)
    silos = [(x[one], y[one]) for one in np.array_split(np.argsort(data.silo, kind="stable"), SILOS)]
    problem = Logistic(silos, BATCH, POINTS)
    seconds = interleaved({"stack": Work(problem.stack), "loop": Work(problem.loop)}, repeats)
    times = seconds["loop"].per(seconds["stack"]).median
    print(f"{seconds['stack'].median:.3f} s a round of the stack of {POINTS} points, the plain loop")
    print(f"{seconds['loop'].median:.3f} s, {times:.2f} times as long (medians of {repeats})")
    print(f"read in {read:.1f} s, peak {reading:.0f} MB; with rounds {memory.own_peak():.0f} MB")
    print(f"partition job: peak {partition:.0f} MB")


if __name__ == "__main__":
    main()
