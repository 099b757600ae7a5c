"""The subcommand `silodp theory`: what the papers state, and what it comes to at given numbers."""

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from silodp.cli.parser import near
from silodp.theory import THEOREMS, describe, list_theorems
from silodp.theory.registry import PAPERS

if TYPE_CHECKING:
    from silodp.theory import Theorem


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add this subcommand with `add(name, function, help)`."""
    sub = add("theory", theory, "theorems of the papers: list them, or evaluate one")
    sub.add_argument("action", choices=["list", "show"], help="what to print")
    sub.add_argument("key", nargs="?", help="show: the theorem, as in convex-2.1; list: a paper (convex, …)")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.add_argument(
        "numbers",
        nargs=argparse.REMAINDER,
        metavar="--NAME VALUE",
        help="show: the theorem's parameters; without any, its worked example",
    )


def theory(options: argparse.Namespace) -> None:
    """List the theorems, or evaluate one: `silodp theory show convex-2.1 --n 1000 --d 10 …`.

    With numbers, prints the value, its terms and the assumptions that were checked; without, what the theorem says.
    """
    # What follows the key is the theorem's own, so argparse leaves this option to us.
    words = [word for word in options.numbers if word != "--json"]
    as_json = options.json or len(words) < len(options.numbers)
    if options.action == "list":
        _list(options.key, words, as_json)
    else:
        _show(options.key, words, as_json)


def _list(paper: str | None, extra: list[str], as_json: bool) -> None:
    if extra:
        raise ValueError(f"command line: {extra[0]}: theory list takes a paper and nothing else")
    if paper is not None and paper not in PAPERS:
        raise ValueError(f"command line: key: {paper!r}: must be one of {', '.join(PAPERS)}")
    if as_json:
        rows = [_about(one) for one in list_theorems(paper)]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    for one in list_theorems(paper):
        print(f"{one.key:<30} {PAPERS[one.paper]}, {one.place}\n    {one.statement}")
        print(f"    {' '.join(f'--{name}' if name in one.required else f'[--{name}]' for name in one.parameters)}")


def _about(one: "Theorem") -> dict[str, Any]:
    parameters = {name: f"{symbol.meaning}: {symbol.allowed}" for name, symbol in one.parameters.items()}
    about = {"key": one.key, "paper": PAPERS[one.paper], "place": one.place, "statement": one.statement}
    return about | {"parameters": parameters, "required": list(one.required)}


def _show(key: str | None, words: list[str], as_json: bool) -> None:
    if key is None or key not in THEOREMS:
        raise ValueError(
            f"command line: key: {key!r}: must be a theorem's key; `silodp theory list` prints them"
            + near(key or "", THEOREMS)
        )
    found = THEOREMS[key]
    if not words:
        print(json.dumps(_about(found), indent=1, ensure_ascii=False) if as_json else describe(key))
        return
    parameters = _parameters(key, words)
    missing = [name for name in found.required if name not in parameters]
    if missing:
        allowed = found.parameters[missing[0]].allowed
        raise ValueError(f"command line: --{missing[0]}: missing: {key} needs {allowed}")
    result = found(**parameters)
    if as_json:
        said: dict[str, Any] = {"key": key, "statement": found.statement, "constants": found.constant}
        said |= {"source": f"{PAPERS[found.paper]}, {found.place}", "value": result.value, "terms": dict(result.terms)}
        print(json.dumps(said | {"parameters": parameters, "notes": list(result.notes)}, indent=1, ensure_ascii=False))
        return
    constant = "" if found.constant == "printed" else " (a rate: the paper hides its constant, here 1)"
    print(f"{key}: {found.statement}\n  source  {PAPERS[found.paper]}, {found.place}")
    print(f"  value   {result.value:.10g}{constant}")
    for name, value in result.terms.items():
        print(f"  term    {name} = {value:.10g}")
    for name, value in parameters.items():
        symbol = found.parameters[name]
        shown = value if isinstance(value, (str, int)) else f"{value:g}"
        print(f"  checked {name} = {shown}: {symbol.meaning}, {symbol.allowed}")
    for note in result.notes:
        print(f"  note    {note}")


def _parameters(key: str, words: list[str]) -> dict[str, Any]:
    """`--name value` pairs as numbers, or as words where the parameter is one."""
    symbols, found = THEOREMS[key].parameters, {}
    pairs = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for position in range(0, len(pairs), 2):
        word = pairs[position]
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or name not in symbols:
            raise ValueError(f"command line: {word}: unknown: {key} takes {', '.join(f'--{n}' for n in symbols)}")
        if name in found:
            raise ValueError(f"command line: {word}: given twice: must be given once")
        if position + 1 == len(pairs):
            raise ValueError(f"command line: {word}: no value: must be {symbols[name].allowed}")
        found[name] = _value(name, pairs[position + 1], symbols[name])
    return found


def _value(name: str, text: str, symbol: Any) -> Any:
    if symbol.choices:
        return text
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"command line: --{name}: {text!r}: must be {symbol.allowed}") from None
    return int(number) if symbol.integer and number.is_integer() else number
