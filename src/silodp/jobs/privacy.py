"""Bound the true epsilon of every chosen private point."""

from pathlib import Path

from silodp.audit.audit_rows import audit_rows
from silodp.experiments.planned_rows import CHOSEN
from silodp.experiments.privacy_table import by_round_rows, privacy_rows, with_other_epsilons
from silodp.experiments.validation import experiment_of
from silodp.files import read_parquet, write_csv
from silodp.partition.experiment_data import measure_person_spread
from silodp.partition.partition import read_partition


def privacy(
    run_file: Path, experiment: str, chosen: Path, silos: Path, output: Path, by_round: Path, audit: Path
) -> None:
    """Write the true epsilon of every chosen private point beside the claim, the epsilon so far, and the audit."""
    run, config = experiment_of(run_file, experiment)
    partition = read_partition(silos, 0)
    sizes, held = [len(records) for records in partition.train], measure_person_spread(config, partition)
    rows = privacy_rows(experiment, config, read_parquet(chosen, CHOSEN), sizes)
    write_csv(with_other_epsilons(rows, experiment, config, sizes, held), output)
    write_csv(by_round_rows(experiment, config, sizes), by_round)
    write_csv(audit_rows(run, experiment, config, sizes), audit)
