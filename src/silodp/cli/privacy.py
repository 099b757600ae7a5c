"""The command `silodp privacy`."""

from pathlib import Path

import click

from silodp.cli.audit import audit_of
from silodp.cli.options import PATH, chosen, experiment, job_command, output, run_file, silos
from silodp.cli.select import CHOSEN
from silodp.experiments.privacy_table import by_round_rows, privacy_rows, with_other_epsilons
from silodp.experiments.validation import experiment_of
from silodp.files import read_parquet, write_csv
from silodp.partition.experiment_data import measure_person_spread
from silodp.partition.partition import read_partition


@job_command()
@run_file
@experiment
@chosen
@silos
@output
@click.option("--by-round", type=PATH, help="CSV file for epsilon so far, round by round; `silodp redraw` draws it.")
@click.option("--audit", type=PATH, help="CSV file for tests whether messages are made as planned.")
def privacy(
    run_file: Path, experiment: str, chosen: Path, silos: Path, output: Path, by_round: Path | None, audit: Path | None
) -> None:
    """Bound the true epsilon of every chosen private point, beside the claimed epsilon."""
    run, config = experiment_of(run_file, experiment)
    partition = read_partition(silos, 0)
    sizes, held = [len(records) for records in partition.train], measure_person_spread(config, partition)
    rows = privacy_rows(experiment, config, read_parquet(chosen, CHOSEN), sizes)
    write_csv(with_other_epsilons(rows, experiment, config, sizes, held), output)
    if by_round:
        write_csv(by_round_rows(experiment, config, sizes), by_round)
    if audit:
        write_csv(audit_of(run, experiment, config, sizes), audit)
