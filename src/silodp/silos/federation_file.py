"""`federation.yaml`, public and the same for all, and `silo.yaml`, a silo's own; read, checked and digested."""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from silodp.algorithms import ALGORITHMS
from silodp.config.errors import ConfigError, show_value, suggest_name
from silodp.config.loading import composed, explain, in_file
from silodp.config.models import ModelConfig, Penalty
from silodp.config.types import (
    Clip,
    Columns,
    Count,
    Epsilon,
    FileForm,
    Finite,
    Name,
    NonNegative,
    Positive,
    Strict,
    Title,
)
from silodp.config.yaml_file import read_yaml
from silodp.datasets.own.schema import Form, Schema, column_from

Delta = Annotated[float, Field(gt=0, lt=1)]
Bounds = Annotated[list[Finite], Field(min_length=2, max_length=2)]


class RecordSchema(Strict):
    """What the records of all silos are: columns, bounds, categories and classes that are known beforehand."""

    target: str = Field(description="column that is predicted")
    columns: Columns = Field(description="every column of a silo's file -> what it is")
    bounds: dict[str, Bounds] = Field(description="column of numbers -> lowest and highest value")
    missing: Literal["refuse", "mean"] = Field("refuse", description="mean: the middle of the bounds")
    constant_column: bool = Field(True, description="append a column of ones")

    _named_as_read = field_validator("target")(composed)

    @model_validator(mode="after")
    def _complete(self) -> "RecordSchema":
        if self.target not in self.columns:
            raise ValueError(f"columns: must have the target {self.target!r}")
        schema = self.in_form(FileForm())
        if not schema.features:
            raise ValueError("columns: must have one of numbers, categories or a boolean beside the target")
        numbers = {*schema.numbers, *([] if schema.classes else [self.target])}
        if wrong := sorted(numbers ^ set(self.bounds)):
            raise ValueError(f"bounds: must be given for every number, and for nothing else: {wrong[0]!r}")
        closed = [name for name, column in schema.features.items() if column.type == "category" and not column.values]
        if closed or len(schema.classes) == 1:
            raise ValueError(f"columns: {(closed or [self.target])[0]!r}: must have its values")
        for name, (low, high) in self.bounds.items():
            if not low < high:
                raise ValueError(f"bounds: {name!r}: the lowest value must be below the highest")
        return self

    def in_form(self, form: FileForm) -> Schema:
        """The schema of a file that is written in `form`."""
        columns = {name: column_from(**column.model_dump()) for name, column in self.columns.items()}
        return Schema(self.target, columns, Form(**form.model_dump()), missing=self.missing)

    @property
    def classes(self) -> int | None:
        return len(self.columns[self.target].values) or None

    @property
    def features(self) -> int:
        """Features of a record, the constant column included."""
        return len(self.in_form(FileForm()).feature_values) + self.constant_column


class AlgorithmChoice(Strict):
    """An algorithm and its parameters; R, M and N are the federation's."""

    name: str = Field(description="its name in the registry")
    options: dict[str, bool | int | Finite | str] = Field(default={}, description="its parameters")


class Coordinator(Strict):
    address: str = Field(pattern=r"^[^\s]+:\d+$|^unix:.+$", description="host:port that silos dial")
    certificate: str = Field("", description="its whole certificate, as `silodp silo key` printed it")


class SiloEntry(Strict):
    """A silo as the others know it."""

    records: Count = Field(description="its declared size; of a larger file as many are drawn")
    epsilon: Epsilon = Field(description="its promise over the whole run")
    delta: Delta = Field(description="its promise's delta")
    certificate: str = Field("", description="its whole certificate")


# No byte of a reply depends on these, and a run goes on when they change.
OUTSIDE: Any = {key: True for key in ("title", "wait", "at_least", "reply_after", "coordinator")}
OUTSIDE |= {"silos": {"__all__": {"certificate"}}}


def form_digest(form: dict[str, Any]) -> bytes:
    """SHA-256 of a section with its defaults, in its order: that of columns is the order of a model's weights."""
    return hashlib.sha256(json.dumps(form, ensure_ascii=False).encode()).digest()


