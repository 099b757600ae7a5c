"""The workflow through a real Slurm: the results of one machine, also when a job, a node or Snakemake dies."""

import shutil
from pathlib import Path

import pytest
from private_slurm import private_slurm, wait_for
from rebuilds import Rebuild
from runs import checkout, contents, run
from test_cluster_profiles import local_rules

RUN = ("--configfile", "config/faults.yaml")

pytestmark = pytest.mark.slurm


def a_checkout(folder):
    folder.mkdir()
    shutil.copy(Path(__file__).parent / "faults.yaml", checkout(folder) / "config")
    return folder


@pytest.fixture(scope="module")
def slurm():
    with private_slurm() as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The results of a run on this machine."""
    folder = a_checkout(tmp_path_factory.mktemp("undisturbed") / "run")
    done = run(folder, *RUN)
    assert done.returncode == 0, done.stderr[-3000:]
    return contents(folder / "results" / "faults")


def cancel_job(rebuild, slurm, victim):
    """Snakemake submits the job again, with twice the memory."""
    slurm.output("scancel", victim.slurm_id)
    rebuild.finish()
    assert rebuild.redone() == {victim.job}
    cancelled = next(job for job in slurm.jobs() if job.id == victim.slurm_id)
    again = next(job for job in slurm.jobs() if job.comment == cancelled.comment and int(job.id) > int(cancelled.id))
    assert (cancelled.state, cancelled.memory) == ("CANCELLED", "2000M")
    assert (again.state, again.memory) == ("COMPLETED", "4000M")


def kill_node(rebuild, slurm, victim):
    """Slurm starts the node's jobs again on the other node, under the same number."""
    try:
        slurm.kill_node(victim.node)
        lost = {entry.job for entry in rebuild.at_work() if entry.node == victim.node}
        rebuild.finish()
    finally:
        slurm.start_node(victim.node)
    assert victim.job in lost
    assert rebuild.redone() == lost
    assert {entry.slurm_id for entry in rebuild.entries() if entry.job == victim.job} == {victim.slurm_id}


def kill_snakemake(rebuild, slurm, victim):
    """Jobs that Slurm has go on to their end, and the second start takes up their files."""
    rebuild.kill()
    wait_for(lambda: not slurm.live(), 180, "jobs to end")
    assert victim.job in rebuild.ended()
    rebuild.start()
    rebuild.finish()
    assert rebuild.redone() == set()


@pytest.mark.parametrize("disturb", [cancel_job, kill_node, kill_snakemake])
def test_a_disturbed_rebuild_redoes_what_was_lost_and_ends_in_the_same_files(tmp_path, slurm, undisturbed, disturb):
    slurm.wait_idle()
    with Rebuild(a_checkout(tmp_path / "run"), slurm, *RUN) as rebuild:
        victim = rebuild.in_mid_run()
        before = rebuild.finished_files()
        disturb(rebuild, slurm, victim)
    files = rebuild.finished_files()
    assert {path: files[path] for path in before} == before, "a finished file was written again"
    assert contents(rebuild.folder / "results" / "faults") == undisturbed
    sent = {job.comment.split("_wildcards_")[0].removeprefix("rule_") for job in slurm.jobs()}
    assert {"partition", "train", "privacy"} <= sent
    assert not {rule for rule in sent if rule in local_rules() or rule.startswith("figure_")}
