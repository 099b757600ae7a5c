"""What the cluster profile asks for, without a cluster: dry runs, and the pieces of the private Slurm."""

import logging
import os
import re
from types import SimpleNamespace

import pytest
import yaml
from faults import BEGIN, END, Fault, page_with, table
from private_slurm import CPUS, MEMORY_MB, Unavailable, slurm_conf, system_conf
from runs import ROOT, checkout, run

from silodp.workflow.resources import growing

SLURM, AWS = (ROOT / "workflow" / "profiles" / name / "config.yaml" for name in ("slurm", "aws-batch"))
GPU = """\
run: gpu
threads: 3
memory_mb: 1500
runtime_minutes: 90
experiments:
  wbcd_mlp: {device: cuda, trials_per_job: 5}
  diabetes_linear:
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
    block = re.search(r"^localrules:\n((?:    \w+,\n)+)", (ROOT / "Snakefile").read_text(), flags=re.MULTILINE)
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
            more = (
                "--configfile",
                "config/gpu.yaml",
                "--dry-run",
                "--attempt",
                attempt,
                "--cores",
                "8",
                "all",
                "bounds",
            )
            done = run(folder, *more, profile="slurm")
            assert done.returncode == 0, done.stderr[-2000:]
            found.append(jobs_of(done.stdout + done.stderr))
    return found


def test_every_job_asks_for_memory_and_time_and_for_more_when_tried_again(planned):
    listed = {rule for rule in planned[0] if rule not in ("all", "bounds")}
    assert {"partition", "train", "train_chosen", "select", "privacy", "audit_experiment", "check"} < listed
    for rule in listed:
        for (_, one), (_, two) in zip(planned[0][rule], planned[1][rule], strict=True):
            assert int(two["mem_mb"]) == 2 * int(one["mem_mb"]) > 0
            assert int(two["runtime"]) == 2 * int(one["runtime"]) > 0


def test_training_asks_for_what_the_run_file_says(planned):
    for rule in ("train", "train_chosen"):
        for threads, resources in planned[0][rule]:
            assert (threads, resources["mem_mb"], resources["runtime"]) == (3, "1500", "90")


def test_only_experiments_on_cuda_ask_for_a_gpu(planned):
    asked = {rule: [resources.get("gpu") for _, resources in jobs] for rule, jobs in planned[0].items()}
    assert {rule for rule, gpus in asked.items() if any(gpus)} == {"train", "train_chosen"}
    for rule in ("train", "train_chosen"):
        assert set(asked[rule]) == {"1", None}


class Asked(dict):
    """Resources of a job as plugins read them, from the words of a dry run."""

    def __init__(self, resources, threads):
        super().__init__({name: int(value) if value.isdigit() else value for name, value in resources.items()})
        self["_cores"] = threads

    __getattr__ = dict.__getitem__


@pytest.fixture(params=[True, False], ids=["GPU", "CPU"])
def job(planned, request):
    """A training job as an executor's plugin gets it, and whether it asked for a GPU."""
    jobs = planned[0]["train"]
    threads, resources = next(one for one in jobs if ("gpu" in one[1]) == request.param)
    rule = SimpleNamespace(name="train")
    return SimpleNamespace(name="train", rule=rule, is_group=lambda: False, resources=Asked(resources, threads)), (
        request.param
    )


def test_slurm_is_asked_for_a_gpu(job):
    from snakemake_executor_plugin_slurm.utils import set_gres_string

    asked, gpu = job
    assert set_gres_string(asked).strip() == ("--gpus=1" if gpu else "")


def test_aws_batch_is_asked_for_a_gpu(job):
    builder = pytest.importorskip(
        "snakemake_executor_plugin_aws_batch.batch_job_builder", reason="`make cloud` installs it"
    )
    asked, gpu = job
    asked.resources["_cores"], sent = 4, {}  # the plugin knows no 3
    client = SimpleNamespace(register_job_definition=lambda **said: sent.update(said) or said)
    settings = SimpleNamespace(job_role="role", tags=None, task_timeout=yaml.safe_load(AWS.read_text())[
        "aws-batch-task-timeout"])  # fmt: skip
    builder.BatchJobBuilder(
        logging.getLogger("test"), asked, {}, "image", settings, "command", client
    ).build_job_definition()
    said = {one["type"]: one["value"] for one in sent["containerProperties"]["resourceRequirements"]}
    assert said.get("GPU") == ("1" if gpu else None)
    assert said["VCPU"] == "4"