class Federation(Strict):
    """`federation.yaml`."""

    title: Title = Field(description="what the run is for; no reply depends on it")
    records: RecordSchema = Field(alias="schema", description="what all records are")
    model: ModelConfig
    radius: Positive | None = Field(None, description="radius of the ball around 0 that weights are projected onto")
    regulariser: Penalty | None = Field(None, description="penalty that the proximal map takes")
    algorithm: AlgorithmChoice = Field(description="one that needs no shuffler and no trusted sum")
    participants: Count = Field(description="M, silos of a round")
    at_least: Count | None = Field(None, description="silos without which a run ends; default: M")
    rounds: Count = Field(description="R, rounds of the run")
    stepsize: Positive = Field(description="η, public as clip: chosen on other records than the silos'")
    clip: Clip = Field(description="L, the largest norm of a record's gradient; finite")
    bound: Positive = Field(1e3, description="B: no weight that is asked about is larger")
    batch_records: Count | None = Field(None, description="K; default: the formula at each silo's epsilon")
    sampler: Literal["replacement", "subset"] = Field("replacement", description="how a message's K records are drawn")
    reply_after: NonNegative = Field(description="seconds from a question to its reply; 0 over a socket alone")
    wait: Positive = Field(60.0, description="seconds that a silo is waited for; above 2 · reply_after")
    coordinator: Coordinator = Field(description="where it is, and its certificate")
    silos: dict[Name, SiloEntry] = Field(min_length=1, description="name -> SiloEntry")
    plugin: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="SHA-256 of a plug-in's file")

    @property
    def digest(self) -> bytes:
        """SHA-256 of what a reply may depend on: all but `OUTSIDE`."""
        return form_digest(self.model_dump(mode="json", exclude=OUTSIDE))

    @property
    def least(self) -> int:
        return self.at_least or self.participants


class SiloFile(Strict):
    """`silo.yaml`, private to a silo; paths are relative to it."""

    name: Name = Field(description="the silo's name in federation.yaml")
    federation: str = Field("federation.yaml", description="the agreed file")
    file: str = Field(description="CSV or Parquet file with a record a row")
    form: FileForm = Field(FileForm(), description="how the file is written")
    ledger: str = Field("ledger", description="folder on a local disk for ledger, keys and runs")
    key: str | None = Field(None, description="private key that `silodp silo key` made; the certificate is beside it")
    budget: Epsilon = Field(description="largest total epsilon; the first join writes it into the ledger")
    delta: Delta = Field(description="largest delta of a run")
    answer_within: Positive = Field(3600.0, description="seconds of silence after which `join` ends")


Section = TypeVar("Section", Federation, SiloFile)


def _read_section(path: Path, section: type[Section]) -> Section:
    try:
        return section.model_validate(composed(read_yaml(path)))
    except ValidationError as error:
        raise explain(error, in_file(path)) from None


def read_silo(path: Path) -> SiloFile:
    """`silo.yaml` with its paths as seen from the working folder; ConfigError in one line."""
    silo = _read_section(path, SiloFile)
    named = {key: getattr(silo, key) for key in ("federation", "file", "ledger", "key")}
    return silo.model_copy(update={key: str(path.parent / place) for key, place in named.items() if place})


def read_federation(path: Path) -> Federation:
    """`federation.yaml`; ConfigError in one line that names file, key, value and what is allowed."""
    federation = _read_section(path, Federation)
    for key, value, allowed in _faults(federation):
        raise ConfigError(f"{path}: {key}: {show_value(value)}: {allowed}")
    return federation


def check_address(address: str, federation: Federation, where: str) -> None:
    """ConfigError: between machines a port is missing, or a reply has no time."""
    if address.startswith("unix:"):
        return
    if not re.fullmatch(r"\S+:\d{1,5}", address) or int(address.rpartition(":")[2]) > 65535:
        raise ConfigError(f"{where}: {address}: must be HOST:PORT")
    if not federation.reply_after:
        raise ConfigError(f"{where}: reply_after: 0: must be above 0 between machines")


def _faults(federation: Federation) -> Iterator[tuple[str, Any, str]]:
    name, silos = federation.algorithm.name, federation.silos
    if name not in ALGORITHMS:
        yield "algorithm.name", name, f"must be one of {', '.join(ALGORITHMS)}{suggest_name(name, ALGORITHMS)}"
        return
    kind = ALGORITHMS[name]
    if kind.alone or kind.trust != "nothing":
        yield "algorithm.name", name, "must train with other silos, and trust neither a shuffler nor a sum"
    if not federation.participants <= len(silos):
        yield "participants", federation.participants, f"must be at most the {len(silos)} silos"
    if not federation.least <= federation.participants:
        yield "at_least", federation.at_least, f"must be at most participants = {federation.participants}"
    if not math.isfinite(federation.clip):
        yield "clip", federation.clip, "must be finite"
    if not federation.wait > 2 * federation.reply_after:
        yield "wait", federation.wait, f"must be above twice reply_after = {federation.reply_after:g}"
    certificates = [silo.certificate for silo in silos.values() if silo.certificate]
    if len(set(certificates)) < len(certificates):
        yield "silos", "certificate", "must be another for every silo"
    if (federation.model.name in ("linear", "absolute")) != (federation.records.classes is None):
        yield (
            "model.name",
            federation.model.name,
            "must be linear or absolute for a target of numbers, and only for one",
        )
    if federation.model.name == "convnet":
        yield "model.name", "convnet", "must be a model of columns"
