"""The command `silodp replicate`."""

import sys
from pathlib import Path

import click
import yaml

from silodp.cli.options import COUNT, Cores, command
from silodp.cli.run import profile, run_workflow, usable_profile
from silodp.config.errors import ConfigError, suggest_name
from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.jobs.checkins_figure_2 import checkins_figure_2
from silodp.report.figures import save
from silodp.report.figures.from_tables import figures_of
from silodp.report.paper_figures import paper_figures, replication
from silodp.workflow.cost import cost_here
from silodp.workflow.engine import results_locked
from silodp.workflow.job_digest import RunPlan


@command(epilog="Example: silodp replicate nonconvex-4 --trials 2")
@click.argument("figure", default="")
@click.option("--trials", type=COUNT, help="Fewer trials than the paper's, for a cheap look.")
@click.option("--cores", type=Cores(), help="Cores used at once (default: all).")
@profile
@click.option("--dry-run", is_flag=True, help="Show what would be done and what it costs.")
@click.pass_obj
def replicate(state: dict, figure: str, trials: int | None, cores: str | None, profile: str, dry_run: bool) -> int:
    """Train and draw one figure of a paper, and nothing else; docs/start.md has the names.

    The cost is printed first. The run's folder is results/figure-<name>; a second start keeps what is finished.
    """
    profile = usable_profile(profile)
    names = list(dict.fromkeys(panel.name for panel in paper_figures()))
    shown = replication(figure, trials)
    if shown is None:
        raise ConfigError(
            f"command line: figure: {figure!r}: must be one of {', '.join(names)}{suggest_name(figure, names)}"
        )
    # Figure 2 of the check-ins paper needs no training.
    if not shown.panels[0].experiment:
        table = Path(f"{shown.files[0]}.csv")
        if not dry_run:
            checkins_figure_2(table)
            for name, drawn in figures_of(table).items():
                save(drawn, table.parent / name)
        print(f"{shown.files[0]}.svg\n{shown.files[0]}.csv")
        return 0
    run_file = Path("results") / shown.run / "run.yaml"
    with results_locked(run_file.parent):
        write_text(yaml.safe_dump(shown.run_file(), sort_keys=False, allow_unicode=True), run_file)
    plan = RunPlan(load(run_file))
    for panel in shown.panels:
        if panel.experiment not in plan.experiments:
            raise ConfigError(f"command line: figure: {shown.name}: {panel.experiment} needs a CUDA device: none here")
        config = plan.experiments[panel.experiment]
        print(
            f"{panel.paper}, {panel.title}: {panel.experiment}, M = {panel.M}, R = {panel.R}: "
            f"{len(config.algorithms)} algorithms, {len(config.epsilons)} ε, {config.trials} trials"
        )
    print(f"cost: {cost_here(plan, cores).text()}")
    files = [f"{file}.{suffix}" for file in shown.files for suffix in ("svg", "pdf", "png")]
    if dry_run:
        print("\n".join(files))
        return 0
    sys.stdout.flush()
    code = run_workflow(run_file, profile, cores, files, state["words"])
    if code == 0:
        print("\n".join(f"{file}.png" for file in shown.files))
        for name in dict.fromkeys(panel.experiment for panel in shown.panels):
            print(f"results/{shown.run}/tables/{name}.csv")
    return code
