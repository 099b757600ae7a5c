"""What a coordinator gives away after a run: a model, its card, and what it was made from."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from torch import Tensor

from silodp import __version__
from silodp.config.types import FileForm
from silodp.files import write_text
from silodp.own_data.first_run_file import MARK
from silodp.own_data.released_model import ReleasedModel
from silodp.silos.hosting import Host


def marked_lines(path: Path) -> int:
    """How many lines of a federation's file have the mark of what was read off records."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return sum(MARK in line and not line.startswith("#") for line in lines)


def write_model(
    host: Host, models: Tensor, output: Tensor, folder: Path, up: Callable[[float], str]
) -> dict[int, bytes]:
    """Write model.npz, or a file for each silo's own model, card.md and provenance.json.

    Returns the SHA-256 of each silo's model.
    """
    federation, names = host.federation, host.plan.names
    promises = {name: {"epsilon": silo.epsilon, "delta": silo.delta} for name, silo in federation.silos.items()}
    about: dict[str, Any] = {"silos": names, "promise": promises, "bounds": federation.records.bounds}
    about |= {"model": federation.model.model_dump(mode="json"), "constant_column": federation.records.constant_column}
    schema = dataclasses.replace(federation.records.in_form(FileForm()), missing=federation.records.missing)
    is_shared = models.ndim == 2
    files = (
        {"model.npz": output[0]} if is_shared else dict(zip((f"model-{n}.npz" for n in names), models[0], strict=True))
    )
    for name, weights in files.items():
        ReleasedModel(weights.numpy(), about, schema).save(folder / name)
    digests = [hashlib.sha256((folder / name).read_bytes()) for name in files]
    made: dict[str, Any] = {"silodp": __version__, "code": host.code.hex(), "federation": federation.digest.hex()}
    made["runs"] = {names[silo]: run.hex() for silo, run in host.runs.items()}
    made["models"] = {name: digest.hexdigest() for name, digest in zip(files, digests, strict=True)}
    write_text(json.dumps(made, indent=1), folder / "provenance.json")
    template = Path(__file__).with_name("federation_card.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    replied = [[came[silo] for came in host.replied.values() if silo in came] for silo in range(len(names))]
    known: dict[str, Any] = {"plan": host.plan, "federation": federation, "made": made, "up": up, "files": list(files)}
    known["ends"] = [host.plan.epsilon(silo)[1] for silo in range(len(names))]
    known["replied"] = [(len(came), sum(came)) for came in replied]
    known["time"] = datetime.now(UTC).isoformat(timespec="seconds")
    text = environment.from_string(template).render(is_here=host.is_local, marked=marked_lines(host.path), **known)
    write_text(text, folder / "card.md")
    return {silo: digests[0 if is_shared else silo].digest() for silo in range(len(names))}
