"""The command `predict`."""

import logging
from pathlib import Path

import click

from silodp.cli.file_form import file_form
from silodp.cli.options import FILE, PATH, command
from silodp.config.errors import ConfigError
from silodp.files import write_csv
from silodp.own_data.released_model import load_model

log = logging.getLogger("silodp")


@command(epilog="Example: silodp predict federations/federation/model.npz new.csv --output predictions.csv")
@click.argument("model", type=PATH)
@click.argument("file", type=PATH)
@click.option("--output", type=FILE, required=True, help="CSV file to write.")
@click.option("--unknown", type=click.Choice(("empty", "zero")), default="empty", help="For unknown categories.")
@file_form
def predict(model: Path, file: Path, output: Path, unknown: str, **form: str | None) -> None:
    """Predict every record of FILE by a released MODEL: probabilities of classes, or values.

    A federation's model does not know how a silo writes its file: --separator and the options below it say so.

    A row with a category that the model does not know is empty; `--unknown zero` takes it for none of those known.
    """
    try:
        released = load_model(model).in_form(**{key: value for key, value in form.items() if value is not None})
        frame = released.read_records(file)
        table = released.predict(frame, unknown, file)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    for note in frame.attrs["notes"]:
        log.warning("%s: %s", file, note)
    for column, count in table.attrs["unknown"].items():
        log.warning("%s: column %r: %d of %d values are unknown to the model", file, column, count, len(frame))
    for column, rows in table.attrs["cut"].items():
        where = f"{len(rows)} of {len(frame)} values are beyond the model's bounds, and are cut"
        log.warning("%s: column %r: %s (row %s)", file, column, where, ", ".join(map(str, rows[:5])))
    write_csv(table, output)
    print(f"{output}: {len(table)} predictions")
