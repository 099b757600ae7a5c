"""The command of the decided tables: pilot and T, trials, tables; each made where it is missing."""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd

from silodp.cli.options import PATH, command, option_of_values
from silodp.config.errors import among, project_root
from silodp.files import read_csv, read_json, write_csv, write_text
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.claims.claim_file import Decided
from silodp.verdicts.claims.claim_files import load_claims, read_protocol
from silodp.verdicts.decided_claims import MEANS, VERDICTS, cells_of, decided_verdict, mean_rows, power_of
from silodp.verdicts.decided_tables import COLUMNS, cell_rows, gate_row, plan_rows
from silodp.verdicts.decided_trials import COPY, FamilySetting, make_trials, parts_of
from silodp.workflow.digests import checksum
from silodp.workflow.engine import results_locked
from silodp.workflow.provenance import machine


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

    plan: the pilot, T and its power (decided_power.csv). trials: the fresh trials. tables: decided.csv, gate.csv,
    decided_verdicts.csv and decided_means.csv from the settings whose trials are there.
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
            _note_machine(part)
        return
    # Trials are made side by side; a table is one command's.
    with results_locked(folder):
        _make_tables(what, protocol, parts, folder)


def _note_machine(part: FamilySetting) -> None:
    """Add this machine and the lock to those that made the part's trials."""
    file = part.trials_folder / "made_by.json"
    made = {"machine": machine(), "requirements_lock_sha256": checksum(project_root() / "requirements.lock")}
    others = read_json(file).get("runs", [])
    if made not in others and any(part.trials_folder.glob("*/trials_*.parquet")):
        write_text(json.dumps({"runs": [*others, made]}, indent=1) + "\n", file)


def _make_tables(what: str, protocol: Mapping[str, Any], parts: Sequence[FamilySetting], folder: Path) -> None:
    margins = protocol["data_sets"]
    claims = {claim.id: claim.statistic for claim in load_claims() if isinstance(claim.statistic, Decided)}
    if what == "plan":
        groups = itertools.groupby(parts, lambda part: (part.name, data_set(part.experiment)))
        rows = [row for (_, of), group in groups for row in plan_rows(list(group), margins[of]["margin"], claims)]
        write_csv(pd.DataFrame(rows), folder / "decided_power.csv")
        print(pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.3g}"))
        return
    of = [margins[data_set(part.experiment)] for part in parts]
    cells = [row for part, by in zip(parts, of, strict=True) for row in cell_rows(part, by["margin"], by["constant"])]
    gates = [gate_row(name, list(group)) for name, group in itertools.groupby(parts, lambda part: part.name)]
    power = folder / "decided_power.csv"
    planned = read_csv(power, ["claim", "all"]) if power.is_file() else None
    verdicts, means = [], mean_rows(cells)
    for name, asked in claims.items():
        verdicts.append(decided_verdict(name, asked, cells, power_of(name, planned)))
        means += mean_rows(cells_of(asked, cells), name)
    write_csv(pd.DataFrame(cells).reindex(columns=COLUMNS), folder / "decided.csv")
    write_csv(pd.DataFrame(gates), folder / "gate.csv")
    write_csv(pd.DataFrame(verdicts)[VERDICTS], folder / "decided_verdicts.csv")
    write_csv(pd.DataFrame(means, columns=MEANS), folder / "decided_means.csv")
