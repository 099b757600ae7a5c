"""The subcommand `silodp replicate`: one figure of a paper, trained and drawn by itself."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import yaml

from silodp.cli.checkins import figure_2
from silodp.cli.parser import near
from silodp.cli.run import run_workflow
from silodp.config.errors import ConfigError, project_root
from silodp.config.experiment import Experiment
from silodp.config.loading import merge, read_experiment
from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.report.paper_figures import paper_figures
from silodp.report.replication import replication, table_text, words


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add this subcommand with `add(name, function, help)`."""
    sub = add("replicate", replicate, "one figure of a paper: trains what it needs and nothing else")
    sub.add_argument("figure", nargs="?", help="as in nonconvex-4; `silodp list figures` names all")
    sub.add_argument("--trials", type=int, help="fewer trials than the paper's, for a cheap look")
    sub.add_argument("--cores", help="cores used at once (default: all)")
    sub.add_argument("--profile", default="workflow/profiles/default", help="Snakemake profile")
    sub.add_argument("--dry-run", action="store_true", help="say what would be done and what it costs")
    sub.add_argument("--table", action="store_true", help="print docs/figures.md")


def replicate(options: argparse.Namespace) -> int:
    """Train and draw one figure of a paper, after saying what that costs.

    The run is one of its own, in results/figure-<name>; started again it keeps what is finished.
    """
    names = list(dict.fromkeys(one.name for one in paper_figures()))
    if options.table:
        print(table_text({name: _seconds(name) for name in names}), end="")
        return 0
    found = replication(options.figure or "", options.trials)
    if found is None:
        raise ConfigError(
            f"command line: figure: {options.figure!r}: must be one of {', '.join(names)}"
            + near(options.figure or "", names)
        )
    if options.trials is not None and options.trials < 1:
        raise ConfigError(f"command line: --trials: {options.trials}: must be at least 1")
    if not found.panels[0].experiment:
        if not options.dry_run:
            _formulas(found.files[0])
        print(f"{found.files[0]}.svg")
        return 0
    run_file = Path("results") / found.run / "run.yaml"
    write_text(yaml.safe_dump(found.run_file(), sort_keys=False, allow_unicode=True), run_file)
    resolved = load(run_file)
    for panel in found.panels:
        if panel.experiment not in resolved.experiments:
            raise ConfigError(
                f"command line: figure: {found.name}: {panel.experiment} asks for a CUDA device: none here"
            )
        config = resolved.experiments[panel.experiment]
        print(
            f"{panel.paper}, {panel.title}: {panel.experiment}, M = {panel.M}, R = {panel.R}: "
            f"{len(config.algorithms)} algorithms, {len(config.epsilons)} ε, {config.trials} trials"
        )
    seconds = found.seconds(resolved.experiments)
    print("cost: not known yet" if seconds is None else f"cost: about {words(seconds)} of processor time")
    files = [f"{file}.{suffix}" for file in found.files for suffix in ("svg", "pdf", "png")]
    if options.dry_run:
        print("\n".join(files))
        return 0
    sys.stdout.flush()

    code = run_workflow(run_file, options.profile, options.cores, files, options.words)
    if code == 0:
        print("\n".join(f"{file}.png" for file in found.files))
    return code


def _seconds(name: str) -> float | None:
    """Processor time of all trials of a figure; None where nothing has timed it."""
    found = replication(name)
    if found is None or not found.panels[0].experiment:
        return None
    folder = project_root() / "config" / "experiments"
    overrides = found.run_file()["experiments"]
    experiments = {
        one: Experiment.model_validate(merge(read_experiment(folder, folder / f"{one}.yaml"), own))
        for one, own in overrides.items()
    }
    return found.seconds(experiments)


def _formulas(stem: str) -> None:
    """Figure 2 of the check-ins paper, which needs no training."""
    from silodp.report.figures import save
    from silodp.report.figures.from_tables import figures_of

    table = Path(f"{stem}.csv")
    figure_2(argparse.Namespace(output=table))
    for name, figure in figures_of(table).items():
        save(figure, table.parent / name)
