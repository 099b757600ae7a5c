"""Options that say how a text file is written."""

from collections.abc import Callable

import click

from silodp.datasets.own.schema import THOUSANDS


def _one_character(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    mark = "\t" if value in ("tab", r"\t") else value
    if mark is not None and (len(mark) != 1 or mark in '\r\n"'):
        raise click.BadParameter(f"{value!r} is not one character, as in ; or tab.")
    return mark


_OPTIONS = (
    click.option("--separator", callback=_one_character, help="Between the cells of a row."),
    click.option("--encoding", help="Of a text file, as in latin-1 (default: UTF-8)."),
    click.option("--decimal", type=click.Choice((".", ",")), help="Mark of decimals."),
    click.option("--thousands", type=click.Choice(tuple(THOUSANDS)), help="Mark between thousands."),
)


def file_form(function: Callable) -> Callable:
    """The command with these options; None where one is left out."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
