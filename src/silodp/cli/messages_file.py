"""`silodp epsilon --messages FILE`: a silo's messages written down, as the plan that the accountant takes."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from silodp.config.loading import explain, in_file
from silodp.config.types import Positive, Strict
from silodp.config.yaml_file import read_yaml
from silodp.privacy.plan import Budget, PrivacyPlan, Release

Whole = Annotated[int, Field(ge=1)]


class Kind(Strict):
    """A kind of message: `count` times a clipped mean of drawn records with Gaussian noise."""

    count: Whole
    records: Whole | None = None
    sampler: Literal["replacement", "subset", "disjoint", "all"]
    noise_multiplier: Positive


class Messages(Strict):
    """A silo of n `records` and what it sends."""

    records: Whole
    delta: Annotated[float, Field(gt=0, lt=1)]
    messages: Annotated[list[Kind], Field(min_length=1)]

    @model_validator(mode="after")
    def _draws_what_is_there(self) -> "Messages":
        for place, kind in enumerate(self.messages):
            drawn = (kind.records or 0) * (kind.count if kind.sampler == "disjoint" else 1)
            if (kind.records is None) != (kind.sampler == "all"):
                raise ValueError(f"messages.{place}.records: must be given, but for sampler all, which takes every one")
            if kind.sampler != "replacement" and drawn > self.records:
                raise ValueError(f"messages.{place}: draws {drawn} records: must be at most records = {self.records}")
        return self


def read_messages(path: Path) -> PrivacyPlan:
    """The plan of a file of messages; ConfigError in one line."""
    try:
        given = Messages.model_validate(read_yaml(path))
    except ValidationError as error:
        raise explain(error, in_file(path)) from None
    # z is σ over what one replaced record moves: 2L/K for a mean of K.
    kinds = ((f"message {place}", kind, kind.records or given.records) for place, kind in enumerate(given.messages, 1))
    releases = tuple(
        Release(name, kind.count, K, kind.noise_multiplier * 2 / K, sampler=kind.sampler) for name, kind, K in kinds
    )
    return PrivacyPlan(str(path), Budget(given.records, 1, 1.0, given.delta, 1.0), releases)
