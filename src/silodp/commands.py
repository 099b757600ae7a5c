"""Subcommands of the workflow: fetch, partition, train, select, privacy, table, figure, provenance, report, config."""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from silodp import config as configuration
from silodp.config import ConfigError, Resolved
from silodp.config_models import Experiment
from silodp.dag import Plan, slug
from silodp.results import PRIVACY_COLUMNS, PRIVACY_EXTRA, TABLE_COLUMNS, write_csv, write_parquet, write_text

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("fetch", fetch, "get the files of a data set")
    sub.add_argument("dataset", nargs="+", help="name of a data set; `all` for every one")
    sub.add_argument("--cache", help="folder the files go to (default: SILODP_DATA_CACHE, else the user's cache)")
    sub.add_argument("--mirror", help="folder or address tried first (default: SILODP_DATA_MIRROR)")
    sub.add_argument("--listing", type=Path, help="also write the files' names and checksums to this CSV file")

    sub = experiment_command(add, "partition", partition, "cut an experiment's records into silos")
    sub.add_argument("--reading", default="default", help="name of the reading")
    sub.add_argument("--output", type=Path, required=True, help="folder for the index and its summaries")

    sub = experiment_command(add, "train", train, "train one algorithm over its grid")
    sub.add_argument("algorithm")
    sub.add_argument("setting", help="as in M12_R25")
    sub.add_argument("--reading", default="default", help="name of the reading")
    sub.add_argument("--trials", default="all", help="as in 0-4, or all")
    sub.add_argument("--silos", type=Path, required=True, help="folder that `silodp partition` wrote")
    sub.add_argument("--chosen", type=Path, help="train only the points that `silodp select` chose, with fresh noise")
    sub.add_argument("--threads", type=int, help="default: the run file's")
    sub.add_argument("--output", type=Path, required=True, help="parquet file")

    sub = experiment_command(add, "select", select, "choose points by training loss")
    sub.add_argument("--trials", type=Path, nargs="+", required=True, help="parquet files of the grid runs")
    sub.add_argument("--output", type=Path, required=True, help="parquet file")

    sub = experiment_command(add, "privacy", privacy, "delivered epsilon of every chosen private point")
    sub.add_argument("--chosen", type=Path, required=True, help="parquet file that `silodp select` wrote")
    sub.add_argument("--silos", type=Path, required=True, help="folder that `silodp partition` wrote")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")

    sub = experiment_command(add, "table", table, "aggregate trials into the experiment's table")
    sub.add_argument("--grid", type=Path, nargs="+", required=True, help="parquet files of the grid runs")
    sub.add_argument("--fresh", type=Path, nargs="*", default=[], help="parquet files of the fresh runs")
    sub.add_argument("--chosen", type=Path, required=True, help="parquet file that `silodp select` wrote")
    sub.add_argument("--privacy", type=Path, required=True, help="CSV file that `silodp privacy` wrote")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")
    sub.add_argument("--reported", type=Path, help="CSV file of the trials behind the default rows")

    sub = experiment_command(add, "figure", figure, "draw figures from a table")
    sub.add_argument("names", metavar="name", nargs="+", help="names of figures, as in wbcd_mlp_M2_R25")
    sub.add_argument("--table", type=Path, required=True, help="CSV file that `silodp table` wrote")
    sub.add_argument(
        "--silos", type=Path, help="folder of the experiment's partitions, for the heterogeneity in titles"
    )
    sub.add_argument("--folder", type=Path, required=True, help="each figure is written there, as PDF and PNG")

    sub = add("rebuild", rebuild, "run the workflow of a run file")
    sub.add_argument("run_file", type=Path, help="as in config/default.yaml")
    sub.add_argument("--cores", help="cores used at once (default: the profile's, which is all for a local run)")
    sub.add_argument("--profile", default="workflow/profiles/default", help="Snakemake profile")
    sub.set_defaults(arguments=[])
    sub.epilog = "What follows -- goes to Snakemake: targets and its options, as in `-- figures --dry-run`."

    sub = add("merge-privacy", merge_privacy, "one privacy.csv from the experiments' privacy tables")
    sub.add_argument("files", type=Path, nargs="+", help="CSV files that `silodp privacy` wrote")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")

    sub = add("provenance", provenance, "record what a run was made from")
    sub.add_argument("run_file", type=Path)
    sub.add_argument(
        "--listings", type=Path, nargs="*", default=[], help="CSV files that `silodp fetch --listing` wrote"
    )
    sub.add_argument("--output", type=Path, required=True, help="provenance.json; config.json is written beside it")

    sub = add("report", report, "build the report page of a run")
    sub.add_argument("folder", type=Path, help="the run's results folder")
    sub.add_argument("--output", type=Path, required=True, help="HTML file")

    sub = add("config", config, "check a run file, or print the schema or the reference of all keys")
    sub.add_argument("action", choices=["check", "schema", "reference"])
    sub.add_argument("run_file", type=Path, nargs="?", help="the file to check")


