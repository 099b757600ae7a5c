"""The command `silodp theory`."""

from collections.abc import Sequence
from typing import Any

import click

from silodp.cli.options import command
from silodp.config.errors import ConfigError, near
from silodp.theory import THEOREMS, Symbol, Theorem, describe, list_theorems
from silodp.theory.registry import PAPERS


@command(
    context_settings={"ignore_unknown_options": True},
    epilog="Example: silodp theory show convex-2.1 --n 1000 --d 10 --M 25 --R 100 --L 1 --D 1 --epsilon 1 --delta 1e-6",
)
@click.argument("action", type=click.Choice(("list", "show")))
@click.argument("key", required=False)
@click.argument("numbers", metavar="[--NAME VALUE]...", nargs=-1, type=click.UNPROCESSED)
def theory(action: str, key: str | None, numbers: Sequence[str]) -> None:
    """List the papers' theorems, all or those of the paper KEY, or evaluate the theorem KEY.

    With numbers for its parameters, `show` prints the theorem's value, terms and checked assumptions; without, its
    statement and a worked example.
    """
    if action == "list":
        _list(key, numbers)
    else:
        _show(key or "", numbers)


def _list(paper: str | None, extra: Sequence[str]) -> None:
    if extra:
        raise ConfigError(f"command line: {extra[0]}: theory list takes a paper and nothing else")
    if paper is not None and paper not in PAPERS:
        raise ConfigError(f"command line: key: {paper!r}: must be one of {', '.join(PAPERS)}")
    from silodp.verdicts.claims.loading import coverage  # `show` needs none of it

    theorems, decided = list_theorems(paper), coverage()
    for theorem in theorems:
        options = (f"--{name}" if name in theorem.required else f"[--{name}]" for name in theorem.parameters)
        print(f"{theorem.key:<30} {PAPERS[theorem.paper]}, {theorem.place}\n    {theorem.statement}")
        print(f"    {' '.join(options)}\n    {decided[theorem.key]}")


def _show(key: str, words: Sequence[str]) -> None:
    if key not in THEOREMS:
        hint = near(key, THEOREMS)
        raise ConfigError(f"command line: key: {key!r}: must be a theorem's key, as `silodp theory list` prints{hint}")
    theorem = THEOREMS[key]
    if not words:
        print(describe(key))
        return
    parameters = _parameters(theorem, words)
    result = theorem(**parameters)
    constant = "" if theorem.constant == "printed" else " (a rate: the paper hides its constant, here 1)"
    print(f"{key}: {theorem.statement}\n  source  {PAPERS[theorem.paper]}, {theorem.place}")
    print(f"  value   {result.value:.10g}{constant}")
    for name, value in result.terms.items():
        print(f"  term    {name} = {value:.10g}")
    for name, value in parameters.items():
        symbol = theorem.parameters[name]
        shown = value if isinstance(value, (str, int)) else f"{value:g}"
        print(f"  checked {name} = {shown}: {symbol.meaning}, {symbol.allowed}")
    for note in result.notes:
        print(f"  note    {note}")


class _Value(click.ParamType):
    """What a theorem's parameter may be."""

    name = "value"

    def __init__(self, symbol: Symbol):
        self.symbol = symbol

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"It must be {self.symbol.allowed}."

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        if self.symbol.choices:
            return value
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not {self.symbol.allowed}.", param, ctx)
        return int(number) if self.symbol.integer and number.is_integer() else number


def _parameters(theorem: Theorem, words: Sequence[str]) -> dict[str, Any]:
    options: list[click.Parameter] = [
        click.Option([f"--{name}", name], type=_Value(symbol), required=name in theorem.required)
        for name, symbol in theorem.parameters.items()
    ]
    context = click.Command(theorem.key, params=options).make_context(f"silodp theory show {theorem.key}", list(words))
    return {name: value for name, value in context.params.items() if value is not None}
