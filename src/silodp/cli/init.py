"""The command for your own file: init."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from silodp.cli.file_form import file_form
from silodp.cli.options import COUNT, PATH, command, option_of_values
from silodp.config.errors import ConfigError, project_root
from silodp.config.loading import composed, find_experiment
from silodp.datasets.own.guessing import Wishes
from silodp.datasets.own.schema import TYPES
from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.own_data import first_federation, first_run_file

_FORM = ("separator", "encoding", "decimal", "thousands", "units_row", "last_row")


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
@file_form
@click.option("--units-row", is_flag=True, default=None, help="Row 1 holds units.")
@click.option("--last-row", type=COUNT, help="Last row that is a record.")
@option_of_values("--missing-word", help="COLUMN=WORD: a word that stands for a missing value.")
@option_of_values("--type", help=f"COLUMN=TYPE: {', '.join(TYPES)}.")
@click.option("--silos", type=COUNT, default=5, help="Silos to cut, without --silo.", show_default=True)
@click.option("--output", type=PATH, help="Run file to write (default: config/<name of the file>.yaml).")
@click.option("--federation", is_flag=True, help="Draft a federation in the folder --output instead of a run file.")
@click.option("--name", help="With --federation: what the silo of FILE is called (default: as FILE).")
def init(
    file: Path,
    federation: bool,
    name: str | None,
    output: Path | None,
    silos: int,
    person_limit: int,
    **said: Any,
) -> None:
    """Describe your CSV or Parquet FILE, one record a row, and write a commented run file with safe defaults.

    With --federation FILE is that of a silo, or with --silo of a curator who holds all, and the draft is for
    `silodp silo` and `silodp federate`.
    """
    form = {key: value for key in _FORM if (value := said.pop(key)) is not None}
    # As the header's names are read, however an accent was typed.
    said |= {key: composed(said[key]) for key in ("target", "silo", "person")}
    said["ignore"] = tuple(map(composed, said["ignore"]))
    types, words = _pairs("--type", said.pop("type")), _pairs("--missing-word", said.pop("missing_word"))
    if wrong := [f"{name}={kind[-1]}" for name, kind in types.items() if kind[-1] not in TYPES]:
        raise ConfigError(f"command line: --type: {wrong[0]}: must be COLUMN= and one of {', '.join(TYPES)}")
    more: dict[str, Any] = {
        "form": form,
        "types": {name: kinds[-1] for name, kinds in types.items()},
        "missing_words": words,
    }
    wishes = Wishes(**said, **more)
    if federation:
        survey = first_run_file.survey(file, wishes)
        output = output or Path("federation")
        blanks = first_federation.write_federation(survey, output, name or "")
        print(survey.text())
        print(f"{output}: written; read federation.yaml. Still blank: {blanks}")
        return
    if name is not None:
        raise ConfigError(f"command line: --name: {name}: must be left out without --federation")
    name = first_run_file.name_of(output or file)
    if find_experiment(project_root() / "config" / "experiments", name):
        name += "_own"
    output = output or Path("config") / f"{name}.yaml"
    survey = first_run_file.survey(file, wishes, person_limit)
    _refuse_existing(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    _write_checked(first_run_file.run_file(survey, name, output, silos), output)
    print(survey.text())
    print(f"{output}: written; read it, then `silodp rebuild {output}` makes results/{name}/report.html: a study")


def _refuse_existing(output: Path) -> None:
    if output.exists():
        raise ConfigError(f"{output}: already exists; remove it or choose another --output")


def _pairs(option: str, given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Words of COLUMN=WORD, by column."""
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        name, mark, word = text.rpartition("=")
        if not mark or not name or not word:
            raise ConfigError(f"command line: {option}: {text}: must be COLUMN=WORD")
        found[composed(name)] = (*found.get(composed(name), ()), word)
    return found


def _write_checked(text: str, output: Path) -> None:
    """Write a run file that loads, or none."""
    write_text(text, output)
    try:
        load(output)
    except ConfigError:
        output.unlink()
        raise