def rebuild(options: argparse.Namespace) -> int:
    """Run the workflow of a run file: what is finished stays, what is missing or stale is made.

    A lock that dies with its process keeps two rebuilds of a folder apart; a killed one is simply started again.
    """
    from filelock import FileLock, Timeout

    configuration.load(options.run_file)
    folder = Path(".snakemake")
    folder.mkdir(exist_ok=True)
    lock = FileLock(folder / "silodp-rebuild.lock")
    try:
        with lock.acquire(blocking=False):
            bin_folder = str(Path(sys.executable).parent)
            environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"}
            # Threads of BLAS and OpenMP would multiply with jobs side by side; the run file sets a job's threads.
            environment.setdefault("OMP_NUM_THREADS", "1")
            # First, as it takes all words up to the next option: targets would be taken for configuration files.
            command = [sys.executable, "-m", "snakemake", "--configfile", os.fspath(options.run_file)]
            command += ["--profile", options.profile]
            # On a cluster this bounds all jobs together, so it is passed on only where it is asked for.
            command += ["--cores", options.cores] if options.cores else []
            command += ["--nolock", *options.arguments]
            return subprocess.call(command, env=environment)
    except Timeout:
        raise ConfigError(
            "command line: rebuild: another rebuild is running in this folder: wait for its end"
        ) from None


def experiment_command(add: Callable, name: str, function: Callable, text: str) -> argparse.ArgumentParser:
    sub = add(name, function, text)
    sub.add_argument("run_file", type=Path, help="as in config/default.yaml")
    sub.add_argument("experiment", help="an experiment of the run file")
    return sub


def planned(options: argparse.Namespace) -> tuple[Resolved, Plan]:
    resolved = configuration.load(options.run_file)
    if options.experiment not in resolved.experiments:
        known = ", ".join(resolved.experiments)
        raise ConfigError(
            f"{options.run_file}: experiments.{options.experiment}: not in this run: must be one of {known}"
        )
    return resolved, Plan(resolved)


def _among(kind: str, value: str, allowed: Iterable[str]) -> str:
    allowed = list(allowed)
    if value not in allowed:
        raise ConfigError(f"command line: {kind}: {value!r}: must be one of {', '.join(allowed)}")
    return value


def fetch(options: argparse.Namespace) -> None:
    """Get the files of data sets into the cache, from a mirror or the official address, and check their SHA-256."""
    from silodp.datasets import DATASETS
    from silodp.datasets.fetch import fetch as get
    from silodp.datasets.sources import sources

    names = list(DATASETS) if options.dataset == ["all"] else options.dataset
    rows = []
    for name in names:
        _among("dataset", name, DATASETS)
        paths = get(name, cache=options.cache, mirror=options.mirror, progress=not options.quiet)
        log.info(
            "%s: %s",
            name,
            f"{len(paths)} files in {paths[0].parent}" if paths else "ships with scikit-learn, nothing to fetch",
        )
        if paths:
            files = sources(name).files
            rows += [{"dataset": name, "file": source.file, "checksum": source.digest} for source in files]
    if options.listing:
        write_csv(pd.DataFrame(rows, columns=["dataset", "file", "checksum"]), options.listing)


def partition(options: argparse.Namespace) -> None:
    """Cut an experiment's records into silos, one partition a trial, with label counts and heterogeneity."""
    from silodp.silos import write_partition
    from silodp.stored_records import write_records
    from silodp.trialdata import load_dataset, partition_and_measure

    resolved, plan = planned(options)
    experiment = resolved.experiments[options.experiment]
    label = plan.readings(options.experiment)[_among("reading", options.reading, plan.readings(options.experiment))]
    data = load_dataset(experiment, resolved.run)
    parts, measured, kept = partition_and_measure(
        options.experiment, experiment, experiment.variants()[label], resolved.run, data
    )
    write_records(options.output, kept)
    write_partition(options.output, parts, y=data.y, heterogeneity=measured)


