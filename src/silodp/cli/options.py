"""What commands share: their class, options and arguments."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click


class Command(click.Command):
    """A command that takes the common options, and several values after an option made by `several`."""

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self.params += COMMON

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        names = {name for option in self.params if isinstance(option, _OptionOfValues) for name in option.opts}
        return super().parse_args(context, list(_spread(words, names)))

    def invoke(self, context: click.Context) -> int:
        from silodp.cli.running import run  # loads what `--help` need not

        return run(context, super().invoke)


class _OptionOfValues(click.Option):
    """An option that takes one or more values."""


def _spread(words: Sequence[str], names: set[str]) -> Iterator[str]:
    """`--trials a b` as `--trials a --trials b` for the options in `names`; words after `--` stay as they are."""
    option = None
    for place, word in enumerate(words):
        if word == "--":
            yield from words[place:]
            return
        if word in names:
            option = word
        elif word.startswith("-") and not word[1:2].isdigit():
            option = None
            yield word
        else:
            yield from (option, word) if option else (word,)


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep a common option wherever it stands: `silodp -q audit` and `silodp audit -q` are the same."""
    if value and parameter.name:
        context.meta[parameter.name] = value


def _common(*names: str, **keywords: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_remember, **keywords)


COMMON: list[click.Parameter] = [
    _common("-q", "--quiet", is_flag=True, help="Show warnings and errors only."),
    _common("-v", "--verbose", is_flag=True, help="Show where an error comes from."),
    _common(
        "--plugin", multiple=True, metavar="FILE", help="Python file with your algorithms or data sets; repeatable."
    ),
]


def command(name: str | None = None, **keywords: Any) -> Callable[[Callable], Command]:
    return click.command(name, cls=Command, **keywords)


def option_of_values(*names: str, **keywords: Any) -> Callable:
    """An option that takes one or more values, as in --trials a.parquet b.parquet."""
    return click.option(*names, cls=_OptionOfValues, multiple=True, **keywords)


class Number(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        number = super().convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", parameter, context)
        return number


class Cores(click.ParamType):
    """A number of cores, or `all`."""

    name = "cores"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        if value != "all" and not (str(value).isascii() and str(value).isdigit() and int(value) >= 1):
            self.fail(f"{value!r} is neither a number of at least 1 nor all.", parameter, context)
        return str(value)


PATH = click.Path(path_type=Path)
# What is written into, where a folder would be refused after the work.
FILE = click.Path(dir_okay=False, path_type=Path)
POSITIVE = Number(min=0, min_open=True)
COUNT = click.IntRange(min=1)
# Halves of a smaller one leave what floats hold.
DELTA = Number(min=1e-300, max=1, max_open=True)


def _run_file(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """The file, or the one of a run's name in config/."""
    named = Path("config") / f"{value}.yaml"
    return named if value.name == str(value) and not value.exists() and named.is_file() else value


run_file = click.argument("run_file", type=PATH, callback=_run_file)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
