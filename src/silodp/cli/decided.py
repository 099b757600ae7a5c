"""The command of the decided tables: pilot and T, trials, tables; each made where it is missing."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd

from silodp.cli.options import PATH, among, command, option_of_values
from silodp.files import write_csv
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.decided_claims import decided_verdicts
from silodp.verdicts.decided_tables import COLUMNS, cell_rows, gate_row, plan_rows
from silodp.verdicts.decided_trials import COPY, Part, make_trials, parts_of, read_protocol
from silodp.workflow.engine import results_locked


@command(epilog="Example: silodp decided trials calibrated --experiments wbcd_certified")
@click.argument("what", type=click.Choice(["plan", "trials", "tables"]))
@click.argument("names", nargs=-1, metavar="[FAMILY...]")
@option_of_values("--experiments", help="Only these experiments (default: all of the families).")
@option_of_values("--settings", help="Only these settings, as in M25_R25.")
@option_of_values("--sides", help="trials: only these sides, as in spider.")
@click.option("--folder", type=PATH, default=Path("results/decided"), help="Folder of runs and tables.")
def decided(
    what: str,
    names: Sequence[str],
    experiments: Sequence[str],
    settings: Sequence[str],
    sides: Sequence[str],
    folder: Path,
) -> None:
    """Decide pairs of algorithms in families of config/claims/decided.yaml (default: all), as docs/claims.md says.

    plan: the pilot, T and its power (decided_power.csv). trials: the fresh trials. tables: decided.csv, gate.csv and
    decided_verdicts.csv from the settings whose trials are there.
    """
    protocol = read_protocol()
    for name in names:
        among("family", name, protocol["families"])
    parts = [part for name in names or protocol["families"] for part in parts_of(protocol, name, folder)]
    for name in experiments:
        among("experiment", name, dict.fromkeys(part.experiment for part in parts))
    parts = [part for part in parts if part.experiment in (experiments or [part.experiment])]
    parts = [part for part in parts if part.setting.name in (settings or [part.setting.name])]
    if what == "trials":
        for part in parts:
            for side in sides or [*part.sides(), COPY]:
                make_trials(part, side)
        return
    # Trials are made side by side; a table is one command's.
    with results_locked(folder):
        _make_tables(what, protocol, parts, folder)


def _make_tables(what: str, protocol: Mapping[str, Any], parts: Sequence[Part], folder: Path) -> None:
    margins = protocol["data_sets"]
    if what == "plan":
        groups = itertools.groupby(parts, lambda part: (part.name, data_set(part.experiment)))
        rows = [row for (_, of), group in groups for row in plan_rows(list(group), margins[of]["margin"])]
        write_csv(pd.DataFrame(rows), folder / "decided_power.csv")
        print(pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.3g}"))
        return
    of = [margins[data_set(part.experiment)] for part in parts]
    cells = [row for part, by in zip(parts, of, strict=True) for row in cell_rows(part, by["margin"], by["constant"])]
    gates = [gate_row(name, list(group)) for name, group in itertools.groupby(parts, lambda part: part.name)]
    verdicts = [{"claim": name, **decided_verdicts(claim, cells)} for name, claim in protocol["claims"].items()]
    write_csv(pd.DataFrame(cells).reindex(columns=COLUMNS), folder / "decided.csv")
    write_csv(pd.DataFrame(gates), folder / "gate.csv")
    write_csv(pd.DataFrame(verdicts), folder / "decided_verdicts.csv")