def test_google_batch_is_asked_for_a_gpu(job):
    google = pytest.importorskip("snakemake_executor_plugin_googlebatch.executor", reason="`make cloud` installs it")
    asked, gpu = job
    executor = object.__new__(google.GoogleBatchExecutor)
    preemptible = SimpleNamespace(is_preemptible=lambda rule: False)
    executor.workflow = SimpleNamespace(
        executor_settings=SimpleNamespace(machine_type="n1-standard-8"),
        remote_execution_settings=SimpleNamespace(preemptible_rules=preemptible),
    )
    executor.executor_settings = executor.workflow.executor_settings
    (instance,) = executor.get_allocation_policy(asked).instances
    assert [(one.type_, one.count) for one in instance.policy.accelerators] == [("nvidia-tesla-t4", 1)] * gpu
    assert instance.install_gpu_drivers == gpu


def test_downloads_and_what_takes_seconds_run_beside_snakemake():
    assert {
        "fetch",
        "select",
        "table",
        "provenance",
        "report",
        "merge_privacy",
        "audit",
        "formulas_figures",
        "bounds_figure",
        "checkins_figure",
    } <= local_rules()
    heavy = {"partition", "train", "train_chosen", "privacy", "audit_experiment", "check"}
    assert not heavy & local_rules()
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


def test_a_resource_grows_with_the_attempts():
    assert [growing(4000)(None, attempt=attempt) for attempt in (1, 2, 3)] == [4000, 8000, 12000]


def test_the_private_slurm_is_configured_for_two_nodes_without_a_database(tmp_path):
    lines = slurm_conf(tmp_path, "host", "me", 7000, {"a": 7001, "b": 7002}).splitlines()
    settings = dict(line.split("=", 1) for line in lines if not line.startswith("NodeName"))
    assert settings["SlurmctldHost"] == "host(127.0.0.1)"
    assert settings["SlurmctldPort"] == "7000"
    assert settings["AccountingStorageType"] == "accounting_storage/none"
    assert settings["AuthInfo"].startswith(f"socket={tmp_path}/")
    assert settings["JobRequeue"] == "1"
    assert (
        int(settings["MinJobAge"]) >= 3 * yaml.safe_load(SLURM.read_text())["slurm-init-seconds-before-status-checks"]
    )
    assert settings["PartitionName"].split()[:2] == ["all", "Nodes=a,b"]
    nodes = [dict(item.split("=") for item in line.split()) for line in lines if line.startswith("NodeName")]
    assert [(node["NodeName"], node["Port"]) for node in nodes] == [("a", "7001"), ("b", "7002")]
    assert all(int(node["RealMemory"]) == MEMORY_MB and int(node["CPUs"]) == CPUS for node in nodes)
    # Every file is in the folder.
    assert all(str(tmp_path) in value for key, value in settings.items() if key.endswith(("File", "Location", "Dir")))


def test_a_clusters_own_configuration_is_never_replaced(tmp_path, monkeypatch):
    place = tmp_path / "etc" / "slurm.conf"
    monkeypatch.setattr("private_slurm.SYSTEM_CONF", place)
    ours = tmp_path / "silodp-slurm-x" / "slurm.conf"
    with system_conf(ours):
        assert os.readlink(place) == str(ours)
    assert not place.parent.exists()
    place.parent.mkdir()
    place.write_text("ClusterName=real\n")
    with pytest.raises(Unavailable, match="belongs to a cluster"), system_conf(ours):
        pass
    assert place.read_text() == "ClusterName=real\n"


def test_what_a_killed_test_left_is_replaced(tmp_path, monkeypatch):
    place = tmp_path / "slurm.conf"
    monkeypatch.setattr("private_slurm.SYSTEM_CONF", place)
    place.symlink_to(tmp_path / "silodp-slurm-gone" / "slurm.conf")
    with system_conf(tmp_path / "silodp-slurm-x" / "slurm.conf"):
        assert place.readlink().parent.name == "silodp-slurm-x"
    assert not os.path.lexists(place)


def test_the_table_of_faults_is_put_between_its_marks():
    rows = [Fault("a kill", "it died", "1 of 5 jobs", True), Fault("b", "c", "d", False)]
    page = page_with(rows, f"before\n{BEGIN}\n{END}\nafter\n")
    assert page == f"before\n{BEGIN}\n{table(rows)}\n{END}\nafter\n"
    # Of a run of some of the tests: the rows of the others stay.
    again = page_with([Fault("b", "c", "nothing", True)], page)
    assert again == page.replace("| b | c | d | no |", "| b | c | nothing | yes |")
    assert page.splitlines()[4:6] == ["| a kill | it died | 1 of 5 jobs | yes |", "| b | c | d | no |"]
    with pytest.raises(ValueError, match="marks: must hold"):
        page_with(rows, "no marks")


def test_the_committed_page_has_every_fault():
    text = (ROOT / "docs" / "cluster.md").read_text()
    rows = [line for line in text.split(BEGIN)[1].split(END)[0].splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 7
    assert all(row.endswith("| yes |") for row in rows)
