# What every workflow of a run starts with: its run file checked, its plan made. RUN_FILE is the Snakefile's default,
# FOLDER where a publication lies, None for a run.
import os
import sys
import threading
from pathlib import Path

from silodp.datasets.sources import without_credentials
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.claims.claim_files import load_claims
from silodp.workflow import closure, engine, job_digest as planning
from silodp.workflow.digests import from_here, package_checksum
from silodp.workflow.written import changed_files

# A job takes the place of its shell, and ends when Snakemake does. A module of this folder stands for none of Python's.
shell.prefix(f"{engine.JOB_VARIABLE}=$PPID PYTHONSAFEPATH=1 exec ")


def refuse(text):
    print(f"silodp: {without_credentials(text)}", file=sys.stderr)
    sys.exit(2)


# Of two options --configfile Snakemake takes the last without a word.
given = [
    word
    for word in sys.argv
    if word.partition("=")[0] in ("--configfile", "--configfiles")
]
words = dict(workflow.config_settings.config)
PART = words.pop("part", None)
if max(len(given), len(workflow.configfiles)) > 1 or words:
    refuse(
        "command line: --configfile, --config: must be one run file, and of its keys part=NAME: others stand in the file"
    )
RUN_FILE = from_here((workflow.configfiles or [RUN_FILE])[0])
if PART:
    RUN_FILE = from_here(Path(RUN_FILE).with_stem(f"{Path(RUN_FILE).stem}-{PART}"))
FOLDER = FOLDER and from_here(FOLDER)
try:
    engine.set_environment()
    load_claims()
    PLAN = planning.make_plan(RUN_FILE, FOLDER, frozen=not workflow.is_main_process)
    if workflow.is_main_process:
        os.environ[planning.CODE_VARIABLE] = package_checksum(closure.ROOT)
    else:
        planning.unpack(PLAN, RUN_FILE)
except ValueError as error:
    refuse(str(error))


# Jobs that share no disk with this folder get it, and hold themselves to it.
envvars:
    planning.CODE_VARIABLE,


# A file that is not what its job wrote goes, and so is made again; while another rebuild works here nothing does.
if workflow.is_main_process and not PLAN.published:
    try:
        with engine.results_locked(Path(PLAN.folder)):
            dry = {"-n", "--dry-run", "--dryrun"} & set(sys.argv)
            what = (
                "a rebuild makes it again, which this dry run leaves out"
                if dry
                else "it is made again"
            )
            for file in changed_files(Path(PLAN.folder)):
                print(
                    f"silodp: {file}: is not what its job wrote: {what}",
                    file=sys.stderr,
                )
                if not dry:
                    file.unlink()
    except engine.BusyError:
        pass
    except ValueError as error:
        refuse(str(error))

# What jobs read: the run file as it was when the rebuild started.
FROZEN = str(planning.frozen_file(PLAN))

if PLAN.resolved.left_out:
    print(
        f"silodp: {RUN_FILE}: left out, as they ask for a CUDA device and none is here: "
        + ", ".join(PLAN.resolved.left_out),
        file=sys.stderr,
    )


def begin():
    """What comes before the first job: one rebuild at a time in a folder, and the plan that jobs hold themselves to."""
    try:
        engine.lock()
        engine.lock_results(PLAN.folder)
    except ValueError as error:
        refuse(str(error))
    planning.freeze(PLAN, RUN_FILE)


def stop_timers():
    """Cancel Snakemake's timers: each looks for ready jobs a timespan after a job's end, and would delay the exit."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


onsuccess:
    stop_timers()


onerror:
    stop_timers()


def digest_of(job):
    """The digest of a job by its wildcards."""
    return lambda wildcards: PLAN.digest_of(job, **dict(wildcards.items()))


def needs(mem_mb, minutes):
    """Memory and time of a job: twice as much at the second attempt, three times at the third."""
    return {
        "mem_mb": lambda wildcards, attempt: attempt * mem_mb,
        "runtime": lambda wildcards, attempt: attempt * minutes,
    }


def by_experiment(wildcards):
    return PLAN.gpus(wildcards.experiment)


def training(gpus):
    """What a job that trains asks for; a GPU where its experiment trains on CUDA."""
    return {**needs(PLAN.run.memory_mb, PLAN.run.runtime_minutes), "gpu": gpus}


container: None


wildcard_constraints:
    experiment="|".join(PLAN.experiments),
    algorithm="[a-z0-9_]+",
    setting=r"M\d+_R\d+",
    reading=r"[^/_](?:[^/]*[^/_])?",
    trials=r"\d+-\d+",
    rung=r"\d+",
    check="|".join(CHECKS),
