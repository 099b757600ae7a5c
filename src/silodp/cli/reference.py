"""Pages made from the configuration models: the JSON schema that editors use, and the reference of all keys."""

import json
from typing import Any

from pydantic import BaseModel

from silodp.config.experiment import AlgorithmOptions, Experiment, Partitioning, Preprocessing, Report, Setting
from silodp.config.grid import Grid
from silodp.config.models import (
    AbsoluteModel,
    BallPenalty,
    ConvNetModel,
    HingeModel,
    L1Penalty,
    L2Penalty,
    LinearModel,
    LogisticModel,
    NoPenalty,
    PerceptronModel,
    SigmoidModel,
    SoftmaxModel,
)
from silodp.config.own import OwnData
from silodp.config.readings import Readings
from silodp.config.run import Bounds, DataConfig, Run
from silodp.config.types import Constants, StageOptions
from silodp.verdicts.claims.models import SECTIONS, Claim, Claims


def schema_text() -> str:
    """What `config/schema.json` holds: an editor's schema for experiments, run files beside it."""
    experiment = Experiment.model_json_schema(ref_template="#/$defs/{model}")
    run = Run.model_json_schema(ref_template="#/$defs/{model}")
    claims = Claims.model_json_schema(ref_template="#/$defs/{model}")
    definitions = experiment.pop("$defs", {}) | run.pop("$defs", {}) | claims.pop("$defs", {})
    # An algorithm of the extended experiment is left out by naming it without options.
    algorithms = experiment["properties"]["algorithms"]
    fewer = algorithms | {"additionalProperties": {"anyOf": [algorithms["additionalProperties"], {"type": "null"}]}}
    extending = experiment | {
        "title": "Extending",
        "description": "An experiment laid over the one that it extends.",
        "properties": {"extends": {"type": "string"}} | experiment["properties"] | {"algorithms": fewer},
        "required": ["extends"],
    }
    definitions |= {"Experiment": experiment, "Extending": extending, "Run": run, "Claims": claims}
    return (
        json.dumps(
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "silodp run files, experiments and claims",
                "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("Run", "Experiment", "Extending", "Claims")],
                "$defs": definitions,
            },
            indent=1,
            sort_keys=True,
        )
        + "\n"
    )


def reference_text() -> str:
    """The reference page `docs/configuration.md`, made from the models above."""
    lines = [
        "# Configuration reference",
        "",
        "Made from the models in `src/silodp/config_models.py` and `src/silodp/claims/models.py` by",
        "`silodp config reference`; do not edit by hand.",
        "",
    ]
    sections: list[type[BaseModel]] = [
        Run,
        DataConfig,
        Bounds,
        Experiment,
        OwnData,
        Partitioning,
        Preprocessing,
        Setting,
        Grid,
        LinearModel,
        LogisticModel,
        SoftmaxModel,
        PerceptronModel,
        ConvNetModel,
        HingeModel,
        AbsoluteModel,
        SigmoidModel,
        NoPenalty,
        L1Penalty,
        L2Penalty,
        BallPenalty,
        AlgorithmOptions,
        StageOptions,
        Constants,
        Readings,
        Report,
        Claims,
        Claim,
        *SECTIONS,
    ]
    for section in sections:
        lines += [f"## {section.__name__}", "", (section.__doc__ or "").strip(), ""]
        lines += ["| key | allowed | default | meaning |", "| --- | --- | --- | --- |"]
        properties = section.model_json_schema()["properties"]
        for key, field in section.model_fields.items():
            default = "required" if field.is_required() else _default_text(field.get_default(call_default_factory=True))
            lines.append(f"| `{key}` | {_allowed(properties[key])} | {default} | {field.description or ''} |")
        lines.append("")
    return "\n".join(lines)


def _default_text(value: Any) -> str:
    if isinstance(value, BaseModel):
        return f"{type(value).__name__} defaults"
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        return f"one {type(value[0]).__name__}"
    return "none" if value is None else f"`{json.dumps(value)}`"


def _allowed(field: dict) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return field["$ref"].rsplit("/", 1)[-1]
    for key in ("anyOf", "oneOf"):
        if key in field:
            return " or ".join(_allowed(option) for option in field[key])
    if field.get("type") == "array":
        return f"list of {_allowed(field['items'])}"
    text = {"null": "none"}.get(field.get("type", "any"), field.get("type", "any"))
    bounds = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤", "pattern": "matches"}
    limits = [f"{sign} {field[key]}" for key, sign in bounds.items() if key in field]
    return " ".join([text, *limits]).replace("|", "\\|")
