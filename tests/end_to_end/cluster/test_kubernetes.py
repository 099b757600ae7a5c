"""The Kubernetes profile, as far as it goes without a cluster: dry run, manifests, and jobs through a stand-in."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from fake_kubernetes import fake_kubernetes
from runs import ROOT, checkout, contents, environment, run, snakemake

PROFILE = ROOT / "workflow" / "profiles" / "kubernetes"
RUN = ("--configfile", "config/gpu.yaml")
TEXT = """\
run: gpu
threads: 2
memory_mb: 1500
experiments:
  wbcd_mlp: {device: cuda, settings: [{M: 2, R: 5}]}
  diabetes_linear: {trials: 2, settings: [{M: 3, R: 10}]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A checkout whose results go to a volume of its own."""
    for name in ("kubernetes", "snakemake_executor_plugin_kubernetes", "snakemake_storage_plugin_fs"):
        pytest.importorskip(name, reason="`make kubernetes` installs what the profile needs")
    monkeypatch.setenv("SILODP_CUDA", "1")
    found = checkout(tmp_path)
    (found / "config" / "gpu.yaml").write_text(TEXT)
    (found / "volume").mkdir()
    return found


def volume(folder):
    """Options that put the profile's volume into the folder."""
    place = folder / "volume"
    return "--default-storage-prefix", str(place), "--kubernetes-persistent-volumes", f"silodp:{place}"


def test_the_image_and_the_profile_name_each_other():
    profile = yaml.safe_load((PROFILE / "config.yaml").read_text())
    claim, path = profile["kubernetes-persistent-volumes"][0].split(":")
    assert claim
    assert profile["default-storage-prefix"] == path
    assert profile["container-image"] in (PROFILE / "Containerfile").read_text()
    copied = [line.split()[1:-1] for line in (PROFILE / "Containerfile").read_text().splitlines() if "COPY" in line]
    assert all((ROOT / name).exists() for names in copied for name in names)


def test_a_dry_run_plans_into_the_storage(folder):
    done = run(folder, *RUN, *volume(folder), "--dry-run", profile="kubernetes")
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"{folder}/volume/results/gpu/report.html" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_job_through_a_stand_in_is_the_same_as_here(folder, tmp_path):
    """Sources, inputs and outputs go through the storage; manifests ask for what the run file says."""
    if not shutil.which("rsync"):
        pytest.skip("the storage plugin needs rsync")
    silos = "results/gpu/silos/wbcd_mlp/default/indices.parquet"
    trained = "results/gpu/trials/wbcd_mlp/minibatch_sgd/M2_R5/default_0-9.parquet"
    with fake_kubernetes(tmp_path, environment()) as (cluster, kubeconfig):

        def make(target):
            more = (target, *RUN, *volume(folder), "--retries", "0")
            return subprocess.run(
                snakemake(*more, profile="kubernetes"),
                cwd=folder,
                env=environment() | {"KUBECONFIG": str(kubeconfig)},
                capture_output=True,
                text=True,
                timeout=900,
            )

        done = make(silos)
        assert done.returncode == 0, done.stderr[-3000:] + "".join(cluster.output)[-3000:]
        # This machine may have no GPU: what is asked for one is looked at, and the job is not run.
        cluster.refuse = True
        assert make(trained).returncode != 0
    on_cpu, on_gpu = (manifest["spec"]["template"]["spec"] for manifest in cluster.manifests)
    for pod, cpu, gpus in ((on_cpu, "950m", None), (on_gpu, "1900m", "1")):
        (container,) = pod["containers"]
        asked = container["resources"]["requests"]
        assert (asked["cpu"], asked["memory"], asked.get("nvidia.com/gpu")) == (cpu, "1500M", gpus)
        assert container["resources"]["limits"].get("nvidia.com/gpu") == gpus
        assert container["resources"]["limits"]["memory"] == "1500M"
        assert container["image"] == yaml.safe_load((PROFILE / "config.yaml").read_text())["container-image"]
        assert {"name": "silodp", "mountPath": f"{folder}/volume"} in container["volumeMounts"]
        assert pod["restartPolicy"] == "Never"
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(folder / "config" / "gpu.yaml", checkout(here) / "config")
    assert run(here, silos, *RUN).returncode == 0
    name = Path(silos).relative_to("results/gpu").as_posix()
    assert contents(folder / "volume" / "results" / "gpu")[name] == contents(here / "results" / "gpu")[name]
