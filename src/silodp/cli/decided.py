"""The command of the decided tables: pilot, trials and tables of one family, each made where it is missing."""

from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd

from silodp.cli.options import PATH, among, command, option_of_values
from silodp.files import write_csv
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.decided_tables import plan_rows
from silodp.verdicts.decided_trials import make_pilot, make_trials, parts_of, read_protocol


@command(epilog="Example: silodp decided calibrated trials --experiments wbcd_certified")
@click.argument("family")
@click.argument("what", type=click.Choice(["plan", "trials"]))
@option_of_values("--experiments", help="Only these experiments (default: all of the family).")
@option_of_values("--settings", help="Only these settings, as in M25_R25.")
@click.option("--folder", type=PATH, default=Path("results/decided"), help="Folder of runs and tables.")
def decided(family: str, what: str, experiments: Sequence[str], settings: Sequence[str], folder: Path) -> None:
    """Decide a FAMILY of config/claims/decided.yaml, as docs/claims.md says: its pilot and T, or its fresh trials."""
    parts = list(parts_of(read_protocol(), family, folder))
    for name in experiments:
        among("experiment", name, dict.fromkeys(part.experiment for part in parts))
    parts = [part for part in parts if not experiments or part.experiment in experiments]
    parts = [part for part in parts if not settings or part.setting.name in settings]
    if what == "trials":
        for part in parts:
            make_trials(part)
        return
    rows = []
    for name in dict.fromkeys(data_set(part.experiment) for part in parts):
        of = [part for part in parts if data_set(part.experiment) == name]
        rows += plan_rows(of, [make_pilot(part) for part in of])
    plan = pd.DataFrame(rows)
    write_csv(plan, folder / family / f"plan_{'+'.join(plan['data_set'].unique())}.csv")
    print(plan.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
