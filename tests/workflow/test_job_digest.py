"""What the workflow asks before it runs: names, cuts of the work, and digests that change when results would."""

import ast
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import patients
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st
from runfiles import RUNS

from silodp import files
from silodp.algorithms import ALGORITHMS
from silodp.config.experiment import Experiment
from silodp.config.loading import Resolved
from silodp.config.run_keys import Run
from silodp.datasets import DATASETS
from silodp.experiments.validation import load
from silodp.report.figures import BOUNDS_FIGURES
from silodp.workflow import closure
from silodp.workflow import job_digest as planning
from silodp.workflow.closure import CodeSources
from silodp.workflow.digests import package_checksum
from silodp.workflow.job_digest import RunPlan
from silodp.workflow.outputs import DRAWN_CHECKS

LOCAL_SGD = {"experiment": "small", "algorithm": "local_sgd"}


def plan(name="small", run=None, **changes) -> RunPlan:
    resolved = Resolved(Path("run.yaml"), run or small.run(), {name: small.experiment(**changes)})
    return RunPlan(resolved, f"out/{resolved.run.run}")


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_names_of_files_follow_the_doors(path):
    one = RunPlan(load(path))
    assert one.run.run == path.stem
    run = f"results/{path.stem}"
    assert one.tables() == [f"{run}/tables/{name}.csv" for name in one.experiments]
    for name, config in one.experiments.items():
        files = one.grids(name) + one.files("evaluate", name)
        assert len(set(files)) == len(files)
        for algorithm in config.algorithms:
            for setting in config.settings:
                first = "race0" if one.rungs(name) else one.chunks(name)[0]
                assert f"{run}/trials/{name}/{algorithm}/{setting.name}/default_{first}.parquet" in files
    figures = one.files("figures")
    assert len(set(figures)) == len(figures)
    assert {Path(name).suffix for name in figures} == {".pdf", ".png", ".svg"}
    assert all(name.startswith(f"{run}/figures/") for name in figures)


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({}, True),
        ({"algorithms": {"local_sgd": {"private": "non_private"}}}, False),
        ({"readings": {"resample": True}}, False),
        ({"readings": {"clip_rule": "max_norm"}}, False),
    ],
)
def test_epsilon_by_round_is_drawn_where_it_is_proven(changes, drawn):
    assert len(plan(**changes).by_round()) == drawn


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 60), st.integers(1, 60))
def test_trials_are_cut_into_jobs_without_gap_or_overlap(trials, size):
    chunks = plan(trials=trials, trials_per_job=size).chunks("small")
    found = [range(int(first), int(last) + 1) for first, last in (chunk.split("-") for chunk in chunks)]
    assert [trial for chunk in found for trial in chunk] == list(range(trials))
    assert max(len(chunk) for chunk in found) <= size
    assert max(len(chunk) for chunk in found) - min(len(chunk) for chunk in found) <= 1


def test_a_race_has_a_file_for_each_rung_and_each_waits_for_those_before_it():
    reports = [{"selection": "pooled", "evaluation": "fresh"}]
    one = plan(trials=3, tuning="race", race={"searches": 1, "kept": [2, 1]}, reports=reports)
    start = "out/small/trials/small/minibatch_sgd/M2_R3/default_"
    own = [file for file in one.grids("small") if file.startswith(start)]
    assert own == [f"{start}race{number}.parquet" for number in range(4)]
    assert one.before("small", "minibatch_sgd", "M2_R3", "default", "2") == own[:2]
    assert one.before("small", "minibatch_sgd", "M2_R3", "default", "0") == []
    # How points are found is no part of a trained point, but decides which a rung trains.
    other = plan(trials=3, tuning="race", race={"searches": 2, "kept": [2, 1]}, reports=reports)
    whole = plan(trials=3, reports=reports)
    assert one.digest_of("train", **LOCAL_SGD) == whole.digest_of("train", **LOCAL_SGD)
    assert one.digest_of("race", **LOCAL_SGD) != other.digest_of("race", **LOCAL_SGD)
    assert one.digest_of("select", experiment="small") != whole.digest_of("select", experiment="small")


