"""No stale result: what an edit makes again, and jobs that refuse when they are not what was planned."""

import re
import shutil
from pathlib import Path

import pytest
import small

from silodp import files
from silodp.algorithms import ALGORITHMS
from silodp.config.loading import Resolved
from silodp.experiments.validation import load
from silodp.workflow import closure
from silodp.workflow import plan as planning
from silodp.workflow.closure import Sources
from silodp.workflow.plan import Plan

SETTINGS = "run: small\nseed: {seed}\nexperiments: {{wbcd_mlp: {{trials: 1}}}}\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package's sources."""
    return Path(shutil.copytree(closure.ROOT, tmp_path_factory.mktemp("sources") / "silodp"))


@pytest.fixture
def edited(package):
    """(module's file, old, new, keys of the experiment) → the jobs whose digests change."""

    def digests(changes):
        plan = Plan(Resolved(Path("run.yaml"), small.run(), {"small": small.experiment(**changes)}))
        plan.sources = Sources(root=package)
        found = {name: plan.digest_of("train", experiment="small", algorithm=name) for name in ALGORITHMS}
        for job in ("partition", "select", "table", "privacy", "figure"):
            found[job] = plan.digest_of(job, experiment="small")
        for check in ("upper_bounds", "participation"):
            found[check] = plan.digest_of("check", name=check)
        return found | {job: plan.digest_of(job) for job in ("formulas", "claims", "report", "redraw")}

    def changed(file, old, new, **changes):
        before, path = digests(changes), package / file
        text = path.read_text(encoding="utf-8")
        assert re.search(old, text, flags=re.MULTILINE)
        path.write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE), encoding="utf-8")
        after = digests(changes)
        path.write_text(text, encoding="utf-8")
        return {job for job in before if before[job] != after[job]}

    return changed


def test_doubled_step_sizes_retrain_every_algorithm(edited):
    assert edited("config/experiment.py", r"return np\.exp\(", "return 2 * np.exp(") >= set(ALGORITHMS)


@pytest.mark.parametrize(
    "file", ["federation/messages.py", "config/experiment.py", "files.py", "report/figures/style.py"]
)
def test_comments_and_docstrings_make_nothing_again(edited, file):
    assert edited(file, r'\A"""', '# A comment.\n\n"""Other words. ') == set()


def test_an_algorithms_file_retrains_that_algorithm_and_those_built_on_it(edited):
    changed = edited("algorithms/local_sgd.py", r'^    name = "local_sgd"\n', '    name = "local_sgd"\n    more = 1\n')
    assert changed == {"local_sgd", "privacy"}


def test_looks_of_figures_train_nothing(edited):
    assert edited("report/figures/style.py", r'"font\.size": [\d.]+', '"font.size": 99') == {
        "figure",
        "redraw",
        "report",
    }


def test_the_accountant_retrains_only_what_calibrates_by_it(edited):
    edit = ("privacy/calibration.py", r"\Z", "\nMORE = 1\n")
    assert not edited(*edit) & set(ALGORITHMS)
    assert edited(*edit, alternatives=[{"noise": "calibrated"}]) >= {*ALGORITHMS, "privacy"}


def test_a_check_is_made_again_alone(edited):
    assert edited("verdicts/checks/upper_bounds.py", r"\Z", "\nMORE = 1\n") == {"upper_bounds"}


def test_another_model_retrains_nothing(edited):
    assert not edited("federation/models/convnet.py", r"\Z", "\nMORE = 1\n") & {*ALGORITHMS, "partition", "privacy"}


@pytest.fixture
def planned(tmp_path, monkeypatch, package):
    """A run file, and its plan as a rebuild freezes it, in a folder whose package is a copy."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(closure, "ROOT", package)
    monkeypatch.setattr(files, "before_rename", [])
    run_file = tmp_path / "run.yaml"
    run_file.write_text(SETTINGS.format(seed=7))
    plan = planning.make_plan("run.yaml", None, frozen=False)
    planning.freeze(plan, "run.yaml")
    return run_file, plan


TRAIN = {"experiment": "wbcd_mlp", "algorithm": "local_sgd"}


def test_a_job_refuses_when_the_code_changed_before_it_starts_or_before_it_writes(planned, package, tmp_path):
    digest, frozen = planned[1].digest_of("train", **TRAIN), planning.frozen_file("run.yaml")
    planning.hold(digest, frozen, "train", TRAIN)
    files.write_text("as planned", tmp_path / "first")
    path = package / "algorithms" / "local_sgd.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\nMORE = 1\n", encoding="utf-8")
    try:
        with pytest.raises(ValueError, match="have changed since the rebuild was planned: start the rebuild again"):
            files.write_text("something else", tmp_path / "second")
        with pytest.raises(ValueError, match=f"--digest: {digest[:12]}: "):
            planning.hold(digest, frozen, "train", TRAIN)
    finally:
        path.write_text(text, encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["first", "run.yaml"]


def test_jobs_read_the_run_file_as_it_was_when_the_rebuild_started(planned):
    run_file, plan = planned
    run_file.write_text(SETTINGS.format(seed=8))
    frozen = planning.make_plan("run.yaml", None, frozen=True)
    assert frozen.run.seed == 7
    assert frozen.digest_of("train", **TRAIN) == plan.digest_of("train", **TRAIN)
    assert planning.make_plan("run.yaml", None, frozen=False).run.seed == 8
    # It may hold the password of a mirror.
    assert planning.frozen_file("run.yaml").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("path", sorted((small.ROOT / "config").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_frozen_run_file_has_the_digests_of_the_run_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SILODP_CUDA", "1")
    plan = Plan(load(path))
    planning.freeze(plan, path)
    frozen = planning.make_plan(path, None, frozen=True)
    assert frozen.deliverables() == plan.deliverables()
    for name, config in plan.experiments.items():
        for algorithm in config.algorithms:
            options = {"experiment": name, "algorithm": algorithm}
            assert frozen.digest_of("train", **options) == plan.digest_of("train", **options)
    assert frozen.digest_of("provenance") == plan.digest_of("provenance")
