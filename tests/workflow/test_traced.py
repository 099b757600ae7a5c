"""Jobs as they really run: every module of the package whose functions a job calls is in what its digest is made of."""

import contextlib
import json
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from silodp.experiments.validation import load
from silodp.jobs.__main__ import main as run_job
from silodp.workflow.closure import ROOT, CodeSources
from silodp.workflow.job_digest import BY_VALUE, RunPlan

# Tracing slows down the compilation of kernels.
pytestmark = pytest.mark.slow

SMALL = {"trials": 1, "epsilons": [2.0], "stepsizes": {"low": -2, "high": 0, "points": 2}, "reports": [{}]}
PHASES = {"settings": [{"M": 2, "R": 2}], "clips": [1.0], "phase_lengths": [1, 2]}
EXPERIMENTS = {
    "wbcd_mlp": SMALL | PHASES,
    "wbcd_calibrated": SMALL | PHASES | {"alternatives": [], "readings": {"noise": "calibrated"}},
    "diabetes_linear": SMALL | {"settings": [{"M": 3, "R": 2}], "clips": [1.0]},
}
# What starts a job, and what happens in every job alike before its function.
AROUND = ("silodp.jobs.__main__", "silodp.workflow.ending", "silodp.workflow.engine")
AROUND += ("silodp.extending.plugins", "silodp.datasets.sources")


class Recorded(CodeSources):
    """Sources that note which modules were asked for."""

    modules: set[str] = frozenset()

    def digest(self, entries, excluded=()):
        self.modules = self.closure(entries, excluded) | set(excluded)
        return super().digest(entries, excluded)


def module_of(file: str) -> str:
    parts = Path(file).relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def called_by(words: list[str]) -> set[str]:
    """Modules of the package whose functions a job calls, those called by modules of `BY_VALUE` left out."""
    found: set[str] = set()
    stack: list[str] = []

    def note(frame, event, _):
        if event == "call":
            file = frame.f_code.co_filename
            name = module_of(file) if file.startswith(str(ROOT)) else ""
            stack.append("<import>" if frame.f_code.co_name == "<module>" else name)
            if name and not {"<import>", *BY_VALUE} & set(stack):
                found.add(name)
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(note)
    try:
        code = run_job([str(word) for word in words])
    finally:
        sys.setprofile(None)
    assert code == 0
    return found - set(AROUND)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    threads = torch.get_num_threads()
    folder = tmp_path_factory.mktemp("traced")
    (folder / "run.yaml").write_text(json.dumps({"run": "traced", "experiments": EXPERIMENTS}))
    yield folder
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("experiment", "algorithm", "setting"),
    [
        ("wbcd_mlp", "fedprox_spider", "M2_R2"),
        ("wbcd_calibrated", "minibatch_sgd", "M2_R2"),
        ("diabetes_linear", "local_sgd", "M3_R2"),
    ],
)
def test_jobs_from_silos_to_a_figure_call_what_their_digests_are_made_of(experiment, algorithm, setting, folder):
    run_file, own = folder / "run.yaml", folder / experiment
    # Selection asks for every algorithm of a run: this run has the traced algorithm alone.
    others = {name: None for name in load(run_file).experiments[experiment].algorithms if name != algorithm}
    run_file = folder / f"{experiment}.yaml"
    alone = {experiment: EXPERIMENTS[experiment] | {"algorithms": others}}
    run_file.write_text(json.dumps({"run": "traced", "experiments": alone}))
    plan = RunPlan(load(run_file))

    def traced(job: str, *words: str) -> None:
        plan.sources = Recorded()
        plan.own_digest(job, experiment=experiment, algorithm=algorithm)
        called = called_by([job, f"run_file={run_file}", f"experiment={experiment}", *words])
        assert called
        assert called <= plan.sources.modules, (job, sorted(called - plan.sources.modules))

    silos, grid, chosen, fresh, delivered, table, reported = (
        own / name for name in ("silos/default", "grid", "chosen", "fresh", "privacy.csv", "table.csv", "reported.csv")
    )
    task = [f"algorithm={algorithm}", f"setting={setting}", f"silos={silos}"]
    traced("partition", f"output={silos}")
    traced("train", *task, f"output={grid}")
    traced("select", f"trials={grid}", f"output={chosen}")
    traced("train", *task, f"chosen={chosen}", f"output={fresh}")
    audit = [f"by_round={own / 'by_round.csv'}", f"audit={own / 'audit.csv'}"]
    traced("privacy", f"chosen={chosen}", f"silos={silos}", f"output={delivered}", *audit)
    made = [f"output={table}", f"reported={reported}", f"losses={own / 'losses'}"]
    traced("table", f"grid={grid}", f"fresh={fresh}", f"chosen={chosen}", f"privacy={delivered}", *made)
    assert len(pd.read_csv(table))
    with contextlib.suppress(StopIteration):
        name = next(iter(plan.figure_names(experiment)))
        files = [f"table={table}", f"reported={reported}", f"folder={own / 'figures'}", "formats=svg"]
        traced("figure", f"names={name}", *files)
