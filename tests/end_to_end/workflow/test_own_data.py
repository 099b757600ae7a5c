"""From a fresh CSV to page, table, privacy and models, and no cell of a planted record in anything that is written."""

import base64
import gzip
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
import yaml
from runs import checkout, run

from silodp.cli import main

# A record whose every cell is told apart from whatever else a file may hold.
PLANTED = {"age": 7654321.125, "weight": -8642.0975, "ward": "Zz-planted-ward", "note": "Zz-planted-note"}
PLANTED |= {"person": "Zz-planted-person"}


def write(path):
    generator, n = np.random.default_rng(11), 400
    # With a sign that the base64 of a packed table, which changes from run to run, cannot hold by chance.
    frame = pd.DataFrame({"hospital": generator.choice(["North", "South", "East"], n, p=[0.5, 0.3, 0.2])})
    frame["person"] = [f"pers-{i // 2}" for i in range(n)]
    frame["age"], frame["weight"] = generator.normal(50, 10, n).round(2), generator.normal(80, 9, n).round(2)
    frame["ward"], frame["note"] = generator.choice(["A", "B"], n), [f"note {i}" for i in range(n)]
    frame["ill"] = np.where(frame["age"] + generator.normal(0, 5, n) > 50, "yes", "no")
    for name, value in PLANTED.items():
        frame.loc[17, name] = value
    frame.to_csv(path, index=False)


def texts(path):
    """All text in a file: itself, what is packed in a page, arrays' and tables' words and numbers."""
    if path.suffix == ".parquet":
        yield pd.read_parquet(path).to_csv()
    elif path.suffix == ".npz":
        with np.load(path) as file:
            yield " ".join(f"{name} {file[name].tolist()}" for name in file.files)
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name).decode(errors="replace") for name in archive.namelist())
    else:
        text = path.read_bytes().decode(errors="replace")
        yield text
        for packed in re.findall(r'<script type="text/plain">([^<]+)</script>', text):
            yield gzip.decompress(base64.b64decode(packed)).decode(errors="replace")


@pytest.mark.slow
def test_a_fresh_file_becomes_a_page_and_no_cell_of_a_record_leaves_it(tmp_path, monkeypatch, capsys):
    folder = checkout(tmp_path)
    (folder / "elsewhere").mkdir()
    write(folder / "elsewhere" / "patients.csv")
    monkeypatch.chdir(folder)
    columns = ["--target", "ill", "--silo", "hospital", "--person", "person"]
    assert main(["init", "elsewhere/patients.csv", *columns]) == 0
    said = capsys.readouterr().out
    path = folder / "config" / "patients.yaml"
    settings = yaml.safe_load(path.read_text())
    thin = {"epsilons": [2], "trials": 1, "stepsizes": {"low": 0, "high": 0, "points": 1}, "clips": [1]}
    settings["experiments"]["patients"] |= thin | {"settings": [{"M": 3, "R": 5}]}
    path.write_text(yaml.safe_dump(settings))
    result = run(folder, "--configfile", "config/patients.yaml")
    assert result.returncode == 0, result.stderr[-3000:]
    results = folder / "results" / "patients"
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "what is promised, and what is not" in page
    assert 'id="claims"' not in page
    assert {"minibatch_sgd", "silo_only"} == set(pd.read_csv(results / "tables" / "patients.csv")["algorithm"])
    privacy = pd.read_csv(results / "privacy.csv")
    assert (privacy["person_records"] >= 2).all() or (privacy["person_silos"] >= 2).all()
    assert (privacy["epsilon_person"] > privacy["delivered_epsilon"]).all()
    assert (results / "study" / "patients.svg").is_file()
    assert not (results / "claims.csv").exists()
    assert "not for publication" in page
    assert "υ" not in page
    assert "ISRL" not in page
    words = [f"{value}" for value in PLANTED.values()] + ["7654321", "8642.09", "pers-17", "note 3"]
    written = [path for path in (*results.rglob("*"), folder / "config" / "patients.yaml") if path.is_file()]
    assert len(written) > 30
    found = [(file.name, word) for file in written for text in texts(file) for word in words if word in text]
    found += [("terminal", word) for word in words if word in said + result.stdout + result.stderr]
    assert not found
