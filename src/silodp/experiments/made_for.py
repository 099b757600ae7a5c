"""What files of a run were made for, kept in their metadata: a job refuses those that were made for something else."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from silodp.config.experiment import Experiment
from silodp.config.readings import Readings
from silodp.config.run_keys import Run
from silodp.experiments.variants import CUTTING
from silodp.files import read_parquet, reading, write_parquet
from silodp.partition.trial_data import FILE

# Keys of an experiment that say how results are shown, not what is trained.
SHOWN = {"title", "short", "paper", "board", "vary", "reports", "trials_per_job", "device", "allow_unproven"}
# Keys that say which points are trained in which trial; a trained point is the same whatever they are.
TUNED = {"tuning", "race"}
# What decides an experiment's silos and records.
DATA = {"dataset", "label", "silos", "preprocess", "trials", "readings"}

_REFUSED = "made for another experiment, run file or seed: remove it, and `silodp rebuild` makes it again"


def trained_part(config: Experiment) -> dict[str, Any]:
    """What decides training, whatever the algorithm, as plain values."""
    return config.model_dump(mode="json", exclude=SHOWN | TUNED | {"trials", "algorithms", "alternatives"})


def silos_for(folder: Path, experiment: str, config: Experiment, readings: Readings, run: Run) -> str:
    """What the records of a partition in `folder` are made for: keys of the run file, and the silos' index there."""
    kinds = readings.model_dump(mode="json", include=CUTTING)
    index = hashlib.sha256((folder / "indices.parquet").read_bytes()).hexdigest()
    return _made_for(experiment, kinds, run.seed, config.model_dump(mode="json", include=DATA), index)


def hold_silos(folder: Path, *made_for: Any) -> None:
    """ValueError where a partition's folder is not made for what `silos_for` says, of the same arguments."""
    if read_made_for(folder) != silos_for(folder, *made_for):
        raise ValueError(f"{folder}: {_REFUSED}")


def write_trained(
    rows: pd.DataFrame, path: Path, experiment: str, config: Experiment, run: Run, trained_on: str = "cpu"
) -> None:
    """Write rows of training, or what was chosen among them, as parquet; with the GPU of this machine, if on one."""
    rows.attrs = {"made_for": _trained_for(experiment, config, run)}
    if trained_on != "cpu":
        rows.attrs["card"] = _card(trained_on)
    write_parquet(rows, path)


def _card(device: str) -> dict[str, str]:
    import torch  # slow to import, and needed for this only

    name, cuda = torch.cuda.get_device_name(device), str(torch.version.cuda)
    return {"name": name, "torch": torch.__version__, "cuda": cuda}


def cards(folder: Path) -> list[dict[str, str]]:
    """The GPUs that trained files below `folder`, each once."""
    schemas = (pq.read_schema(path) for path in sorted(folder.rglob("*.parquet")))
    kept = [json.loads((schema.metadata or {}).get(b"PANDAS_ATTRS", b"{}")).get("card") for schema in schemas]
    return [card for place, card in enumerate(kept) if card and card not in kept[:place]]


def read_trained(path: Path, columns: tuple[str, ...], experiment: str, config: Experiment, run: Run) -> pd.DataFrame:
    """What `write_trained` wrote; ValueError where its arguments were others."""
    rows = read_parquet(path, columns)
    if rows.attrs.pop("made_for", None) != _trained_for(experiment, config, run):
        raise ValueError(f"{path}: {_REFUSED}")
    return rows


def _trained_for(experiment: str, config: Experiment, run: Run) -> str:
    device = config.device or run.device
    # The CPU goes without saying: its files of before stay readable.
    return _made_for(experiment, run.seed, run.dtype, trained_part(config), *[device] * (device != "cpu"))


def _made_for(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_made_for(folder: Path) -> str:
    """What a folder's records are made for; ValueError where there is no file."""
    if not (path := folder / FILE).is_file():
        raise ValueError(f"{path}: no such file; a partition is written by the job `partition`")
    with reading(path), open(path, "rb") as handle, np.load(handle) as file:
        return str(file["made_for"])
