"""What commands say and write of given files, as in `said/`; `make docs` renews it."""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from alike import assert_alike

from silodp.cli import main

SAID = Path(__file__).parent / "said"
ROW = np.arange(300)
PLAIN = ["theory list", "config reference", "doctor --wrong"]
SHOWN = [f"theory show {key}" for key in ("convex-2.1", "convex-2.1-moments", "nonconvex-3.3", "checkins-3.2")]
# A run's seed, times, and what tells one program's text from another's.
VARYING = r"(?<=: )[0-9a-f]{4}( [0-9a-f]{4}){15}|(?<=seed: )\d+|(?m:^[-\d]{10} [:,\d]{12})|(?<=about )[^,]*(?= here)"
# (commands, files that are shown after them), of each file of `said`.
SCENES: dict[str, tuple[list[str], list[str]]] = {
    "classes": (
        [
            "init ward.csv --target outcome --silo centre --person who --person-limit 3 --missing mean --ignore visit",
            "config check config/ward.yaml",
            "cost config/ward.yaml",
            "init ward.csv --target dose --silos 4 --missing refuse",
            "init ward.csv --target dose --silos 4 --missing drop --output dose.yaml",
            "cost dose.yaml",
            "init ward.csv --target stage --silo centre --missing mean --type level=category --output stage.yaml",
        ],
        ["config/ward.yaml", "dose.yaml", "stage.yaml"],
    ),
    "federation": (
        [
            "init ward.csv --target outcome --silo centre --federation --missing mean --output out",
            "init ward.csv --target dose --name east --ignore centre --federation --missing mean --output east",
            "init ward.csv --target dose --silo centre --person who --federation",
            "init ward.csv --target dose --silo centre --federation --missing drop",
            "cost out/study.yaml",
            "silo check out/records/North.yaml",
            "ledger show out/records/North.ledger",
            "silo budget out/records/North.yaml --raise 5",
            "silo budget out/records/North.yaml --raise 4",
        ],
        [f"out/{name}" for name in ("federation.yaml", "records/North.yaml", "records/South.csv", "study.yaml")]
        + [f"east/{name}" for name in ("federation.yaml", "silo.yaml", "made_up.csv")],
    ),
    "guarantees": (
        [
            "epsilon --algorithm minibatch_sgd --rounds 25 --records 1234 --batch 604 --sigma 0.03 --clip 2",
            "epsilon --algorithm fed_spider --rounds 10 --records 500 --batch 20 --sigma 0.3 --sigma-difference 0.2 "
            "--clip 1 --phase-length 2 --claimed 3 --by-round --tries 4",
            "epsilon --algorithm local_sgd --rounds 5 --records 200 --batch 8 --sigma 6 --clip 1 --delta 1e-4",
            "epsilon --amplification --epsilon0 1 --reports 10000 --delta 1e-6 --records 2",
            "noise --algorithm minibatch_sgd --rounds 25 --records 1234 --batch 604 --epsilon 1 --clip 2",
            "noise --algorithm fed_spider --rounds 10 --records 500 --batch 20 --epsilon 2 --clip 1 --json",
            "audit minibatch_sgd --epsilon 1 --rounds 4 --records 50",
        ],
        [],
    ),
    "lists": (
        [
            "list algorithms",
            "list datasets",
            "list figures",
            "theory list",
            *SHOWN,
            "config reference",
            "list word",
            "doctor --wrong",
        ],
        [],
    ),
}


def write_records() -> None:
    """Records with every kind of column: names, persons, numbers with gaps and marks, words, classes."""
    ward = {"centre": np.where(ROW < 12, "Tiny", np.where(ROW % 3 == 0, "North", "South")), "who": ROW // 5}
    ward |= {"visit": ROW % 4, "age": 20.0 + ROW % 60, "smoker": np.where(ROW % 2 == 0, "yes", "no")}
    ward |= {"pulse": np.where(ROW % 9 == 0, -999, 60 + ROW % 40), "note": [f"words {n}" for n in ROW]}
    ward |= {"weight": np.where(ROW % 50 == 8, "?", (40.5 + ROW % 50).astype(str)), "code": ROW * 3 + 11}
    ward |= {"level": ROW % 5, "city": np.array(["Ulm", "Bonn", "Kiel", "Jena"])[(ROW % 7) // 2], "zip": 10_000 + ROW}
    ward |= {"income": np.where(ROW == 5, 1e6, 900.25 + 7 * (ROW % 90)), "leak": np.where(ROW % 4 == 0, 3, 1)}
    ward |= {"outcome": np.where(ROW % 4 == 0, "ill", "well"), "stage": 1 + ROW % 3, "dose": 0.5 * (ROW % 80) + 10}
    pd.DataFrame(ward).to_csv("ward.csv", index=False)


def said(scene: str) -> str:
    """What the commands print and write in the working directory, but for what varies."""
    commands, files = SCENES[scene]
    write_records()
    lines: list[str] = []
    for command in commands:
        heard = io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(heard),
            contextlib.redirect_stderr(heard),
        ):
            patch.setattr("silodp.cli.federate.time_replies", lambda part: 0.125)
            code = main(shlex.split(command))
        lines += [f"$ silodp {command}", *heard.getvalue().splitlines(), f"exit code {code}", ""]
    for name in files:
        text = Path(name).read_text(encoding="utf-8") if Path(name).is_file() else "none"
        lines += [f"== {name}", *text.splitlines()[: 20 if name.endswith(".csv") else None], ""]
    text = "\n".join(line.rstrip() for line in lines)
    return re.sub(VARYING, "", text).replace(os.getcwd(), ".")


@pytest.mark.parametrize("scene", SCENES)
def test_commands_say_and_write_what_they_did(scene, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_alike(said(scene), (SAID / f"{scene}.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    for scene in sys.argv[1:] or SCENES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            (SAID / f"{scene}.txt").write_text(said(scene), encoding="utf-8")
