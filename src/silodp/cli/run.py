"""The commands of run files: rebuild, cost."""

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from silodp.cli.options import Cores, command, run_file
from silodp.config.errors import ConfigError, project_root
from silodp.config.loading import file_and_part
from silodp.config.yaml_file import read_yaml
from silodp.experiments.validation import load
from silodp.workflow import cost as costs
from silodp.workflow import engine
from silodp.workflow.contents import is_publication
from silodp.workflow.job_digest import RunPlan
from silodp.workflow.provenance import COMMAND_VARIABLE

log = logging.getLogger("silodp")

profile = click.option("--profile", default="workflow/profiles/default", help="Snakemake profile.", show_default=True)


@command(epilog="Example: silodp cost config/default.yaml")
@run_file
@click.option("--cores", type=Cores(), help="Cores used at once (default: all).")
def cost(run_file: Path, cores: str | None) -> None:
    """Estimate a rebuild from nothing; refused, as the rebuild is, where the disk has too little free."""
    plan = RunPlan(load(run_file))
    estimate = costs.cost_here(plan, cores)
    print(estimate.text())
    costs.refuse(plan, estimate, Path.cwd())


@command(epilog="Example: silodp rebuild config/default.yaml --cores 2 -- figures --dry-run")
@run_file
@click.argument("arguments", metavar="[-- SNAKEMAKE...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--cores", type=Cores(), help="Cores used at once (default: the profile's; all for a local run).")
@profile
@click.pass_obj
def rebuild(state: dict, run_file: Path, arguments: Sequence[str], cores: str | None, profile: str) -> int:
    """Run the workflow of RUN_FILE: finished results stay, missing or stale results are made.

    Snakemake gets the words after `--`: targets and options. Run a killed rebuild again, and it goes on; only one
    rebuild at a time works in a folder. A signal ends the jobs too.
    """
    if arguments and "--" not in state["words"]:
        allowed = "must be one run file, and words for Snakemake stand behind --"
        raise ConfigError(f"command line: {arguments[0]!r}: {allowed}")
    profile = usable_profile(profile)
    plan = RunPlan(load(run_file))
    # Nothing is trained for a publication.
    if not is_publication(run_file.parent):
        estimate = costs.cost_here(plan, cores)
        log.info("%s, from nothing: %s", run_file, estimate.text())
        costs.refuse(plan, estimate, Path.cwd())
    return run_workflow(run_file, profile, cores, arguments, state["words"])


def usable_profile(profile: str) -> str:
    """The profile's folder, here or in the checkout; ConfigError where it cannot be used on this machine."""
    known = project_root() / profile
    profile = profile if Path(profile).exists() or not known.exists() else os.fspath(known)
    settings = Path(profile) / "config.yaml"
    if not settings.is_file():
        raise ConfigError(f"command line: --profile: {profile!r}: must be a folder with config.yaml")
    if read_yaml(settings).get("executor") == "slurm" and not shutil.which("sbatch"):
        raise ConfigError(f"command line: --profile: {profile!r}: needs Slurm, and this machine has no sbatch")
    return profile


def run_workflow(
    run_file: Path, profile: str, cores: str | None, arguments: Sequence[str], words: Sequence[str]
) -> int:
    """Run Snakemake on a checked run file; returns its exit code. `words` are what the user typed after `silodp`.

    Results go to this folder, whichever it is. Raises BusyError where another rebuild runs in it, ConfigError where the
    package is no checkout.
    """
    root = project_root()
    if not root.joinpath("Snakefile").is_file():
        raise ConfigError(f"command line: {root}: no Snakefile: rebuild needs a checkout of silodp")
    arguments = ["--snakefile", str(root / "Snakefile"), *arguments] if not Path("Snakefile").is_file() else arguments
    bin_folder = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    # Threads of BLAS and OpenMP would multiply with parallel jobs; the run file sets a job's threads.
    environment.setdefault("OMP_NUM_THREADS", "1")
    # `make` passes on its own command, which is what the user typed.
    environment.setdefault(COMMAND_VARIABLE, shlex.join(["silodp", *words]))
    # --configfile comes first: it takes all words up to the next option, and so would take targets.
    file, part = file_and_part(run_file)
    command = [sys.executable, "-P", "-m", "silodp.workflow.snakemake_child", "--configfile", os.fspath(file)]
    command += ["--config", f"part={part}"] if part else []
    command += ["--profile", profile]
    # On a cluster --cores limits all jobs together, so the profile decides unless the user does.
    command += ["--cores", cores] if cores else []
    return engine.run([*command, *arguments], environment)
