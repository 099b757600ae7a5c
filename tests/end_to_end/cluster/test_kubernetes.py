"""The Kubernetes profile, as far as it goes without a cluster: manifests, and jobs through a stand-in."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fake_kubernetes import fake_kubernetes
from runs import ROOT, checkout, contents, environment, run

from silodp.workflow import closure
from silodp.workflow.digests import package_checksum
from silodp.workflow.job_digest import CODE_VARIABLE

PROFILE = ROOT / "workflow" / "profiles" / "kubernetes"
RUN = ("--configfile", "config/gpu.yaml")
IMAGE = "silodp: environment: SILODP_CODE: this image holds another silodp: must be built again, from the "
IMAGE += "code of the rebuild"
TEXT = """\
run: gpu
threads: 2
memory_mb: 1500
experiments:
  wbcd_mlp: {device: cuda, settings: [{M: 2, R: 5}]}
  diabetes_linear: {trials: 2, settings: [{M: 3, R: 10}]}
"""


def test_the_image_and_the_profile_name_each_other():
    profile = yaml.safe_load((PROFILE / "config.yaml").read_text())
    claim, path = profile["kubernetes-persistent-volumes"][0].split(":")
    assert claim
    assert profile["default-storage-prefix"] == path
    assert profile["container-image"] in (PROFILE / "Containerfile").read_text()
    copied = [line.split()[1:-1] for line in (PROFILE / "Containerfile").read_text().splitlines() if "COPY" in line]
    assert all((ROOT / name).exists() for names in copied for name in names)


@pytest.mark.slow
def test_a_pod_plans_for_itself_and_refuses_the_image_of_another_package(tmp_path):
    """Snakemake as a pod starts it, in a folder that holds the sources and nothing of the rebuild."""
    (checkout(tmp_path) / "config" / "gpu.yaml").write_text(TEXT)
    job = "partition:experiment=diabetes_linear,reading=default"
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--mode", "remote", "--target-jobs", job, *RUN]

    def code(package):
        silos = tmp_path / "results/gpu/silos/diabetes_linear/default/indices.parquet"
        done = subprocess.run(
            [*command, "--allowed-rules", "partition"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environment() | {CODE_VARIABLE: package},
        )
        assert silos.is_file() == (done.returncode == 0), done.stderr
        return done.returncode, done.stderr.strip().splitlines()[-1]

    assert code("another") == (2, IMAGE)
    assert code(package_checksum(closure.ROOT))[0] == 0


@pytest.mark.slow
def test_a_job_through_a_stand_in_is_the_same_as_here(tmp_path, monkeypatch):
    """Sources, inputs and outputs go through the storage; manifests ask for what the run file says."""
    for name in ("kubernetes", "snakemake_executor_plugin_kubernetes", "snakemake_storage_plugin_fs"):
        pytest.importorskip(name, reason="`make install EXTRA=kubernetes` gets what the profile needs")
    if not shutil.which("rsync"):
        pytest.skip("the storage plugin needs rsync")
    monkeypatch.setenv("SILODP_CUDA", "1")
    here, there, volume = (tmp_path / name for name in ("here", "there", "volume"))
    for folder in (here, there, volume):
        folder.mkdir()
    for folder in (here, there):
        (checkout(folder) / "config" / "gpu.yaml").write_text(TEXT)
    silos = "results/gpu/silos/wbcd_mlp/default/indices.parquet"
    trained = "results/gpu/trials/wbcd_mlp/minibatch_sgd/M2_R5/default_0-9.parquet"
    storage = ("--default-storage-prefix", str(volume), "--kubernetes-persistent-volumes", f"silodp:{volume}")
    with fake_kubernetes(tmp_path, environment()) as (cluster, kubeconfig):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        done = run(there, silos, *RUN, *storage, "--retries", "0", profile="kubernetes")
        assert done.returncode == 0, done.stderr[-3000:] + "".join(cluster.output)[-3000:]
        # This machine may have no GPU: the job that asks for a GPU is looked at, and not run.
        cluster.refuse = True
        assert run(there, trained, *RUN, *storage, "--retries", "0", profile="kubernetes").returncode != 0
    on_cpu, on_gpu = (manifest["spec"]["template"]["spec"] for manifest in cluster.manifests)
    for pod, cpu, gpus in ((on_cpu, "950m", None), (on_gpu, "1900m", "1")):
        (container,) = pod["containers"]
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert (requests["cpu"], requests["memory"], requests.get("nvidia.com/gpu")) == (cpu, "1500M", gpus)
        assert (limits["memory"], limits.get("nvidia.com/gpu")) == ("1500M", gpus)
        assert container["image"] == yaml.safe_load((PROFILE / "config.yaml").read_text())["container-image"]
        assert {"name": "silodp", "mountPath": str(volume)} in container["volumeMounts"]
        assert pod["restartPolicy"] == "Never"
    assert run(here, silos, *RUN).returncode == 0
    name = Path(silos).relative_to("results/gpu").as_posix()
    assert contents(volume / "results" / "gpu")[name] == contents(here / "results" / "gpu")[name]
