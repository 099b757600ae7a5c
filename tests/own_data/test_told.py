"""A run on one's own records, job by job: what its page tells and draws, as in `told.txt` and `drawn.svg` beside this.

`PYTHONPATH=src:tests/helpers python tests/own_data/test_told.py` renews both.
"""

import contextlib
import json
import re
import tempfile
from pathlib import Path

import patients
import pytest
from alike import assert_alike
from page_run import Page

from silodp.audit import audit_rows
from silodp.audit.mechanism_check import Fault, Mechanism
from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.jobs.__main__ import main as run_job

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
    # Audits are played in tests/audit.
    fine = Mechanism(Fault("any", "any", 1.0), 1.0, 1)
    patch.setattr(audit_rows, "check_mechanism", lambda algorithm, plans, streams, size: [fine] * len(plans))
    patients.write_records("patients.csv")
    patients.write_records("ages.csv", {"East": 50, "West": 45, "Far": 25})
    Path("run.yaml").write_text(
        json.dumps(
            {"run": "mine", "seed": 7, "experiments": {k: patients.experiment(**v) for k, v in EXPERIMENTS.items()}}
        )
    )
    folder, words = Path("results/mine"), []

    def done(job, **more):
        given = {"run_file": "run.yaml"} | more
        many = {
            name: [str(one) for one in (word if isinstance(word, list) else [word])] for name, word in given.items()
        }
        assert run_job([job, *(part for k, (one, *rest) in many.items() for part in (f"{k}={one}", *rest))]) == 0

    resolved = load("run.yaml")
    write_text(json.dumps(resolved.dump()), folder / "config.json")
    for name, config in resolved.experiments.items():
        of, grid, fresh = {"experiment": name}, [], []
        silos = folder / f"silos/{name}/default"
        done("partition", **of, output=silos)
        for algorithm in config.algorithms:
            for setting in ("M2_R4", "M2_R12"):
                grid.append(folder / f"trials/{name}/{algorithm}/{setting}.parquet")
                more = {"setting": setting, "silos": silos, "trials": "all", "threads": 1, "output": grid[-1]}
                done("train", **of, algorithm=algorithm, **more)
                fresh.append(folder / f"fresh/{name}/{algorithm}/{setting}/default_fresh.parquet")
        chosen, table = folder / f"selection/{name}.parquet", folder / f"tables/{name}.csv"
        privacy, losses = folder / f"privacy/{name}.csv", folder / f"losses/{name}.parquet"
        done("select", **of, trials=grid, output=chosen)
        done("evaluate", **of, chosen=chosen, silos=silos.parent, folder=folder / f"fresh/{name}", threads=1)
        ends = {kind: folder / f"{kind}/{name}.csv" for kind in ("by_round", "audit")}
        done("privacy", **of, chosen=chosen, silos=silos, output=privacy, **ends)
        made = {"output": table, "reported": folder / f"reported/{name}.csv", "losses": losses}
        done("table", **of, grid=grid, fresh=fresh, chosen=chosen, privacy=privacy, **made)
        study = folder / f"study/{name}.json"
        done("study", **of, chosen=chosen, silos=silos, table=table, formats="svg", output=study)
        words += [f"== {study.name}", study.read_text(encoding="utf-8"), ""]
    done("merge", folder=folder, experiments=list(EXPERIMENTS))
    done("report", folder=folder, output=folder / "report.html")
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
