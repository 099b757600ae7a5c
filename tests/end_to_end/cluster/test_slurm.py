"""The workflow through a real Slurm: the same results as on one machine, also when jobs, nodes or Snakemake die."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from faults import Fault
from private_slurm import LIVE, PATIENCE, wait_for
from rebuilds import PROFILE, QUICK, Rebuild
from runs import checkout, contents, environment, run
from test_cluster_profiles import local_rules
from test_s3 import MODEL, TARGETS, hospitals
from test_s3 import RUN as OWN

HERE = Path(__file__).parent
RUN = ("--configfile", "config/faults.yaml")
TABLES = ("tables", *RUN)

SEED = int(os.environ.get("SILODP_SEED", random.SystemRandom().randrange(10**6)))
KILLS = int(os.environ.get("SILODP_KILLS", "20"))

pytestmark = pytest.mark.slurm


def a_checkout(folder):
    """A checkout with the run that is disturbed."""
    folder.mkdir()
    shutil.copy(HERE / "faults.yaml", checkout(folder) / "config")
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a local run to the tables leaves."""
    folder = a_checkout(tmp_path_factory.mktemp("undisturbed") / "run")
    done = run(folder, *TABLES)
    assert done.returncode == 0, done.stderr[-3000:]
    return contents(folder / "results" / "faults")


@pytest.fixture
def rebuild(tmp_path, slurm):
    """A rebuild to the tables through Slurm, not yet started."""
    slurm.wait_idle()
    return Rebuild(a_checkout(tmp_path / "run"), slurm, *TABLES)


def judge(rebuild, undisturbed, before, fault, happened):
    """The row of a fault, once the rebuild is through; nothing that had finished `before` may be done again."""
    files = rebuild.finished_files()
    assert {path: files[path] for path in before} == before, "a finished file was written again"
    assert not {rebuild.folder / job.split()[1] for job in rebuild.redone()} & set(before)
    results = contents(rebuild.folder / "results" / "faults")
    assert set(results) == set(undisturbed), "a file is lost or new"
    redone = rebuild.redone()
    shown = ", ".join(sorted(Path(job.split()[1]).relative_to("results/faults").as_posix() for job in redone))
    words = f"{len(redone)} of {len(rebuild.started())} jobs ({shown})" if redone else "nothing"
    return Fault(fault, happened, words, results == undisturbed)


def test_a_cancelled_job(rebuild, slurm, undisturbed, faults):
    with rebuild:
        victim = rebuild.in_mid_run()
        before = rebuild.finished_files()
        slurm.ask("scancel", victim.slurm_id)
        rebuild.finish()
    assert rebuild.redone() == {victim.job}
    cancelled = next(job for job in slurm.jobs() if job.id == victim.slurm_id)
    again = next(job for job in slurm.jobs() if job.asks == cancelled.asks and int(job.id) > int(victim.slurm_id))
    happened = (
        f"Slurm: {cancelled.state}; Snakemake submitted the job again with {again.memory} in place of "
        f"{cancelled.memory} of memory"
    )
    assert (cancelled.state, again.state) == ("CANCELLED", "COMPLETED")
    assert (cancelled.memory, again.memory) == ("2000M", "4000M")
    row = judge(rebuild, undisturbed, before, "`scancel` of a training job in mid-run", happened)
    faults.append(row)
    assert row.equal


def test_a_node_that_dies(rebuild, slurm, undisturbed, faults):
    with rebuild:
        victim = rebuild.in_mid_run()
        before = rebuild.finished_files()
        try:
            slurm.kill_node(victim.node)
            lost = {one.job for one in rebuild.at_work("train") if one.node == victim.node}
            rebuild.finish()
        finally:
            slurm.start_node(victim.node)
    slurm.wait_idle()
    assert victim.job in lost
    assert rebuild.redone() == lost
    other = {one.node for one in rebuild.entries() if one.event == "end-0" and one.job in lost}
    assert other == set(slurm.nodes) - {victim.node}
    ids = {one.slurm_id for one in rebuild.entries() if one.job == victim.job}
    assert ids == {victim.slurm_id}, "Slurm itself starts the job again"
    row = judge(
        rebuild,
        undisturbed,
        before,
        "a node dies in mid-run: daemon, steps and jobs",
        "Slurm saw the node down and started its jobs again on the other node, under the same number",
    )
    faults.append(row)
    assert row.equal


def test_snakemake_is_killed(rebuild, slurm, undisturbed, faults):
    with rebuild:
        victim = rebuild.in_mid_run()
        before = rebuild.finished_files()
        rebuild.kill()
        handed_over = set(rebuild.started())
        assert slurm.running(), "jobs go on without Snakemake"
        wait_for(
            lambda: not any(job.state in ("RUNNING", "PENDING", "COMPLETING") for job in slurm.jobs()), 180, "jobs"
        )
        assert {victim.job} | handed_over <= rebuild.ended()
        before |= rebuild.finished_files()
        rebuild.unlock()
        rebuild.start()
        rebuild.finish()
    assert rebuild.redone() == set()
    row = judge(
        rebuild,
        undisturbed,
        before,
        "SIGKILL of Snakemake in mid-run; its jobs left to end; `--unlock`; started again",
        "jobs that Slurm had went on to their end, and the second start took up their files",
    )
    faults.append(row)
    assert row.equal


