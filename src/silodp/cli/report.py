"""Subcommands of finished runs: provenance, crate, report, publish, compare."""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

from silodp.config.errors import ConfigError, project_root
from silodp.config.loading import PLUGIN_COPIES
from silodp.experiments.validation import load
from silodp.files import REPORTED_COLUMNS, read_csv, read_table, write_csv, write_text


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("provenance", provenance, "record what a run was made from")
    sub.add_argument("run_file", type=Path)
    sub.add_argument(
        "--listings", type=Path, nargs="*", default=[], help="CSV files that `silodp fetch --listing` wrote"
    )
    sub.add_argument("--output", type=Path, required=True, help="provenance.json; options and workflow go beside it")

    sub = add("crate", crate, "describe a finished run as an RO-Crate (ro-crate-metadata.json)")
    sub.add_argument("folder", type=Path, help="the run's results folder")

    sub = add("report", report, "build the report page of a run")
    sub.add_argument("folder", type=Path, help="the run's results folder")
    sub.add_argument("--output", type=Path, required=True, help="HTML file")

    sub = add("publish", publish, "copy what is kept of finished runs into a folder that is committed")
    sub.add_argument("folders", metavar="folder", type=Path, nargs="+", help="results folder, as in results/paper")
    sub.add_argument("--output", type=Path, default=Path("results/published"), help="default results/published")
    sub.add_argument("--beside", action="store_true", help="keep experiments of other runs that are published there")

    sub = add("comparisons", comparisons, "the paired comparisons behind the page's first figure")
    sub.add_argument("reported", type=Path, nargs="+", help="CSV files, as in results/default/reported/wbcd_mlp.csv")
    sub.add_argument("--output", type=Path, required=True, help="CSV file; `silodp redraw` draws its figures")

    sub = add("compare", compare, "two algorithms, trial by trial")
    sub.add_argument("reported", type=Path, help="CSV file, as in results/default/reported/wbcd_mlp.csv")
    sub.add_argument("first", help="algorithm, as in spider; local_sgd:non_private is the form without noise")
    sub.add_argument("second", help="the algorithm it is set against")
    sub.add_argument("--confidence", type=float, default=0.95, help="of the interval (default 0.95)")
    sub.add_argument("--output", type=Path, help="CSV file; default: print")
    sub.add_argument("--json", action="store_true", help="print JSON")


def publish(options: argparse.Namespace) -> None:
    """Copy tables, figures and provenance of finished runs; what was in the folder before is replaced, or kept."""
    from silodp.workflow.publishing import publish as copy

    copy(options.folders, options.output, beside=options.beside)


def comparisons(options: argparse.Namespace) -> None:
    """Paired differences of SPIDER, minibatch SGD and local SGD in every experiment, with the claims' tolerances."""
    from silodp.verdicts.claims.loading import load_claims
    from silodp.verdicts.claims.models import PairedDifference
    from silodp.verdicts.comparisons import headline

    tolerances: dict[frozenset[str], float] = {}
    for claim in load_claims():
        if isinstance(claim.statistic, PairedDifference):
            for pair in claim.statistic.pairs:
                both = frozenset((pair.first, pair.second))
                # The strictest that a claim states about the pair.
                if pair.tolerance > 0:
                    tolerances[both] = min(pair.tolerance, tolerances.get(both, pair.tolerance))
    tables = {file.stem: read_table(file, REPORTED_COLUMNS) for file in options.reported}
    write_csv(headline(tables, tolerances), options.output)


def compare(options: argparse.Namespace) -> None:
    """Paired differences of test error, with an interval and who is better, for each reading, (M, R) and epsilon."""
    from silodp.verdicts.comparisons import compare as paired

    found = paired(read_csv(options.reported, REPORTED_COLUMNS), options.first, options.second, options.confidence)
    if options.output:
        write_csv(found, options.output)
    elif options.json:
        print(found.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
    else:
        print(found.drop(columns="experiment").to_string(index=False, float_format=lambda value: f"{value:.4g}"))


def provenance(options: argparse.Namespace) -> None:
    """Record what a run was made from: code, lock, configuration, data, machine."""
    from silodp.workflow import invocations
    from silodp.workflow import provenance as records
    from silodp.workflow.digests import checksum

    resolved = load(options.run_file)
    hashes: dict[str, str] = {}
    for path in options.listings:
        rows = read_csv(path, ("file", "checksum"))
        hashes |= {row.file: row.checksum for row in rows.itertuples()}
    for one in resolved.experiments.values():
        if not isinstance(one.dataset, str):
            hashes[Path(one.dataset.file).name] = f"sha256:{checksum(Path(one.dataset.file))}"
    root = project_root()
    # What is committed holds no credentials of a mirror.
    resolved_config = records.recordable(resolved.dump(), root)
    record = records.collect(
        resolved.run.run,
        resolved_config,
        root=root,
        data_hashes=hashes,
        lock=root / "requirements.lock",
        device=resolved.run.device,
        invocations=invocations.done(options.output.parent),
    )
    write_text(json.dumps(resolved_config, indent=1, sort_keys=True) + "\n", options.output.parent / "config.json")
    for plugin in resolved.plugins:
        write_text(plugin.read_text(encoding="utf-8"), options.output.parent / PLUGIN_COPIES / plugin.name)
    for file in (root / "Snakefile", *sorted((root / "workflow" / "rules").glob("*.smk"))):
        write_text(file.read_text(encoding="utf-8"), options.output.parent / "source" / file.relative_to(root))
    records.write(options.output, record)


def crate(options: argparse.Namespace) -> None:
    """Describe a finished run as an RO-Crate: its workflow, what went in, what came out."""
    from silodp.workflow.crate import write

    write(options.folder)


def report(options: argparse.Namespace) -> None:
    """Build the self-contained report page of a run."""
    from silodp.report.page.build import build

    if not options.folder.is_dir():
        raise ConfigError(f"command line: folder: {os.fspath(options.folder)!r}: must be a run's results folder")
    build(options.folder, options.output)