def train(options: argparse.Namespace) -> None:
    """Train one algorithm in one setting over its grid, or at chosen points, for some trials."""
    import torch
    from tqdm import tqdm

    from silodp.guard import unproven_task
    from silodp.models import kernels
    from silodp.silos import read_partition
    from silodp.training import run_trials
    from silodp.trialdata import stored_trials

    resolved, plan = planned(options)
    name, experiment = options.experiment, resolved.experiments[options.experiment]
    _among("algorithm", options.algorithm, experiment.algorithms)
    _among("setting", options.setting, [setting.name for setting in experiment.settings])
    _among("reading", options.reading, plan.readings(name))
    device = experiment.device or resolved.run.device
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"{options.run_file}: device: {device!r}: this machine has no CUDA device: must be cpu")
    task = plan.task(name, options.algorithm, options.setting, options.reading)
    trials = _trials(options.trials, experiment.trials)
    found = unproven_task(task, [len(records) for records in read_partition(options.silos, trials[0]).train])
    if found is not None:
        raise ConfigError(f"{options.run_file}: experiments.{name}.allow_unproven: False: {found}")
    kernels.use_threads(options.threads or resolved.run.threads)
    points = None
    if options.chosen:
        chosen = pd.read_parquet(options.chosen)
        own = (chosen["algorithm"] == task.algorithm) & (chosen["reading"] == task.label)
        points = chosen[own & (chosen["M"] == task.setting.M) & (chosen["R"] == task.setting.R)]

    def progress(numbers: Iterable[int]) -> Iterable[int]:
        bar = tqdm(
            numbers,
            desc=f"{name} {options.algorithm} {options.setting}",
            unit="trial",
            disable=True if options.quiet else None,
        )
        for number in bar:
            log.info("%s %s %s %s: trial %d", name, options.algorithm, options.setting, options.reading, number)
            yield number

    purpose = "fresh" if options.chosen else "grid"
    prepared = stored_trials(options.silos, experiment, task.readings, resolved.run)
    result = run_trials(task, resolved.run, prepared, trials, points, purpose, progress)
    write_parquet(result, options.output)


def _trials(text: str, total: int) -> range:
    if text == "all":
        return range(total)
    first, _, last = text.partition("-")
    if not (first.isdigit() and (last or first).isdigit()) or not 0 <= int(first) <= int(last or first) < total:
        raise ConfigError(f"command line: --trials: {text!r}: must be all, or as in 0-4 with numbers below {total}")
    return range(int(first), int(last or first) + 1)


def _read(paths: Iterable[Path]) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)


def select(options: argparse.Namespace) -> None:
    """Choose, for every algorithm, setting and epsilon, the point of the grid with the smallest training loss."""
    from silodp.tuning import select as choose

    resolved, _ = planned(options)
    write_parquet(choose(_read(options.trials), resolved.experiments[options.experiment]), options.output)


def privacy(options: argparse.Namespace) -> None:
    """Delivered epsilon of every private point that was chosen, beside the claimed one."""
    from silodp.privacy_table import privacy_rows
    from silodp.silos import read_partition

    _, plan = planned(options)
    sizes = [len(records) for records in read_partition(options.silos, 0).train]
    write_csv(privacy_rows(plan, options.experiment, pd.read_parquet(options.chosen), sizes), options.output)


def merge_privacy(options: argparse.Namespace) -> None:
    """Put the experiments' privacy tables together: one row for each private algorithm, setting and epsilon."""
    rows = pd.concat([pd.read_csv(path, keep_default_na=False) for path in options.files], ignore_index=True)
    rows = rows[rows["reported"].astype(str) == "True"]
    write_csv(rows[[*PRIVACY_COLUMNS, *PRIVACY_EXTRA]], options.output)


