"""Subcommands for a file of one's own: init, model."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from silodp.cli.options import experiment_command, resolved_with
from silodp.config.errors import ConfigError, project_root
from silodp.datasets.own_file import OwnFile
from silodp.experiments.first_run_file import name_of, run_file, survey
from silodp.experiments.validation import load
from silodp.federation.partition import read_partition
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA, read_csv, read_parquet, write_text

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("init", init, "a first run file for a CSV or Parquet file of your own")
    sub.add_argument("file", type=Path, help="CSV or Parquet, one record a row")
    sub.add_argument("--target", required=True, help="column that is predicted")
    sub.add_argument("--silo", help="column that says whose record it is")
    sub.add_argument("--person", help="column that says whom a record is about, where somebody may have several")
    sub.add_argument(
        "--missing", choices=("refuse", "drop", "mean"), default="refuse", help="what a missing value does"
    )
    sub.add_argument("--output", type=Path, help="default config/<name of the file>.yaml")

    sub = experiment_command(add, "model", model, "save the models at chosen points, each with its card")
    sub.add_argument("--chosen", type=Path, required=True, help="parquet file that `silodp select` wrote")
    sub.add_argument("--silos", type=Path, required=True, help="folder that `silodp partition` wrote")
    sub.add_argument("--privacy", type=Path, required=True, help="CSV file that `silodp privacy` wrote")
    sub.add_argument("--threads", type=int, help="default: the run file's")
    sub.add_argument("--folder", type=Path, required=True, help="where the models go")


def init(options: argparse.Namespace) -> None:
    """Look at a file, say what is found, and write a commented run file with safe defaults."""
    name = name_of(options.output or options.file)
    if (project_root() / "config" / "experiments" / f"{name}.yaml").is_file():
        name += "_own"
    output = options.output or Path("config") / f"{name}.yaml"
    if output.exists():
        raise ConfigError(f"{output}: is there already: must be removed, or --output name another file")
    said = OwnFile(options.file, options.target, options.silo, options.person, missing=options.missing)
    found = survey(said)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_text(run_file(found, name, output), output)
    try:
        load(output)
    except ConfigError:
        output.unlink()
        raise
    print(found.text())
    print(f"{output}: written; read it, then `silodp rebuild {output}` makes results/{name}/report.html")


def model(options: argparse.Namespace) -> None:
    """Train the chosen points of the reported runs' first trial again, and save the models with their cards."""
    from silodp.experiments.saved_models import save_models
    from silodp.federation.models.threads import use_threads
    from silodp.federation.trial_data import load_dataset

    resolved = resolved_with(options)
    config = resolved.experiments[options.experiment]
    use_threads(options.threads or resolved.run.threads)
    chosen = read_parquet(options.chosen, ("algorithm", "reading", "selection", "trial", "M", "R", "epsilon"))
    privacy = read_csv(options.privacy, (*PRIVACY_COLUMNS, *PRIVACY_EXTRA))
    part, data = read_partition(options.silos, 0), load_dataset(config, resolved.run)
    save_models(options.experiment, config, resolved.run, data, part, chosen, privacy, options.folder)
