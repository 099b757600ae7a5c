"""What the Slurm profile asks for, by dry runs without a cluster."""

import re

import pytest
import yaml
from runs import ROOT, checkout, run

SLURM = ROOT / "workflow" / "profiles" / "slurm" / "config.yaml"
GPU = """\
run: gpu
threads: 3
memory_mb: 1500
runtime_minutes: 90
experiments:
  wbcd_mlp: {device: cuda, trials_per_job: 5, tuning: race, reports: [{selection: pooled, evaluation: fresh}]}
  digits_logistic: {device: cuda, settings: [{M: 25, R: 35}]}
  wbcd_calibrated:
"""


def jobs_of(said):
    """Rule → threads and resources of its jobs, in the output of a dry run."""
    found = {}
    for rule, text in re.findall(r"^rule (\w+):\n((?:    .*\n)+)", said, flags=re.MULTILINE):
        listed = re.search(r"^    resources: (.*)$", text, flags=re.MULTILINE)
        resources = dict(item.split("=", 1) for item in listed[1].split(", ")) if listed else {}
        threads = re.search(r"^    threads: (\d+)$", text, flags=re.MULTILINE)
        found.setdefault(rule, []).append((int(threads[1]) if threads else 1, resources))
    return found


def local_rules():
    """Rules that run where Snakemake does; those that draw figures say so themselves."""
    text = (ROOT / "workflow" / "Snakefile").read_text()
    block = re.search(r"^localrules:\n((?:    \w+,\n)+)", text, flags=re.MULTILINE)
    return set(block[1].replace(",", "").split())


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """The jobs of a run of two experiments, one on a GPU, at the first and at the second attempt."""
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the lock's Slurm plugin is not installed")
    folder = checkout(tmp_path_factory.mktemp("planned"))
    (folder / "config" / "gpu.yaml").write_text(GPU)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SILODP_CUDA", "1")
        for attempt in ("1", "2"):
            # A dry run bounds the threads of a job by its own cores, of which it has one unless told.
            more = ("--configfile", "config/gpu.yaml", "--dry-run", "--attempt", attempt, "--cores", "8")
            more += ("all", "bounds", "checkins")
            done = run(folder, *more, profile="slurm")
            assert done.returncode == 0, done.stderr[-2000:]
            found.append(jobs_of(done.stdout + done.stderr))
    return found


@pytest.mark.slow
def test_every_job_asks_for_memory_and_time_and_for_more_when_tried_again(planned):
    listed = {rule for rule in planned[0] if rule not in ("all", "bounds", "checkins")}
    assert {"partition", "train", "select", "privacy", "check"} < listed
    for rule in listed:
        for (_, first), (_, second) in zip(planned[0][rule], planned[1][rule], strict=True):
            assert int(second["mem_mb"]) == 2 * int(first["mem_mb"]) > 0
            assert int(second["runtime"]) == 2 * int(first["runtime"]) > 0


@pytest.mark.slow
def test_every_rule_that_trains_asks_for_a_gpu_where_its_experiment_is_on_cuda(planned):
    asked = {rule: {resources.get("gpu") for _, resources in jobs} for rule, jobs in planned[0].items()}
    trained = {rule for rule in asked if rule.startswith(("train", "race", "evaluate_", "checkins_experiment"))}
    assert {"train", "race", "checkins_experiment", "evaluate_wbcd_mlp_0"} < trained
    assert {rule for rule, gpus in asked.items() if "1" in gpus} == trained
    # One experiment stays on the CPU.
    assert asked["train"] == {"1", None}
    for rule in trained - {"checkins_experiment"}:
        for threads, resources in planned[0][rule]:
            assert (threads, resources["mem_mb"], resources["runtime"]) == (3, "1500", "90")


def test_downloads_and_what_takes_seconds_run_beside_snakemake():
    assert {"fetch", "select", "table", "merge", "provenance", "report", "redraw", "redraw_one"} <= local_rules()
    assert not {"partition", "train", "race", "privacy", "check"} & local_rules()
    assert "localrule: True" in (ROOT / "workflow" / "rules" / "figures.smk").read_text()


def test_the_profile_leaves_what_the_plugin_does_wrong():
    profile = yaml.safe_load(SLURM.read_text())
    assert profile["executor"] == "slurm"
    assert profile["rerun-incomplete"] is profile["slurm-requeue"] is True
    assert profile["retries"] >= 1
    # Without an accounting database sacct never answers, and with one it hides what was cancelled.
    assert profile["slurm-status-command"] == "squeue"
    assert 3 * profile["slurm-init-seconds-before-status-checks"] <= 300, "MinJobAge of Slurm's defaults"
    assert not any(key.startswith("slurm-array") or key.startswith("group") for key in profile)
    # The plugin takes cpus_per_task before the rules' threads.
    assert "cpus_per_task" not in profile["default-resources"]