def test_readings_are_names_of_files():
    one = plan(alternatives=[{"log_term": "1/delta"}, {"resample": True, "standardise": "all"}])
    named = {"default": "", "log_term-1delta": "log_term=1/delta"}
    assert one.readings("small") == named | {"resample-true+standardise-all": "resample=true;standardise=all"}


def test_only_readings_with_other_silos_or_preprocessing_have_a_partition_of_their_own():
    one = plan(alternatives=[{"resample": True}, {"batch": "per_eps"}, {"standardise": "all"}])
    assert one.silos("small", "default") == "out/small/silos/small/default"
    assert one.silos("small", "batch-per_eps") == "out/small/silos/small/default"
    assert one.silos("small", "resample-true") == "out/small/silos/small/resample-true"
    assert one.silos("small", "standardise-all") == "out/small/silos/small/standardise-all"


@pytest.mark.parametrize(
    ("reading", "slug", "trained"),
    [
        ({"spider_q1_noise": "minibatch"}, "spider_q1_noise-minibatch", ["fedprox_spider", "sdp_fedprox_spider"]),
        ({"batch": "per_eps", "algorithms": ["local_sgd"]}, "batch-per_eps", ["local_sgd"]),
    ],
)
def test_a_reading_is_trained_only_where_it_speaks_to_the_algorithm_and_is_asked_for(reading, slug, trained):
    grids = plan(alternatives=[reading]).grids("small")
    own = [f"out/small/trials/small/{name}/M2_R3/{slug}_0-2.parquet" for name in trained]
    assert [file for file in grids if f"/{slug}_" in file] == own
    assert len(grids) == len(ALGORITHMS) + len(own)


def test_fresh_runs_are_made_only_where_a_report_asks_for_them():
    assert plan(reports=[{"evaluation": "same"}]).files("evaluate", "small") == []
    assert len(plan(reports=[{"evaluation": "same"}, {}]).files("evaluate", "small")) == len(ALGORITHMS)


@pytest.mark.parametrize("tuning", ["full", "race"])
def test_fresh_runs_are_cut_as_grids_are(tuning):
    one = plan(tuning=tuning, trials=7, trials_per_job=3, reports=[{"selection": "pooled", "evaluation": "fresh"}])
    own = [Path(name).name for name in one.files("evaluate", "small") if "/minibatch_sgd/" in name]
    assert own == ["default_fresh0-1.parquet", "default_fresh2-3.parquet", "default_fresh4-6.parquet"]


def test_data_that_must_be_fetched_is_an_input():
    assert plan().files("fetch", "small") == []
    digits = {"dataset": "mnist", "label": "parity", "silos": {"scheme": "digit_pairs"}}
    one = plan(run=small.run(data={"mirror": "/a b", "cache": "c"}), **digits)
    assert one.files("fetch", "small") == ["out/small/data/mnist.csv"]


JOBS = ["partition", "train", "select", "table", "figure", "privacy"]
REPORTS = {"select", "table"}
SCALES = ("smoke", "default", "paper")


def digests(one: RunPlan) -> dict[str, str]:
    return {job: one.own_digest(job, experiment="small", algorithm="minibatch_sgd") for job in JOBS}


