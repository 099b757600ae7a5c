"""The keys of a run file."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from silodp.config.types import Count, Device, Name, Positive, Strict


class DataConfig(Strict):
    """Where data files come from."""

    mirror: str | None = Field(None, description="folder or address tried before the official one (SILODP_DATA_MIRROR)")
    cache: str | None = Field(None, description="folder of downloaded files (SILODP_DATA_CACHE)")
    deadline_seconds: Positive = Field(3600, description="time for all attempts to get a file from an address")
    least_bytes_per_second: Positive = Field(1000, description="a slower download ends (average after 30 s)")


class Bounds(Strict):
    """How the papers' bounds are checked against runs (target `bounds`)."""

    scale: Literal["smoke", "default", "paper"] = Field(
        "default", description="trials: smoke a tenth of the default's, paper ten times as many"
    )


class Run(Strict):
    """A run file."""

    run: Name = Field(description="name of the results folder; published… is taken")
    seed: int = Field(2023, ge=0, lt=2**63, description="the only entropy of a run")
    device: Device = Field("cpu", description="cpu, cuda, cuda:<index>, or auto: what is expected to be faster")
    gpus: bool = Field(False, description="whether jobs can have a CUDA device, for device: auto")
    dtype: Literal["float32", "float64"] = Field("float32", description="precision of training")
    threads: Count = Field(1, description="threads of a job; jobs run side by side")
    trials_per_job: Count = Field(5, description="trials trained in a job")
    memory_mb: Annotated[int, Field(ge=256, le=100_000_000)] = Field(4000, description="memory bound of a job")
    runtime_minutes: Count = Field(240, description="time limit of a training job on a cluster")
    data: DataConfig = Field(DataConfig(), description="where data files come from")
    bounds: Bounds = Field(Bounds(), description="how target `bounds` checks the papers' bounds")
    plugins: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        [], description="Python files with your algorithms and data sets, relative to this file's folder"
    )
    targets: list[Literal["bounds", "checkins"]] = Field(
        [], description="further results: bounds checked against runs, random check-ins"
    )
    experiments: dict[str, dict[str, Any] | None] = Field(
        min_length=1, description="experiment -> overrides of its file"
    )
    parts: dict[Name, dict[str, Any]] = Field(
        {},
        description="name -> keys of a run of its own, called <run>-<name>: experiments, and what differs from above",
    )

    @model_validator(mode="before")
    @classmethod
    def _without_audit_runs(cls, keys: Any) -> Any:
        """Files of earlier versions have this key."""
        return {key: value for key, value in keys.items() if key != "audit_runs"} if isinstance(keys, dict) else keys

    @field_validator("run")
    @classmethod
    def _not_taken(cls, value: str) -> str:
        if value.lower().startswith("published"):
            raise ValueError("names that begin with published are those of published results: choose another")
        return value
