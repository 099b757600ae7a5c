"""The commands of finished runs: provenance, crate, report, publish, comparisons, compare."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from silodp.cli.options import PATH, as_json, command, job_command, output, run_file, several
from silodp.config.errors import ConfigError, project_root
from silodp.config.loading import PLUGIN_COPIES
from silodp.experiments.validation import load
from silodp.files import REPORTED_COLUMNS, read_csv, read_table, write_csv, write_text
from silodp.report.page.build import build
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.models import PairedDifference
from silodp.verdicts.comparisons import compare as paired
from silodp.verdicts.comparisons import headline
from silodp.workflow import crate as crates
from silodp.workflow import provenance as records
from silodp.workflow.digests import checksum
from silodp.workflow.publishing import publish as copy


@command(epilog="Example: silodp publish results/paper")
@click.argument("folders", metavar="FOLDER...", type=PATH, nargs=-1, required=True)
@click.option("--output", type=PATH, default="results/published", help="Folder to write.", show_default=True)
@click.option("--beside", is_flag=True, help="Keep experiments of other runs that are published there.")
def publish(folders: Sequence[Path], output: Path, beside: bool) -> None:
    """Copy tables, figures and provenance of finished runs, as in results/paper, to a folder that is committed."""
    copy(folders, output, beside=beside)


@job_command()
@click.argument("reported", metavar="CSV...", type=PATH, nargs=-1, required=True)
@output
def comparisons(reported: Sequence[Path], output: Path) -> None:
    """Compare SPIDER, minibatch SGD and local SGD in pairs in every experiment, with the claims' tolerances."""
    tolerances: dict[frozenset[str], float] = {}
    for claim in load_claims():
        if isinstance(claim.statistic, PairedDifference):
            for pair in claim.statistic.pairs:
                both = frozenset((pair.first, pair.second))
                # The strictest that a claim states about the pair.
                if pair.tolerance > 0:
                    tolerances[both] = min(pair.tolerance, tolerances.get(both, pair.tolerance))
    write_csv(headline({file.stem: read_table(file, REPORTED_COLUMNS) for file in reported}, tolerances), output)


@command(epilog="Example: silodp compare results/published/reported/mnist_mlp.csv spider minibatch_sgd")
@click.argument("reported", metavar="CSV", type=PATH)
@click.argument("first")
@click.argument("second")
@click.option("--confidence", type=float, default=0.95, help="Of the interval.", show_default=True)
@click.option("--output", type=PATH, help="CSV file to write; without one the table is printed.")
@as_json
def compare(reported: Path, first: str, second: str, confidence: float, output: Path | None, as_json: bool) -> None:
    """Compare the test errors of two algorithms trial by trial: difference, interval, and which is better.

    One row for each reading, (M, R) and epsilon. local_sgd:non_private is the algorithm without noise.
    """
    rows = paired(read_csv(reported, REPORTED_COLUMNS), first, second, confidence)
    if output:
        write_csv(rows, output)
    elif as_json:
        print(rows.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
    else:
        print(rows.drop(columns="experiment").to_string(index=False, float_format=lambda value: f"{value:.4g}"))


@job_command()
@run_file
@several("--listings", type=PATH, help="CSV files that `silodp fetch --listing` wrote.")
@click.option("--output", type=PATH, required=True, help="provenance.json; options and plug-ins are copied beside it.")
def provenance(run_file: Path, listings: Sequence[Path], output: Path) -> None:
    """Record what a run was made from: code, lock, configuration, data, machine."""
    resolved = load(run_file)
    hashes: dict[str, str] = {}
    for path in listings:
        rows = read_csv(path, ("file", "checksum"))
        hashes |= {row.file: row.checksum for row in rows.itertuples()}
    for config in resolved.experiments.values():
        if not isinstance(config.dataset, str):
            hashes[Path(config.dataset.file).name] = f"sha256:{checksum(Path(config.dataset.file))}"
    # Committed files hold no credentials of a mirror.
    options, folder = records.recordable(resolved.dump(), project_root()), output.parent
    write_text(json.dumps(options, indent=1, sort_keys=True) + "\n", folder / "config.json")
    for plugin in resolved.plugins:
        write_text(plugin.read_text(encoding="utf-8"), folder / PLUGIN_COPIES / plugin.name)
    records.write(output, records.collect(options, hashes, folder, project_root()))


@job_command()
@click.argument("folder", type=PATH)
def crate(folder: Path) -> None:
    """Write the manifest of a finished run: an RO-Crate with its inputs, its outputs and every checksum."""
    crates.renew(folder)


@job_command()
@click.argument("folder", type=PATH)
@output
def report(folder: Path, output: Path) -> None:
    """Build the self-contained report page of the run in FOLDER."""
    if not folder.is_dir():
        raise ConfigError(f"command line: folder: {os.fspath(folder)!r}: must be a run's results folder")
    build(folder, output)