SHOWN, TRAINED, CUT = {"figure"}, {"train", "privacy", *REPORTS}, set(JOBS) - {"figure"}
# Every key of an experiment: another value, and the jobs that it changes.
KEYS = {
    "title": ("other", SHOWN),
    "short": ("other", SHOWN),
    "paper": ("other", SHOWN),
    "board": ("leaderboard", set()),
    "vary": ("silos.mixed", set()),
    "dataset": ("digits", CUT),
    "label": ("parity", CUT),
    "silos": ({"scheme": "by_class", "train_share": 0.7}, CUT),
    "preprocess": ({"pca": 3}, CUT),
    "model": ({"name": "perceptron", "hidden": 4}, TRAINED),
    "radius": (3.0, TRAINED),
    "regulariser": ({"name": "l1", "weight": 0.1}, TRAINED),
    "settings": ([{"M": 2, "R": 4}], TRAINED),
    "epsilons": ([2.0], TRAINED),
    "delta": (1e-4, TRAINED),
    "trials": (9, {"partition", *REPORTS}),
    "batch_epsilon": (2.0, TRAINED),
    "batch_records": (3, TRAINED),
    "batch_share": (0.5, TRAINED),
    "log_term": ("1/delta", TRAINED),
    "stepsizes": ({"low": -2, "high": 0, "points": 2}, TRAINED),
    "clips": ([0.5], TRAINED),
    "phase_lengths": ([2], TRAINED),
    "algorithms": ({"minibatch_sgd": {"clips": [3.0]}}, {*TRAINED, "figure"}),
    "readings": ({"output": "mean_of_last_8"}, CUT),
    "alternatives": ([{"batch": "per_eps"}], {"privacy", *REPORTS}),
    "reports": ([{"selection": "per_trial"}], REPORTS),
    "allow_unproven": (False, REPORTS),
    "tuning": ("race", REPORTS),
    "race": ({"stride": 2}, REPORTS),
    "trials_per_job": (1, REPORTS),
    "device": ("cuda", {"train", *REPORTS}),
}
# The same of a run file; what its experiments and parts are is in each of them, and plug-ins are code.
RUN_KEYS = {
    "run": ("other", set()),
    "seed": (1, {"partition", "train", "privacy"}),
    "device": ("cuda", {"train"}),
    "gpus": (True, set()),
    "dtype": ("float64", {"train", "privacy"}),
    "threads": (3, set()),
    "trials_per_job": (1, set()),
    "memory_mb": (999, set()),
    "runtime_minutes": (7, set()),
    "data": ({"mirror": "/other"}, set()),
    "bounds": ({"scale": "smoke"}, set()),
    "targets": (["bounds"], set()),
}


def test_every_key_is_listed_with_the_jobs_that_it_changes():
    assert set(KEYS) == set(Experiment.model_fields)
    assert set(RUN_KEYS) == set(Run.model_fields) - {"experiments", "parts", "plugins"}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_an_experiment_changes_what_it_decides(key):
    value, changed = KEYS[key]
    before, more = digests(plan()), {"batch_epsilon": None} if key in ("batch_records", "batch_share") else {}
    after = digests(plan(**more, **{key: value}))
    assert {name for name in JOBS if before[name] != after[name]} == changed


@pytest.mark.parametrize("key", RUN_KEYS)
def test_a_key_of_a_run_file_changes_what_it_decides(key):
    value, changed = RUN_KEYS[key]
    before, after = digests(plan()), digests(plan(run=small.run(**{key: value})))
    assert {name for name in JOBS if before[name] != after[name]} == changed


def test_the_scale_of_bounds_changes_their_checks():
    found = [plan(run=small.run(bounds={"scale": scale})).digest_of("check", name="upper_bounds") for scale in SCALES]
    assert len(set(found)) == len(SCALES)


def test_another_algorithms_options_retrain_only_that_one():
    one = {name: {} for name in ALGORITHMS}
    before, after = plan(algorithms=one), plan(algorithms=one | {"local_sgd": {"clips": [3.0]}})
    for name in ALGORITHMS:
        options = {"experiment": "small", "algorithm": name}
        same = before.digest_of("train", **options) == after.digest_of("train", **options)
        assert same == (name != "local_sgd")


def test_checks_with_a_figure_are_those_of_the_figures_module():
    assert set(DRAWN_CHECKS) == set(BOUNDS_FIGURES)


def test_bounds_and_check_ins_are_waited_for_only_where_the_run_file_asks(tmp_path, monkeypatch):
    """What was made without being asked for is read, and changes the verdicts; what is asked for is an input."""
    monkeypatch.chdir(tmp_path)
    plain, asking = (RunPlan(load(small.ROOT / "config" / name)) for name in ("default.yaml", "paper.yaml"))
    assert plain.asked_outputs() == []
    assert {"results/paper/bounds/table_1.csv", "results/paper/checkins/mnist_logistic.png"} <= set(
        asking.asked_outputs()
    )
    before = plain.digest_of("claims"), asking.digest_of("claims")
    published = RunPlan(asking.resolved, folder="results/published")
    assert published.asked_outputs() == []
    for run in ("default", "paper"):
        (tmp_path / f"results/{run}/bounds").mkdir(parents=True)
        (tmp_path / f"results/{run}/bounds/table_1.csv").write_text("check\n")
    assert plain.digest_of("claims") != before[0]
    assert asking.digest_of("claims") == before[1]


