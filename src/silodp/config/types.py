"""Types and small sections of the configuration models, apart from `silodp.config.loading` which puts them together."""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def at_least(value: float, least: float) -> float:
    """`value`; below `least` noise leaves what floats can hold, and the accountant fails after hours of training."""
    if value < least:
        raise ValueError(f"must be at least {least:g}")
    return value


Clip = Annotated[float, Field(gt=0), AfterValidator(partial(at_least, least=1e-30))]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Far beyond what anybody trains: a slip of the finger stops here, and not in a list of 10^9 step sizes.
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Exponent = Annotated[float, Field(ge=-300, le=300, allow_inf_nan=False)]
Epsilon = Annotated[float, Field(gt=0, lt=10_000, allow_inf_nan=False), AfterValidator(partial(at_least, least=1e-6))]
# Names that become parts of paths and of commands.
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name = Annotated[str, Field(pattern=NAME, max_length=100)]


def _printable_text(text: str) -> str:
    """Without control characters, which SVG forbids."""
    if any(ord(letter) < 32 and letter not in "\t\n" for letter in text):
        raise ValueError("must hold no control characters")
    return text


Title = Annotated[str, Field(max_length=300), AfterValidator(_printable_text)]
Device = Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")]


class Strict(BaseModel):
    """Base of all sections: unknown keys are an error, `true` and "3" are no numbers, and no section ever changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Constants(Strict):
    """Constants of a problem that a theorem's schedule asks for; L is the clip threshold, D the constraint's radius."""

    d: Count = Field(description="number of parameters")
    beta: Positive | None = Field(None, description="smoothness of the loss")
    mu: Positive | None = Field(None, description="strong convexity of the loss")
    phi: Positive | None = Field(None, description="bound on the deviation of a record's gradient; default: L")
    upsilon: NonNegative | None = Field(None, description="bound on the deviation of a silo's gradient; default: 0")
    Delta: Positive | None = Field(None, description="bound on the first excess risk; default: L D")


class StageOptions(Strict):
    """One stage of the multi-stage accelerated algorithm."""

    rounds: Count = Field(description="its rounds; all stages together have R")
    upsilon: Positive = Field(description="factor of its steps, eta_r = 4 upsilon / (r (r+1))")
    mu: NonNegative = Field(0.0, description="strong convexity its steps use")


class FileForm(Strict):
    """How a text file is written; `silodp init` guesses it."""

    separator: str = Field(",", min_length=1, max_length=1, description="between the cells of a row")
    encoding: str = Field("utf-8", description="of the text, as in latin-1")
    decimal: Literal[".", ","] = Field(".", description="mark of decimals")
    thousands: Literal["", ",", ".", "blank", "apostrophe"] = Field("", description="mark between thousands")
    units_row: bool = Field(False, description="row 1 holds units, and no record")
    last_row: Count | None = Field(None, description="last row that is a record, before a total or notes; default: all")

    @model_validator(mode="after")
    def _has_two_marks(self) -> "FileForm":
        if self.decimal == self.thousands:
            raise ValueError("decimal and thousands must be two different marks")
        return self


class FileColumn(Strict):
    """A column of a file; its type alone may stand in place of the mapping."""

    type: Literal["number", "category", "boolean", "date", "name", "ignored"] = Field(
        description="silos and persons are a name, dates are not used"
    )
    values: list[str] = Field(default=[], description="of a category, a boolean (two) or the target's classes")
    missing_words: list[str] = Field([], description="words that stand for a missing value, beside the empty cell")

    @model_validator(mode="after")
    def _has_values(self) -> "FileColumn":
        if (self.type == "boolean" and len(self.values) != 2) or len(set(self.values)) != len(self.values):
            raise ValueError("values must be distinct, and two of a boolean")
        return self


def _by_type(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


Columns = dict[str, Annotated[FileColumn, BeforeValidator(_by_type)]]


class OwnData(Strict):
    """A CSV or Parquet file with one record a row."""

    file: str = Field(min_length=1, max_length=1000, description="its path, relative to the run file")
    target: str = Field(description="column that is predicted")
    silo: str | None = Field(None, description="column that names a record's silo; default: silos cut by `silos`")
    person: str | None = Field(None, description="column that names a record's person; default: a record a person")
    person_limit: Count = Field(20, description="records of a person in all silos; of more records this many are drawn")
    form: FileForm = Field(FileForm(), description="how the text is written")
    columns: Columns = Field(description="every column of the file -> what it is; `silodp init` guesses it")
    missing: Literal["refuse", "drop", "mean"] = Field(
        "refuse", description="a missing value: refuse the file, drop the record, or take the training mean"
    )

    @model_validator(mode="after")
    def _has_columns_of_roles(self) -> "OwnData":
        unknown = [name for name in (self.target, self.silo, self.person) if name and name not in self.columns]
        if unknown:
            raise ValueError(f"columns: must have {unknown[0]!r}, which has a role")
        return self
