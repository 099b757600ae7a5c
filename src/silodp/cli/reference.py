"""The command `silodp config`: checks, the JSON schema that editors use, and the reference page of all keys."""

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import BaseModel

from silodp.algorithms import ALGORITHMS
from silodp.cli.options import PATH, command
from silodp.config.errors import ConfigError
from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.datasets import DATASETS
from silodp.experiments.validation import load
from silodp.extending import plugins
from silodp.silos.federation_file import Federation, SiloFile
from silodp.verdicts.claims.claim_file import Claims

log = logging.getLogger("silodp")

_PAGE = """# Configuration reference

This page lists the keys of run files and experiments. `silodp config reference` makes it from `src/silodp/config/`.
`config/schema.json` has the keys of claims too. A capital word under "allowed" names a section. A key with an empty
default may be left out.
"""

_FEDERATION_PAGE = """# Keys of federation.yaml and silo.yaml

`silodp config reference --of federation` makes this page from `src/silodp/silos/federation_file.py`. `Federation` is
the file that all parties agree on, and `SiloFile` a silo's own. A capital word under "allowed" names a section. A key
with an empty default may be left out. [The page on silos](federate.md) says how they are used.
"""


@command(epilog="Example: silodp config check config/default.yaml --plugin my_algorithm.py")
@click.argument("action", type=click.Choice(("check", "schema", "reference")))
@click.argument("run_file", type=PATH, required=False)
@click.option("--of", type=click.Choice(("run", "federation")), default="run", help="Whose keys `reference` prints.")
@click.pass_context
def config(context: click.Context, action: str, run_file: Path | None, of: str) -> int:
    """Check RUN_FILE, or print the JSON schema or the reference page of all keys.

    A plug-in of --plugin is checked for what every algorithm or data set must offer, with RUN_FILE or alone. Exit code
    1 where it lacks something. `silodp audit` tests whether messages are as noisy as an algorithm's plan says.
    """
    if action != "check":
        print(schema_text() if action == "schema" else reference_text(of), end="")
        return 0
    added = context.meta.get("plugin", ())
    if run_file is None and not added:
        raise ConfigError("command line: run_file: missing: must name the file to check")
    if run_file is not None:
        _check_run_file(run_file)
    return _check_plugins(added) if added else 0


def _check_run_file(run_file: Path) -> None:
    run = load(run_file).run
    for file in (run_file, *(run_file.with_stem(f"{run_file.stem}-{part}") for part in run.parts)):
        number = len(load(file).experiments)
        log.info("%s: %d experiment%s, all checks passed", file, number, "s" * (number != 1))


def _check_plugins(given: Sequence[str]) -> int:
    """Print what the registry's contract finds in each plug-in; returns the exit code."""
    from silodp.extending.contract import results  # loads PyTorch

    faults, files = 0, {Path(file).resolve() for file in given}
    for entry in sorted(plugin for plugin in plugins.in_use() if plugin.root in files):
        value = ALGORITHMS[entry.name] if entry.registry == "silodp.algorithms" else DATASETS[entry.name]
        for check, fault in results(value):
            faults += bool(fault)
            print(f"{'BAD' if fault else 'ok':<4}{entry.name} {check}{': ' if fault else ''}{fault}")
    return int(faults > 0)


def _definitions(*models: type[BaseModel]) -> dict[str, dict]:
    """Name → JSON schema of `models`, and then of the models that they hold, in order of first mention."""
    schemas = {model.__name__: model.model_json_schema() for model in models}
    held = {name: schema for top in schemas.values() for name, schema in top.pop("$defs", {}).items()}
    names = list(schemas)
    for name in names:
        mentioned = re.findall(r'"#/\$defs/(\w+)"', json.dumps((held | schemas)[name]))
        names += [other for other in dict.fromkeys(mentioned) if other not in names]
    return {name: (held | schemas)[name] for name in names}


def schema_text() -> str:
    """What `config/schema.json` holds: an editor's schema for run files, experiments and claims."""
    definitions = _definitions(Run, Experiment, Claims)
    experiment = definitions["Experiment"]
    # An extending experiment leaves out an algorithm of the extended one by naming it without options.
    algorithms = experiment["properties"]["algorithms"]
    fewer = algorithms | {"additionalProperties": {"anyOf": [algorithms["additionalProperties"], {"type": "null"}]}}
    definitions["Extending"] = experiment | {
        "title": "Extending",
        "description": "An experiment laid over the one that it extends.",
        "properties": {"extends": {"type": "string"}} | experiment["properties"] | {"algorithms": fewer},
        "required": ["extends"],
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "silodp run files, experiments and claims",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("Run", "Experiment", "Extending", "Claims")],
        "$defs": definitions,
    }
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def reference_text(of: str = "run") -> str:
    """The reference of run files, or of a federation's files: a section for each model, a row for each key."""
    page, models = (_PAGE, (Run, Experiment)) if of == "run" else (_FEDERATION_PAGE, (Federation, SiloFile))
    lines, definitions = [page], _definitions(*models)
    readings = definitions.get("Readings", {}).get("properties", {})
    for name, schema in definitions.items():
        keys, more = dict(schema.get("properties", {})), ""
        if name == "Alternative":
            keys, more = {key: keys[key] for key in keys if key not in readings}, " It has all keys of Readings, and:"
        elif keys.get("name", {}).keys() & {"enum", "const"}:
            more = f" `name`: {_allowed(keys.pop('name'))}."
        lines += [f"## {name}", "", schema.get("description", "") + more, ""]
        lines += ["| key | allowed | default | meaning |", "|-|-|-|-|"] if keys else []
        for key, field in keys.items():
            default = "required" if key in schema.get("required", ()) else _default(field)
            meaning = field.get("description") or _MEANINGS.get(key, "")
            lines.append(f"| `{key}` | {_allowed(field)} | {default} | {meaning} |")
        lines += [""] if keys else []
    return "\n".join(lines)


# Keys whose models do not say what they mean there.
_MEANINGS = {
    "model": "what is trained, by its `name`",
    "settings": "silos a round M and rounds R, one figure each",
    "algorithms": "algorithm -> its options (see AlgorithmOptions); null leaves an inherited one out",
}


def _default(field: dict) -> str:
    value = field.get("default")
    if "$ref" in field and isinstance(value, dict):
        return "defaults"
    return "" if value is None else f"`{json.dumps(value)}`"


def _allowed(field: dict) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return field["$ref"].rsplit("/", 1)[-1]
    for key in ("anyOf", "oneOf"):
        if key in field:
            return " or ".join(_allowed(option) for option in field[key] if option.get("type") != "null")
    if field.get("type") == "array":
        return f"list of {_allowed(field['items'])}"
    kind = field.get("type", "any")
    text = {"string": "text"}.get(kind, kind)
    bounds = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    limits = [f"{sign} {field[key]}" for key, sign in bounds.items() if key in field and field[key] < 1e6]
    return " ".join([text, *limits]).replace("|", "\\|")
