"""A first federation from a user's own file: the agreed file, a silo's own, and a study on made-up records."""

import os
from collections.abc import Mapping
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
import yaml

from silodp.config.errors import ConfigError
from silodp.datasets.own.guessing import Wishes
from silodp.datasets.own.parsing import cell_texts, read_table, records_of
from silodp.datasets.own.schema import Form, Schema
from silodp.files import write_csv, write_text
from silodp.own_data import first_run_file
from silodp.own_data.first_run_file import LEAST, MARK, Survey
from silodp.silos.federation_file import read_federation, read_silo

# Made-up silos of a study, where the file is that of a single silo.
_MADE_UP = 3


def write_federation(surveyed: Survey, folder: Path, name: str = "") -> str:
    """Write federation.yaml and silo.yaml, or records/NAME.csv and NAME.yaml of each silo, and study.yaml.

    A single silo is `name`, else as its file. Returns what is blank in the draft.

    ConfigError: what would let one record move others, or a file that is there.
    """
    schema = surveyed.schema
    if schema.missing == "drop" or schema.person is not None:
        wrong = "--missing: drop" if schema.person is None else f"--person: {schema.person!r}"
        raise ConfigError(f"command line: {wrong}: must be left out with --federation, whose unit is a record")
    for path in (folder / part for part in ("federation.yaml", "silo.yaml", "records", "study.yaml", "made_up.csv")):
        if path.exists():
            raise ConfigError(f"{path}: already exists; remove it or choose another --output")
    if name and surveyed.sizes:
        raise ConfigError(f"command line: --name: {name}: must be left out with --silo, whose column names silos")
    sizes = surveyed.sizes or {name or first_run_file.name_of(surveyed.path): len(surveyed.data.y)}
    # To two digits, so that no record by itself decides them.
    sizes = {silo: n - n % 10 ** max(len(str(n)) - 2, 0) for silo, n in sizes.items()}
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters["quoted"] = first_run_file.quoted
    template = environment.from_string(Path(__file__).with_suffix(".yaml.j2").read_text(encoding="utf-8"))
    lines = [first_run_file.column_line(schema, n, surveyed.refused.get(n, "")).strip() for n in schema.columns]
    bounds, model = surveyed.bounds(), first_run_file.model_of(surveyed.data.classes)
    agreed = folder / "federation.yaml"
    text = template.render(schema=schema, column_lines=lines, bounds=bounds, model=model, silos=sizes, mark=MARK)
    write_text(text, agreed)
    read_federation(agreed)
    if surveyed.sizes:
        for silo in sizes:
            _write_part(surveyed, silo, folder / "records")
    else:
        (silo,) = sizes
        file = os.path.relpath(surveyed.path, folder)
        _write_silo(folder / "silo.yaml", schema.form, name=silo, file=file, key=f"{silo}.key")
    made = dict(sizes) if len(sizes) > 1 else {f"silo_{i + 1}": n for i in range(_MADE_UP) for n in sizes.values()}
    write_study(schema, {name: limits for name, (limits, _) in bounds.items()}, made, folder)
    whole = "nothing for `silodp federate --here`" if surveyed.sizes else "the other silos, the coordinator's address"
    return f"{whole}; between machines every certificate (`silodp silo key NAME`)"


def _write_part(surveyed: Survey, silo: str, folder: Path) -> None:
    """The records of one silo of the file, in its form."""
    schema = surveyed.schema
    frame = records_of(surveyed.path, read_table(surveyed.path, schema.form), schema)
    part = frame[cell_texts(frame[schema.silo]) == silo]
    folder.mkdir(parents=True, exist_ok=True)
    part.to_csv(folder / f"{silo}.csv", index=False, sep=schema.form.separator)
    form = Form(schema.form.separator, decimal=schema.form.decimal, thousands=schema.form.thousands)
    keys = {"name": silo, "federation": "../federation.yaml", "file": f"{silo}.csv", "ledger": f"{silo}.ledger"}
    _write_silo(folder / f"{silo}.yaml", form, **keys)


def _write_silo(path: Path, form: Form, **keys: str) -> None:
    """silo.yaml, with a budget for four runs or more at the draft's ε."""
    written = {key: value for key, value in vars(form).items() if value != getattr(Form(), key)}
    more = {"form": written} if written else {}
    write_text(yaml.safe_dump(keys | more | {"budget": 4.0, "delta": 1e-3}, sort_keys=False, allow_unicode=True), path)
    read_silo(path)


def write_study(
    schema: Schema, bounds: Mapping[str, tuple[float, float]], sizes: Mapping[str, int], folder: Path
) -> None:
    """study.yaml, and made_up.csv, whose records follow the schema and nothing else: step sizes may be tried there."""
    counts = [max(size, 2 * LEAST) for size in sizes.values()]
    n, generator = sum(counts), np.random.default_rng(0)
    frame = pd.DataFrame({"silo": np.repeat(list(sizes), counts)})
    score = generator.normal(size=n)
    for name, column in schema.features.items():
        if column.type == "number":
            share = generator.uniform(size=n)
            frame[name] = np.round(bounds[name][0] + share * (bounds[name][1] - bounds[name][0]), 6)
        else:
            codes = generator.integers(0, len(column.values), n)
            frame[name], share = np.array(column.values)[codes], codes / max(len(column.values) - 1, 1)
        score += generator.normal() * 4 * (share - 0.5)
    rank = score.argsort().argsort() / n
    low, high = bounds.get(schema.target, (0.0, 1.0))
    classes = np.array(schema.classes)
    frame[schema.target] = classes[(rank * len(classes)).astype(int)] if len(classes) else low + rank * (high - low)
    made = folder / "made_up.csv"
    write_csv(frame, made)
    types = {name: schema.columns[name].type for name in [*schema.features, schema.target]}
    surveyed = first_run_file.survey(made, Wishes(schema.target, silo="silo", types=types))
    output = folder / "study.yaml"
    write_text(first_run_file.run_file(surveyed, first_run_file.name_of(folder) + "_made_up", output), output)
