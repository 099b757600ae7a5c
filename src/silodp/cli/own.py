"""The command for your own file: init."""

from pathlib import Path
from typing import Any

import click

from silodp.cli.options import COUNT, PATH, command, option_of_values
from silodp.config.errors import ConfigError, project_root
from silodp.datasets.own.own_file import OwnFile
from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.own_data import first_run_file


@command(epilog="Example: silodp init patients.csv --target readmitted --silo hospital")
@click.argument("file", type=PATH)
@click.option("--target", required=True, help="Column that is predicted.")
@click.option("--silo", help="Column that names the silo of a record.")
@click.option("--person", help="Column that names the person of a record, where persons may have several.")
@click.option(
    "--missing", type=click.Choice(("refuse", "drop", "mean")), default="refuse", help="Rule for missing values."
)
@option_of_values("--ignore", help="Columns that are not used.")
@click.option("--task", type=click.Choice(("classification", "regression")), help="Default: inferred from the target.")
@click.option("--person-limit", type=COUNT, default=20, help="Records of a person that are used.", show_default=True)
@click.option("--encoding", help="Of a text file, as in latin-1 (default: UTF-8).")
@click.option("--silos", type=COUNT, default=5, help="Silos to cut, without --silo.", show_default=True)
@click.option("--output", type=PATH, help="Run file to write (default: config/<name of the file>.yaml).")
def init(file: Path, person_limit: int, silos: int, output: Path | None, **columns: Any) -> None:
    """Describe your CSV or Parquet FILE, one record a row, and write a commented run file with safe defaults."""
    name = first_run_file.name_of(output or file)
    if (project_root() / "config" / "experiments" / f"{name}.yaml").is_file():
        name += "_own"
    output = output or Path("config") / f"{name}.yaml"
    survey = first_run_file.survey(OwnFile(file, **columns), person_limit)
    if output.exists():
        raise ConfigError(f"{output}: already exists; remove it or choose another --output")
    output.parent.mkdir(parents=True, exist_ok=True)
    write_text(first_run_file.run_file(survey, name, output, silos), output)
    try:
        load(output)
    except ConfigError:
        output.unlink()
        raise
    print(survey.text())
    print(f"{output}: written; read it, then `silodp rebuild {output}` makes results/{name}/report.html: a study")
    print(f"`silodp release {output} --algorithm minibatch_sgd --epsilon 1` then makes one model for others to have")
