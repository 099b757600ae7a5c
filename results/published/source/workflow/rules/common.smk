# What every workflow of a run starts with: its run file checked, its plan made. RUN_FILE and FOLDER are the Snakefile's.
# Rules take RUN_FILE by a function: in a string a brace of its path would be a wildcard.
import sys

from silodp.datasets.addresses import without_credentials
from silodp.experiments.validation import load
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.claims.loading import load_claims
from silodp.workflow.engine import JOB_VARIABLE, set_environment
from silodp.workflow.plan import Plan
from silodp.workflow.resources import gpus, growing

# A job takes the place of its shell, and ends when Snakemake does.
shell.prefix(f"{JOB_VARIABLE}=$PPID exec ")

try:
    set_environment()
    load_claims()
    PLAN = Plan(load(RUN_FILE), folder=FOLDER)
except ValueError as error:
    print(f"silodp: {without_credentials(str(error))}", file=sys.stderr)
    sys.exit(2)

if PLAN.resolved.left_out:
    print(
        f"silodp: {RUN_FILE}: left out, as they ask for a CUDA device and none is here: "
        + ", ".join(PLAN.resolved.left_out),
        file=sys.stderr,
    )


container: None


wildcard_constraints:
    experiment="|".join(PLAN.experiments),
    algorithm="[a-z0-9_]+",
    setting=r"M\d+_R\d+",
    reading=r"[^/_](?:[^/]*[^/_])?",
    trials=r"\d+-\d+",
    fresh=r"fresh(?:\d+-\d+)?",
    rung=r"\d+",
    check="|".join(CHECKS),
