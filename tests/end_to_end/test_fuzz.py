"""Every kind of input file, spoiled at random: read as it stands or refused in one line that names it, and soon."""

import hashlib
import random
import shutil
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runfiles import overriding, project, write

from mutants import mutant
from silodp.datasets import DATASETS
from silodp.datasets import sources as sources_module
from silodp.datasets.sources import read_sources
from silodp.experiments.columns import PRIVACY_COLUMNS, TABLE_COLUMNS
from silodp.experiments.validation import load
from silodp.files import read_csv, read_json, read_parquet, read_table, write_csv, write_parquet, write_text
from silodp.partition.partition import Partition, read_partition, write_partition
from silodp.partition.trial_data import Records, read_records, write_records
from silodp.report.page.figure_list import Page
from silodp.verdicts.claims.claim_files import load_claims

ROOT = Path(__file__).resolve().parents[2]
SEED = 20261122
# Of the processor's time: what others do on the machine does not count.
SLOWEST = 5.0
FINE = ("read", "refused")
NUMBER = 10_000
# Of a data file: what stands in it and what it should be are told apart by the checksum alone.
PEOPLE = "age,sex,bmi,children,smoker,region,charges\n" + "19,female,27.9,0,yes,southwest,16884.9\n" * 20


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Kind of file -> (path, its reader)."""
    root = project(tmp_path / "project")
    run = write(root, overriding(epsilons=[1.0, 3.0]))
    found = {"run file": (run, lambda: load(run, root))}
    experiment = root / "config/experiments/cancer.yaml"
    found["experiment"] = (experiment, lambda: load(run, root))
    resolved = tmp_path / "config.json"
    write_text(pd.io.json.ujson_dumps(load(run, root).dump(), indent=1), resolved)
    found["config.json"] = (resolved, lambda: load(resolved, root))
    (tmp_path / "claims").mkdir()
    claims = Path(shutil.copy(ROOT / "config/claims/convex.yaml", tmp_path / "claims"))
    found["claims"] = (claims, lambda: load_claims(claims.parent))
    table = Path(shutil.copy(ROOT / "config/datasets.csv", tmp_path))
    found["datasets.csv"] = (table, lambda: read_sources(table))
    record = Path(shutil.copy(ROOT / "results/published/provenance.json", tmp_path))
    found["provenance.json"] = (record, lambda: read_json(record))
    for name, columns in (("tables/wbcd_mlp.csv", TABLE_COLUMNS), ("privacy.csv", PRIVACY_COLUMNS)):
        path = tmp_path / Path(name).name
        source = ROOT / "results/published" / name
        path.write_bytes(b"".join(source.read_bytes().splitlines(keepends=True)[:20]))
        found[name] = (path, lambda path=path, columns=columns: read_table(path, columns))
    merged = tmp_path / "merged.csv"
    write_csv(pd.DataFrame({"experiment": ["a"] * 9, "value": range(9)}), merged)
    found["a table to merge"] = (merged, lambda: read_csv(merged, ("experiment",), dtype=str, keep_default_na=False))
    trials = tmp_path / "trials.parquet"
    rows = {"algorithm": ["a", "b"] * 50, "trial": range(100), "loss": np.linspace(0, 1, 100)}
    write_parquet(pd.DataFrame(rows), trials)
    found["trials"] = (trials, lambda: read_parquet(trials, ("algorithm", "trial", "loss")))
    silos = tmp_path / "silos"
    half = np.arange(20)
    write_partition(silos, [Partition(((half, half + 20), (half + 40, half + 60)))], y=np.arange(80) % 2)
    found["silos"] = (silos / "indices.parquet", lambda: read_partition(silos, 0))
    write_records(silos, [Records(np.ones((5, 2)), np.zeros(5), 2)])
    found["records"] = (silos / "records.npz", lambda: read_records(silos, 0))
    (tmp_path / "run/figures").mkdir(parents=True)
    picture = Path(shutil.copy(ROOT / "results/published/figures/formulas_convex.svg", tmp_path / "run/figures"))
    found["picture"] = (picture, lambda: Page(picture.parents[1], tmp_path).picture(picture, ""))
    data = tmp_path / "cache/insurance/insurance.csv"
    data.parent.mkdir(parents=True)
    data.write_text(PEOPLE)
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    row = f"insurance,1,insurance/insurance.csv,http://x/y,,{len(PEOPLE)},{digest},none"
    (tmp_path / "one.csv").write_text(f"dataset,version,file,address,mirror,bytes,sha256,licence\n{row}\n")
    known = read_sources(tmp_path / "one.csv")
    monkeypatch.setattr(sources_module, "_table", lambda: known)
    found["data file"] = (data, lambda: DATASETS["insurance"].load(tmp_path / "cache"))
    return found


def outcome(path: Path, reader) -> tuple[str, str, float]:
    """How reading a spoiled file ended, what was said, and seconds of the processor.

    Anything but "read" and "refused" is a fault: a traceback, a line that does not name the file, minutes.
    """
    begun = time.process_time()
    try:
        reader()
        found, said = "read", ""
    except ValueError as error:
        found, said = "refused", str(error)
    except FileNotFoundError:
        found, said = "refused", str(path)
    except Exception as error:
        found, said = "traceback", repr(error)
    took = time.process_time() - begun
    if found == "refused" and (path.name not in said or len(said) > 2000):
        found = "unnamed"
    return ("slow" if took > SLOWEST else found), said, took


def fuzz(files, number: int, seed: int) -> tuple[Counter, dict[str, float], list[str]]:
    """Spoil each kind of file in turn: (kind, end) → how often, slowest reading of each kind, what went wrong."""
    rng, ends, slowest, wrong = random.Random(seed), Counter(), dict.fromkeys(files, 0.0), []
    whole = {kind: path.read_bytes() for kind, (path, _) in files.items()}
    for place in range(number):
        kind = list(files)[place % len(files)]
        path, reader = files[kind]
        spoiled = mutant(whole[kind], rng)
        path.write_bytes(spoiled)
        end, said, took = outcome(path, reader)
        path.write_bytes(whole[kind])
        ends[kind, end] += 1
        slowest[kind] = max(slowest[kind], took)
        if end not in FINE:
            wrong.append(f"seed {seed}, mutant {place} of {kind}: {end}: {said[:300]}: {spoiled[:500]!r}")
    return ends, slowest, wrong


def test_spoiled_files_are_read_or_refused_in_one_line(files):
    seed = SEED + random.SystemRandom().randrange(1000)
    print(f"seed {seed}")
    for kind, (path, reader) in files.items():
        assert outcome(path, reader)[0] == "read", kind
    ends, _, wrong = fuzz(files, 10 * len(files), seed)
    assert wrong == []
    assert sum(ends.values()) == 10 * len(files)
    assert {kind for kind, end in ends if end == "refused"} >= {"run file", "claims", "trials", "records", "picture"}


@pytest.mark.slow
def test_ten_thousand_spoiled_files(files):
    ends, slowest, wrong = fuzz(files, NUMBER, SEED)
    for kind in files:
        counts = ", ".join(f"{number} {end}" for (name, end), number in sorted(ends.items()) if name == kind)
        print(f"{kind}: {counts}; slowest {slowest[kind]:.2f} s")
    assert wrong == []
