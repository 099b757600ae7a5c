"""A file of one's own through a bucket and nodes that share nothing: pods of a stand-in for Kubernetes, moto for S3."""

import subprocess

import pytest
import yaml
from fake_kubernetes import fake_kubernetes
from patients import write_records
from runs import checkout, contents, environment, run, snakemake

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.experiments.validation import load
from silodp.workflow.digests import SECRET
from silodp.workflow.job_digest import RunPlan
from silodp.workflow.outputs import own_data_files

RUN = ("--configfile", "config/patients.yaml")
# Pods have these of a secret of the cluster's.
KEYS = {"SNAKEMAKE_STORAGE_S3_ACCESS_KEY": "me", "SNAKEMAKE_STORAGE_S3_SECRET_KEY": "none"}


def hospitals(folder):
    """A checkout with a file of three hospitals' patients and its thin run file."""
    write_records(checkout(folder) / "patients.csv", {"North": 150, "South": 90, "East": 60})
    path = folder / "config" / "patients.yaml"
    columns = ["--target", "readmitted", "--silo", "hospital"]
    assert main(["init", str(folder / "patients.csv"), *columns, "--output", str(path)]) == 0
    settings = yaml.safe_load(path.read_text()) | {"seed": 3}
    thin = {"epsilons": [2], "trials": 2, "stepsizes": {"low": 0, "high": 0, "points": 1}, "clips": [1]}
    settings["experiments"]["patients"] |= thin | {"settings": [{"M": 3, "R": 5}]}
    path.write_text(yaml.safe_dump(settings))
    return folder


@pytest.fixture
def bucket():
    """An S3 server's address and a bucket of it."""
    for name in ("kubernetes", "snakemake_executor_plugin_kubernetes", "snakemake_storage_plugin_s3", "moto"):
        pytest.importorskip(name, reason="`make install EXTRA=cloud` gets what the profiles need")
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    keys = dict(zip(("aws_access_key_id", "aws_secret_access_key"), KEYS.values(), strict=True))
    bucket = boto3.resource("s3", endpoint_url=address, region_name="us-east-1", **keys).Bucket("silodp")
    bucket.create()
    yield address, bucket
    server.stop()


@pytest.mark.slow
def test_tables_through_a_bucket_and_nodes_that_share_nothing_are_those_of_a_local_run(bucket, tmp_path):
    address, held = bucket
    folders = [tmp_path / name for name in ("here", "there", "fetched")]
    for folder in folders:
        folder.mkdir()
    here, there, fetched = folders
    done = run(hospitals(here), "tables", *RUN)
    assert done.returncode == 0, done.stderr[-3000:]
    storage = ("--default-storage-provider", "s3", "--default-storage-prefix", "s3://silodp/mine")
    storage += ("--storage-s3-endpoint-url", address)
    hospitals(there)
    with fake_kubernetes(tmp_path, environment()) as (cluster, kubeconfig):
        done = subprocess.run(
            snakemake("tables", *RUN, *storage, profile="kubernetes"),
            cwd=there,
            env=environment() | KEYS | {"KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            timeout=1500,
        )
    assert done.returncode == 0, done.stderr[-3000:] + "".join(cluster.output)[-3000:]
    assert len(cluster.manifests) >= 6
    for file in held.objects.filter(Prefix="mine/results/"):
        path = fetched / file.key
        path.parent.mkdir(parents=True, exist_ok=True)
        held.download_file(file.key, str(path))
    local, through = (contents(folder / "results" / "patients") for folder in (here, fetched / "mine"))
    assert {"tables/patients.csv", "privacy/patients.csv"} <= set(through)
    assert through == local


def test_a_file_that_is_not_below_the_folder_is_refused_where_jobs_share_no_disk(tmp_path, monkeypatch):
    hospitals(tmp_path)
    resolved = load(tmp_path / "config" / "patients.yaml")
    monkeypatch.chdir(tmp_path)
    assert own_data_files(RunPlan(resolved)) == ["patients.csv", str(SECRET)]
    monkeypatch.chdir(tmp_path / "config")
    with pytest.raises(ConfigError, match=r"patients.csv: must lie below .*config, as jobs that share no disk"):
        own_data_files(RunPlan(resolved))
