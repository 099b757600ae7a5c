"""A run on one's own records, job by job: what its page tells and draws, as in `told.txt` and `drawn.svg` beside this.

`make docs` renews both.
"""

import contextlib
import json
import re
import tempfile
from pathlib import Path

import patients
import pytest
from alike import assert_alike
from chain import done, fill, play_no_audit
from page_run import Page

from silodp.experiments.validation import load
from silodp.files import write_text

TOLD, DRAWN = (Path(__file__).with_name(name) for name in ("told.txt", "drawn.svg"))
BOTH = {name: {"private": "both"} for name in ("minibatch_sgd", "silo_only")}
KEYS = {"trials": 3, "epsilons": [1, 8], "algorithms": BOTH, "settings": [{"M": 2, "R": 4}, {"M": 2, "R": 12}]}
BY_AGE = {
    "hospital": "name",
    "age": "number",
    "smoker": {"type": "boolean", "values": ["no", "yes"]},
    "readmitted": "ignored",
}
EXPERIMENTS = {
    "classes": KEYS,
    "ages": KEYS
    | {
        "title": "ages",
        "dataset": {"file": "ages.csv", "target": "age", "silo": "hospital", "columns": BY_AGE},
        "label": "target",
        "model": {"name": "linear"},
        "preprocess": {"standardise": "bounds", "bounds": {"age": [0, 120]}, "constant_column": True},
    },
}


def told(patch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Of a run in the working directory: the page's text and tables with the studies, and the figure of classes."""
    play_no_audit(patch)
    patients.write_records("patients.csv")
    patients.write_records("ages.csv", {"East": 50, "West": 45, "Far": 25})
    experiments = {name: patients.experiment(**keys) for name, keys in EXPERIMENTS.items()}
    run_file, folder, words = Path("run.yaml"), Path("results/mine"), []
    run_file.write_text(json.dumps({"run": "mine", "seed": 7, "experiments": experiments}))
    write_text(json.dumps(load(run_file).dump()), folder / "config.json")
    for name in EXPERIMENTS:
        fill(run_file, folder, name)
        study = folder / f"study/{name}.json"
        words += [f"== {study.name}", study.read_text(encoding="utf-8"), ""]
    done("merge", run_file=run_file, folder=folder, experiments=list(EXPERIMENTS))
    done("report", run_file=run_file, folder=folder, output=folder / "report.html")
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(re.sub("(?s)<style>.*?</style>|<script>.*?</script>", "", text))
    rows = [" | ".join(" ".join(cell.split()) for cell in row["cells"]) for row in page.rows]
    said = [" ".join(line.split()) for line in page.text.splitlines() if line.strip()]
    return "\n".join([*said, "", *rows, *words]), (folder / "study/classes.svg").read_text(encoding="utf-8")


def test_a_page_of_own_records_tells_what_it_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for made, kept in zip(told(monkeypatch), (TOLD, DRAWN), strict=True):
        assert_alike(made, kept.read_text(encoding="utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        for made, kept in zip(told(patch), (TOLD, DRAWN), strict=True):
            kept.write_text(made, encoding="utf-8")