def strike(rng, rebuild, slurm):
    """Kill something at a random moment; returns what, None where nothing of the kind was there."""
    time.sleep(rng.uniform(0, 10) * PATIENCE)
    victim, running = rng.choice(["job", "process", "node", "Snakemake"]), slurm.running()
    if rebuild.process.poll() is not None:
        return None
    if victim == "Snakemake":
        rebuild.kill()
        # Jobs that Slurm has go on: they are cancelled or waited for, and then it is started again.
        live = [job.id for job in slurm.jobs() if job.state in LIVE]
        if live and rng.random() < 0.5:
            slurm.ask("scancel", "--full", *live)
        wait_for(lambda: not {job.state for job in slurm.jobs()} & LIVE, 180, "jobs to end")
        rebuild.unlock()
        rebuild.start()
        return victim
    if not running:
        return None
    job = rng.choice(running)
    if victim == "job":
        slurm.ask("scancel", job.id)
    elif victim == "process":
        slurm.kill_process(job.node, rng)
    else:
        slurm.kill_node(job.node)
        time.sleep(rng.uniform(0, 40))
        slurm.start_node(job.node)
    return victim


def test_random_kills(slurm, tmp_path, undisturbed, faults):
    """`SILODP_KILLS` kills (20) of jobs, their processes, nodes and Snakemake, at moments from `SILODP_SEED`."""
    print(f"seed {SEED}")
    rng, kills, rounds, equal, begun = random.Random(SEED), Counter(), 0, 0, 0
    while kills.total() < KILLS:
        slurm.wait_idle()
        rebuild = Rebuild(a_checkout(tmp_path / f"run{rounds}"), slurm, *TABLES)
        with rebuild:
            # A few only, as a job is tried thrice.
            most = min(KILLS, kills.total() + 7)
            while rebuild.process.poll() is None and kills.total() < most:
                victim = strike(rng, rebuild, slurm)
                kills.update([victim] if victim else [])
            while rebuild.process.wait(600 * PATIENCE):
                begun += 1
                assert begun <= KILLS, rebuild.said.read_text()[-3000:]
                slurm.wait_idle()
                rebuild.unlock()
                rebuild.start()
        rounds += 1
        equal += contents(rebuild.folder / "results" / "faults") == undisturbed
        print(f"{kills.total()} kills, {equal} of {rounds} rebuilds equal", flush=True)
    words = ", ".join(f"{number} {victim}" for victim, number in sorted(kills.items()))
    happened = f"{words}; seed {SEED}; Snakemake gave up and was started again {begun} times"
    faults.append(Fault("random kills", happened, f"what was at work, in {rounds} rebuilds", equal == rounds))
    assert equal == rounds


def test_the_smoke_rebuild_is_the_same_through_slurm(slurm, tmp_path, faults):
    """All rules, by the command that `make smoke PROFILE=workflow/profiles/slurm` runs."""
    folders = {}
    for profile in ("workflow/profiles/default", PROFILE):
        folders[profile] = tmp_path / Path(profile).name
        folders[profile].mkdir()
        checkout(folders[profile])
        command = [sys.executable, "-m", "silodp.cli", "rebuild", "config/smoke.yaml", "--profile", profile]
        more = ("--", *QUICK) if profile == PROFILE else ("--cores", "2")
        for again in (False, True):
            done = subprocess.run(
                [*command, *more],
                cwd=folders[profile],
                env=slurm.environment() | environment() | {"SLURM_CONF": str(slurm.conf)},
                capture_output=True,
                text=True,
                timeout=600 * PATIENCE,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            assert ("Nothing to be done" in done.stdout + done.stderr) == again
    local, through = (contents(folder / "results" / "smoke") for folder in folders.values())
    sent = {job.asks.split("_wildcards_")[0].removeprefix("rule_") for job in slurm.jobs()}
    assert {"partition", "train", "train_chosen", "privacy", "audit_experiment"} <= sent
    assert not {rule for rule in sent if rule in local_rules() or rule.startswith("figure_")}
    assert {name for name in through if through[name] != local.get(name)} == set()
    assert set(through) == set(local)
    faults.insert(0, Fault("none", "the smoke rebuild, all rules", "nothing", True))


def test_a_file_of_ones_own_is_the_same_through_slurm(slurm, tmp_path, faults):
    folders = [tmp_path / name for name in ("here", "there")]
    for folder in folders:
        folder.mkdir()
        hospitals(folder)
    here, there = folders
    done = run(here, *TARGETS, *OWN)
    assert done.returncode == 0, done.stderr[-3000:]
    slurm.wait_idle()
    with Rebuild(there, slurm, *TARGETS, *OWN) as rebuild:
        rebuild.finish(600)
    local, through = (contents(folder / "results" / "patients") for folder in folders)
    assert {"tables/patients.csv", "privacy/patients.csv", MODEL} <= set(through)
    equal = local == through
    faults.insert(0, Fault("none, on a file of one's own", "tables and a model", "nothing", equal))
    assert equal