def test_check_ins_are_compared_on_logistic_experiments_and_redone_when_these_change():
    logistic = {"dataset": "digits", "label": "parity", "silos": {"scheme": "digit_pairs"}}
    logistic |= {"model": {"name": "logistic"}, "settings": [{"M": 25, "R": 3}]}
    one = plan(**logistic)
    names = {Path(file).stem for file in one.checkins()}
    assert names == {"figure_2", "small"}
    assert {Path(file).stem for file in plan().checkins()} == {"figure_2"}
    digest = one.digest_of("checkins", experiment="small")
    assert digest != plan().digest_of("checkins", experiment="small")
    assert digest == plan(**logistic, epsilons=[2.0]).digest_of("checkins", experiment="small")
    assert digest != plan(**logistic, run=small.run(device="cuda")).digest_of("checkins", experiment="small")
    assert one.digest_of("checkins_figure_2") == plan().digest_of("checkins_figure_2")


SETTINGS = "run: small\nseed: {seed}\nexperiments: {{wbcd_mlp: {{trials: 1}}}}\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package's sources, beside the configuration that they name."""
    top = tmp_path_factory.mktemp("sources")
    shutil.copytree(small.ROOT / "config", top / "config")
    shutil.copy(small.ROOT / "CITATION.cff", top)
    return Path(shutil.copytree(closure.ROOT, top / "src" / "silodp"))


@pytest.fixture(scope="module")
def stale(package):
    """(edit: text of a module → another, of one file or of all, keys of the experiment) → jobs whose digests change."""

    known: dict[str, dict[str, str]] = {}

    def digests(changes):
        plan = RunPlan(Resolved(Path("run.yaml"), small.run(), {"small": small.experiment(**changes)}))
        plan.sources = CodeSources(root=package)
        found = {name: plan.own_digest("train", experiment="small", algorithm=name) for name in ALGORITHMS}
        found["race"] = plan.own_digest("race", experiment="small", algorithm="minibatch_sgd")
        for job in ("partition", "evaluate", "select", "table", "privacy", "figure", "study", "checkins"):
            found[job] = plan.own_digest(job, experiment="small")
        for check in ("upper_bounds", "participation"):
            found[check] = plan.own_digest("check", name=check)
        whole = ("formulas", "merge", "comparisons", "claims", "provenance", "report", "redraw", "crate")
        whole += ("leaderboard", "checkins_figure_2")
        return found | {job: plan.own_digest(job) for job in whole}

    def changed(edit, file=None, to=None, **changes):
        if repr(changes) not in known:
            known[repr(changes)] = digests(changes)
        before = known[repr(changes)]
        texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
        edits = {path: edit(text) for path, text in texts.items() if file is None or path == package / file}
        assert any(text != texts[path] for path, text in edits.items())
        try:
            for path, text in edits.items():
                path.write_text(text, encoding="utf-8")
            if to:
                (package / to[0]).rename(package / to[1])
            after = digests(changes)
        finally:
            if to:
                (package / to[1]).rename(package / to[0])
            for path, text in texts.items():
                path.write_text(text, encoding="utf-8")
        return {job for job in before if before[job] != after[job]}

    return changed


def replaced(old, new):
    return lambda text: re.sub(old, new, text, count=1, flags=re.MULTILINE)


WORDS = replaced(r'\A"""', '# A comment.\n\n"""Other words. ')
CODE = replaced(r"\Z", "\nMORE = 1\n")
# Import minibatch SGD, directly or through another.
OF_GRADIENTS = {
    *("minibatch_sgd", "minibatch_sgd_adam", "minibatch_sgd_momentum", "accelerated_minibatch_sgd", "mr_mtl"),
    *("silo_only", "shuffled_minibatch_sgd", "prox_sgd", "sdp_prox_sgd", "fedprox_spider", "sdp_fedprox_spider"),
    *("one_pass_accelerated_sgd", "localised_accelerated"),
}