def table(options: argparse.Namespace) -> None:
    """Aggregate trials into the experiment's table, SPIDER's best-of-two included."""
    from silodp.privacy_table import delivered_lookup
    from silodp.tuning import reported
    from silodp.tuning import table as aggregate

    resolved, _ = planned(options)
    fresh = _read(options.fresh) if options.fresh else None
    delivered = delivered_lookup(pd.read_csv(options.privacy, keep_default_na=False))
    experiment = resolved.experiments[options.experiment]
    grid, chosen = _read(options.grid), pd.read_parquet(options.chosen)
    write_csv(aggregate(grid, fresh, chosen, experiment, delivered), options.output)
    if options.reported:
        write_csv(reported(grid, fresh, chosen, experiment), options.reported)


def figure(options: argparse.Namespace) -> None:
    """Draw figures from a table, as PDF and PNG."""
    from silodp.figures import FIGURES, save
    from silodp.report_numbers import read_table

    resolved, plan = planned(options)
    known = plan.figure_names(options.experiment)
    for name in options.names:
        _among("name", name, known)
    table = read_table(options.table, TABLE_COLUMNS)
    table["reading"] = table["reading"].fillna("")
    experiment = resolved.experiments[options.experiment]
    for name in options.names:
        shows = known[name]
        # Calibrated noise stands beside the paper's.
        readings = {shows["reading"]} | ({""} if shows["kind"] == "calibrated_vs_paper" else set())
        rows = table[(table["M"] == shows["M"]) & (table["R"] == shows["R"]) & table["reading"].isin(readings)]
        silos = plan.partitioned_as(options.experiment, slug(shows["reading"]))
        measured = options.silos / silos / "heterogeneity.csv" if options.silos else None
        title = {"title": _title(experiment, shows, measured)}
        if shows["kind"] != "delivered_vs_claimed":
            title["ylabel"] = (
                "test RMSE relative to the training mean" if experiment.label == "target" else "test error"
            )
        save(FIGURES[shows["kind"]](rows, **title), options.folder / name)


def _title(experiment: Experiment, shows: dict, heterogeneity: Path | None) -> str:
    reading = f", {shows['reading']}" if shows["reading"] else ""
    title = f"{experiment.title}\nM = {shows['M']}, R = {shows['R']}{reading}"
    if heterogeneity and experiment.model.name in ("linear", "logistic"):
        title += _heterogeneity_note(pd.read_csv(heterogeneity))
    readings = experiment.variants().get(shows["reading"], experiment.readings)
    unproven = readings.clipping != "record" or readings.clip_rule != "grid"
    return title + (" – not private as claimed" if unproven else "")


def _heterogeneity_note(measured: pd.DataFrame) -> str:
    """υ*² as the convex paper's figures have it, the mean over trials; it needs a minimiser in every trial."""
    return f", υ*² = {measured['value'].mean():.3g}" if measured["converged"].all() else ", υ*²: no minimiser"


def provenance(options: argparse.Namespace) -> None:
    """Record what a run was made from: code, lock, configuration, data, machine."""
    from silodp import provenance as records

    resolved = configuration.load(options.run_file)
    hashes: dict[str, str] = {}
    for path in options.listings:
        rows = pd.read_csv(path)
        hashes |= {row.file: row.checksum for row in rows.itertuples()}
    root = configuration.project_root()
    resolved_config = resolved.dump()
    record = records.collect(
        resolved.run.run,
        resolved_config,
        root=root,
        data_hashes=hashes,
        lock=root / "requirements.lock",
        device=resolved.run.device,
        finished=datetime.now(UTC),
    )
    write_text(json.dumps(resolved_config, indent=1, sort_keys=True) + "\n", options.output.parent / "config.json")
    records.write(options.output, record)


def report(options: argparse.Namespace) -> None:
    """Build the self-contained report page of a run."""
    from silodp.report import build

    if not options.folder.is_dir():
        raise ConfigError(f"command line: folder: {os.fspath(options.folder)!r}: must be a run's results folder")
    build(options.folder, options.output)


def config(options: argparse.Namespace) -> None:
    """Check a run file, or print the JSON schema or the reference page of all keys."""
    from silodp import config_pages as pages

    if options.action == "schema":
        print(pages.schema_text(), end="")
    elif options.action == "reference":
        print(pages.reference_text(), end="")
    else:
        if options.run_file is None:
            raise ConfigError("command line: run_file: missing: must name the file to check")
        resolved = configuration.load(options.run_file)
        log.info("%s: %d experiments, all checks passed", options.run_file, len(resolved.experiments))