@pytest.mark.parametrize(
    ("file", "edit", "jobs"),
    [
        ("federation/messages.py", WORDS, set()),
        ("config/experiment.py", WORDS, set()),
        ("files.py", WORDS, set()),
        ("report/figures/style.py", WORDS, set()),
        ("report/figures/style.py", CODE, {"figure", "redraw", "report", "study", "leaderboard"}),
        ("partition/partition.py", replaced("must be fewer silos", "must be other silos"), set()),
        ("report/page/summaries.py", replaced(r'(\n[^#]* f?"[a-z]+ [a-z]+ )', r"\1 words "), {"report"}),
        ("audit/audit_columns.py", replaced('"mechanism_p"', '"mechanism_p", "more"'), {"privacy", "report"}),
        # No algorithm imports it.
        ("algorithms/local_sgd.py", CODE, {"local_sgd", "evaluate", "privacy", "study"}),
        ("algorithms/minibatch_sgd.py", CODE, {*OF_GRADIENTS, "evaluate", "privacy", "race", "study"}),
        ("verdicts/checks/upper_bounds.py", CODE, {"upper_bounds"}),
        ("workflow/provenance.py", CODE, {"provenance", "crate"}),
        ("datasets/own/encoding.py", CODE, set()),
    ],
)
def test_an_edit_makes_again_what_is_computed_by_it_and_words_nothing(stale, file, edit, jobs):
    assert stale(edit, file) == jobs


# fetch is done again when its data are others, whatever the code.
JOB_FILES = sorted({file.stem for file in (closure.ROOT / "jobs").glob("*.py")} - {"fetch", "__init__"})
ENTERED = {"train": {*ALGORITHMS, "evaluate", "race", "study"}, "check": {"upper_bounds", "participation"}}


@pytest.mark.parametrize("name", JOB_FILES)
def test_an_edit_of_a_job_makes_that_job_again_and_those_that_call_it(stale, name):
    """How words become arguments is no part of a job."""
    assert stale(CODE, f"jobs/{name}.py") == ENTERED.get(name, {name} - {"__main__"})


@pytest.mark.parametrize(
    ("file", "edit"), [("experiments/columns.py", '["edge"'), ("audit/audit_columns.py", '["mechanism"')]
)
def test_a_column_of_a_table_retrains_nothing(stale, file, edit):
    assert not stale(replaced(re.escape(edit), '["more", ' + edit[1:]), file) & {
        *ALGORITHMS,
        "partition",
        "evaluate",
        "select",
    }


@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("federation.simulated", "federation.server"),
        ("files", "theory.atomic"),
        ("experiments.training", "privacy.stack"),
    ],
)
def test_a_module_that_is_moved_makes_nothing_again(stale, module, place):
    """As a script moves it, which puts the new name into every import."""
    room, _, old = module.rpartition(".")
    new_room, _, new = place.rpartition(".")
    whole = rf"from silodp\.{room} import {old}\b" if room else rf"from silodp import {old}\b"

    def edit(text):
        text = re.sub(rf"\bsilodp\.{re.escape(module)}\b", f"silodp.{place}", text)
        return re.sub(whole, f"from silodp.{new_room} import {new} as {old}", text)

    files = tuple(f"{name.replace('.', '/')}.py" for name in (module, place))
    assert stale(edit, to=files) == set()


# A run with every rule, by full grids and by a race, on registered data and on own.
EVERY_RULE = {
    "run": "every",
    "seed": 7,
    "targets": ["bounds", "checkins"],
    "experiments": {
        "wbcd_mlp": {},
        "digits_leaderboard": {},
        "wbcd_leaderboard": {"tuning": "full"},
        "patients": patients.experiment(),
    },
}
# Rules whose job is called otherwise: of a part, of an experiment, or of a table.
JOB_OF_RULE = {"figures": "figure", "redraw_one": "redraw", "checkins_experiment": "checkins"}


def reached(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows, and those in place of each path of them."""
    longer = {(one, end) for one, between in arrows for start, end in arrows if between == start} - arrows
    return reached(arrows | longer) if longer else arrows


def test_every_job_follows_those_whose_results_its_rule_reads(tmp_path, monkeypatch):
    """Whatever the times of the files: those of an older clock, or of a copy."""
    monkeypatch.chdir(tmp_path)
    patients.write_records(tmp_path / "patients.csv")
    (tmp_path / "run.yaml").write_text(json.dumps(EVERY_RULE), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--snakefile", small.ROOT / "Snakefile", "--configfile", "run.yaml"]
    graph = subprocess.run([*command, "--rulegraph", "--forceall"], capture_output=True, text=True, check=True).stdout
    rules = dict(re.findall(r'(\d+)\[label = "(\w+)"', graph))
    jobs = {key: re.sub(r"^(figures|evaluate)_.*", r"\1", name) for key, name in rules.items() if name != "all"}
    jobs = {key: JOB_OF_RULE.get(name, name) for key, name in jobs.items()}
    arrows = {(jobs[one], jobs[other]) for one, other in re.findall(r"(\d+) -> (\d+)", graph) if other in jobs}
    # Data are in digests by value.
    read = {(one, other) for one, other in reached(arrows) if one not in ("fetch", other)}
    plan = planning.make_plan("run.yaml", None, frozen=False)
    own, changed = RunPlan.own_digest, ""
    monkeypatch.setattr(RunPlan, "own_digest", lambda *a, **b: own(*a, **b) + "changed" * (a[1] == changed))

    tables = [{"tables": [file]} for file in plan.asked_outputs() if file.endswith(".csv")]
    options = {"redraw": [{}, *tables], "check": [{"name": "upper_bounds"}]}
    every = [{"experiment": name, "algorithm": "minibatch_sgd"} for name in plan.experiments]

    def digests():
        one_run = {job: [{}] for job in planning.OF_RUN} | options
        return {job: [plan.digest_of(job, **words) for words in one_run.get(job, every)] for job in followers}

    followers = {other for _, other in read}
    before, found = digests(), set()
    for changed in sorted({one for one, _ in read}):
        after = digests()
        found |= {(changed, job) for job in followers - {changed} if before[job] != after[job]}
    assert found == read


@pytest.mark.parametrize(
    ("key", "jobs"),
    [
        ("title", {"redraw", "leaderboard", "report"}),
        ("short", {"redraw", "leaderboard", "report"}),
        ("board", {"redraw", "leaderboard", "report"}),
        ("vary", {"leaderboard"}),
        ("silos", {"leaderboard"}),
        ("dataset", {"redraw", "comparisons", "claims", "report"}),
        ("settings", {"claims"}),
        ("epsilons", {"claims"}),
        ("trials", set()),
    ],
)
def test_what_is_read_in_config_experiments_is_in_digests(monkeypatch, key, jobs):
    """Whether the run has the experiment or not."""
    before = {job: plan().own_digest(job) for job in (*planning.OF_RUN, "redraw")}
    known = planning.known_experiments() | {"wbcd_mlp": {**planning.known_experiments()["wbcd_mlp"], key: "other"}}
    monkeypatch.setattr(planning, "known_experiments", lambda: known)
    assert {job for job in before if plan().own_digest(job) != before[job]} == jobs


def test_a_publication_follows_what_is_made_in_it(monkeypatch):
    """From a clone, whose files are all as old as it."""
    published, own = RunPlan(plan().resolved, "results/published"), RunPlan.own_digest
    before = {job: published.digest_of(job) for job in ("redraw", "claims", "report", "crate")}
    monkeypatch.setattr(RunPlan, "own_digest", lambda *a, **b: own(*a, **b) + "changed" * (a[1] == "comparisons"))
    assert all(published.digest_of(job) != before[job] for job in before)


def test_a_publication_follows_no_training(monkeypatch):
    """Its tables are committed, and what they are made of is not there."""
    run, published = (RunPlan(plan().resolved, folder) for folder in (None, "results/published"))
    monkeypatch.setattr(RunPlan, "_train", None)
    assert published.digest_of("figure", experiment="small")
    with pytest.raises(TypeError):
        run.digest_of("figure", experiment="small")


def test_doubled_step_sizes_retrain_every_algorithm(stale):
    assert stale(replaced(r"return np\.exp\(", "return 2 * np.exp("), "config/experiment.py") >= set(ALGORITHMS)


def test_the_accountant_retrains_only_what_calibrates_by_it(stale):
    edit = (CODE, "privacy/calibration.py")
    assert not stale(*edit) & set(ALGORITHMS)
    assert stale(*edit, alternatives=[{"noise": "calibrated"}]) >= {*ALGORITHMS, "privacy"}


def test_another_model_retrains_nothing(stale):
    assert not stale(CODE, "models/convnet.py") & {*ALGORITHMS, "partition", "privacy"}


class Recorded(CodeSources):
    """Sources that note the closures of which digests were asked."""

    def __init__(self):
        super().__init__()
        self.closures: list[set[str]] = []

    def digest(self, entries, excluded=()):
        self.closures.append(self.closure(entries, excluded))
        return super().digest(entries, excluded)


@pytest.fixture(scope="module")
def closures():
    """(job, algorithm, keys of the experiment) → the names of the modules that a digest is made of."""

    def found(job="train", algorithm="minibatch_sgd", **changes):
        one = plan(**changes)
        one.sources = Recorded()
        one.own_digest(job, experiment="small", algorithm=algorithm)
        return one.sources.closures[-1]

    return found


READ_AS_OWN = ("obesity", "star", "tv16")


@pytest.mark.parametrize("dataset", DATASETS)
def test_training_on_registered_data_reads_no_file_as_ones_own(closures, dataset):
    reader = {f"silodp.datasets.own.{name}" for name in ("encoding", "parsing", "schema")}
    changes = {"dataset": dataset, "model": {"name": "linear" if DATASETS[dataset].task == "regression" else "softmax"}}
    assert bool(closures(**changes) & reader) == (dataset in READ_AS_OWN)


def test_training_is_computed_by_little(closures):
    """Minibatch SGD on breast cancer by at most 6,000 lines."""
    files = (CodeSources().file(module) for module in closures())
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 6000


def test_no_digest_holds_the_name_of_a_module(closures):
    """Names stand in imports, and nowhere else: a string would not follow a file that is moved."""
    jobs = [*JOBS, "claims", "report", "provenance", "crate", "formulas", "checkins"]
    sources = CodeSources()
    for module in set().union(*(closures(job) for job in jobs)):
        tree = ast.parse(sources.file(module).read_text(encoding="utf-8"))
        texts = [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in texts if re.fullmatch(r"silodp(\.\w+)+\.?", text)], module


def test_packages_compute_nothing_when_a_module_in_them_is_imported():
    """They are in no digest of their modules: documentation, imports, definitions and names, and no call on its own."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.AnnAssign, ast.Assign)
    for file in closure.ROOT.rglob("__init__.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            documents = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            typed = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            assert documents or typed or isinstance(node, kinds), f"{file}: {ast.unparse(node)}"
            for target in getattr(node, "targets", [getattr(node, "target", ast.Name())]):
                assert isinstance(target, ast.Name), f"{file}: {ast.unparse(node)}"


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


def test_a_fetch_is_made_again_where_a_file_of_its_data_is_another(monkeypatch):
    made = plan()
    before = made.digest_of("fetch", names=["insurance"])
    assert before == made.digest_of("fetch", names=["insurance"]) != made.digest_of("fetch", names=["mnist"])
    monkeypatch.setattr(
        planning, "sources", lambda name: SimpleNamespace(files=[SimpleNamespace(file="a", digest="b")])
    )
    assert made.digest_of("fetch", names=["insurance"]) != before


TRAIN = {"experiment": "wbcd_mlp", "algorithm": "local_sgd"}


def test_a_job_refuses_when_the_code_changed_before_it_starts_or_before_it_writes(planned, package, tmp_path):
    digest, frozen = planned[1].digest_of("train", **TRAIN), planning.frozen_file(planned[1])
    planning.hold(digest, frozen, "train", TRAIN)
    files.write_text("as planned", tmp_path / "first")
    path = package / "algorithms" / "local_sgd.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\nMORE = 1\n", encoding="utf-8")
    try:
        with pytest.raises(ValueError, match="have changed since the rebuild was planned: start the rebuild again"):
            files.write_text("something else", tmp_path / "second")
        with pytest.raises(ValueError, match=f"command line: digest: {digest[:12]}: "):
            planning.hold(digest, frozen, "train", TRAIN)
    finally:
        path.write_text(text, encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["first", "run.yaml"]


def test_a_frozen_plan_keeps_its_plug_ins_as_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("# ε\n", encoding="utf-8")
    made = RunPlan(replace(plan().resolved, plugins=(tmp_path / "own.py",)))
    made.sources = SimpleNamespace(save=lambda file: None)
    planning.freeze(made, "run.yaml")
    copy = planning.frozen_file(made).with_name("source") / "plugins" / "own.py"
    assert copy.read_text(encoding="utf-8") == "# ε\n"


def test_figures_of_a_publication_are_drawn_again_where_it_has_decided_tables(planned, tmp_path):
    """The job knows the publication's place by its own folder alone, which no run is called as."""
    plan = planning.make_plan("run.yaml", "published", frozen=False)
    planning.freeze(plan, "run.yaml")
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "decided.csv").write_text("experiment\n")
    options = {"folder": Path("published/figures")}
    planning.hold(plan.digest_of("redraw", folder="figures"), planning.frozen_file(plan), "redraw", options)


def test_a_job_without_the_rebuilds_disk_freezes_its_plan_and_refuses_another_package(planned, package, monkeypatch):
    """As in a pod, whose image may be older than the rebuild's code."""
    _, plan = planned
    monkeypatch.setattr(planning, "ROOT", package)
    monkeypatch.setenv(planning.CODE_VARIABLE, package_checksum(package))
    frozen = planning.frozen_file(plan)
    frozen.unlink()
    planning.unpack(plan, "run.yaml")
    assert load(frozen).run.seed == 7
    frozen.unlink()
    template = next(package.rglob("*.j2"))
    text = template.read_text(encoding="utf-8")
    template.write_text(text + " ", encoding="utf-8")
    try:
        with pytest.raises(ValueError, match="SILODP_CODE: this image holds another silodp: must be"):
            planning.unpack(plan, "run.yaml")
        assert not frozen.exists()
    finally:
        template.write_text(text, encoding="utf-8")


def test_a_run_file_at_another_path_makes_nothing_again(planned, tmp_path):
    """Digest and frozen plan are what rules hand to jobs."""
    (tmp_path / "beside").symlink_to(tmp_path)
    other = planning.make_plan("beside/run.yaml", None, frozen=False)
    planning.freeze(other, "beside/run.yaml")
    assert other.digest_of("train", **TRAIN) == planned[1].digest_of("train", **TRAIN)
    frozen = {
        planning.make_plan(path, None, frozen=True).resolved.path.resolve() for path in ("run.yaml", "beside/run.yaml")
    }
    assert frozen == {planning.frozen_file(planned[1]).resolve()}


def test_jobs_read_the_run_file_as_it_was_when_the_rebuild_started(planned):
    run_file, plan = planned
    run_file.write_text(SETTINGS.format(seed=8))
    frozen = planning.make_plan("run.yaml", None, frozen=True)
    assert frozen.run.seed == 7
    assert frozen.digest_of("train", **TRAIN) == plan.digest_of("train", **TRAIN)
    assert planning.make_plan("run.yaml", None, frozen=False).run.seed == 8
    # It may hold the password of a mirror.
    assert planning.frozen_file(planned[1]).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_frozen_run_file_has_the_digests_of_the_run_file(path, tmp_path, monkeypatch):
    """It is what config.json is, by which the published figures are drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SILODP_CUDA", "1")
    plan = RunPlan(load(path))
    planning.freeze(plan, path)
    frozen = planning.make_plan(path, None, frozen=True)
    assert frozen.deliverables() == plan.deliverables()
    assert frozen.resolved.dump() == plan.resolved.dump()
    for name, config in plan.experiments.items():
        assert frozen.experiments[name].variants() == config.variants()
        for algorithm in config.algorithms:
            options = {"experiment": name, "algorithm": algorithm}
            assert frozen.digest_of("train", **options) == plan.digest_of("train", **options)
    assert frozen.digest_of("provenance") == plan.digest_of("provenance")
