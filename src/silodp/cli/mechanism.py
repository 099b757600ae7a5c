"""`silodp epsilon --mechanism`: the true ε of a system that is described by a file or a preset of config/systems/."""

import json
import math
from collections.abc import Callable
from typing import Any

from tabulate import tabulate

from silodp.config.errors import ConfigError
from silodp.config.mechanism import Mechanism, load_mechanism, mechanism_path
from silodp.privacy.systems.bounds import Answer, answer, most_rounds, noise_factor
from silodp.privacy.systems.rounding import ends, outward
from silodp.privacy.systems.witnesses import VIEWS, WITNESSES

# Rounds of the table by round, up to those of the run.
_MARKS = [mark * 10**power for power in range(7) for mark in (1, 2, 5)]


def print_answer(
    name: str,
    rounds: int | None,
    records: int | None,
    settings: tuple[str, ...],
    by_round: bool,
    budget: float | None,
    as_json: bool,
) -> None:
    """Print what a mechanism claims and gives away over a run, the entry that dominates, and a witness of ∞."""
    path = mechanism_path(name)
    mechanism = load_mechanism(path)
    changed = _changed(mechanism, settings) | ({} if records is None else {"n": float(records)})
    if records is not None and "n" not in mechanism.settings:
        raise ConfigError(f"command line: --records: {records}: the mechanism has no setting n")

    def checked(function: Callable, *arguments: Any) -> Any:
        try:
            return function(mechanism, *arguments)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None

    total = rounds or mechanism.steps.rounds
    result: Answer = checked(answer, total, changed)
    table = {}
    if by_round:
        table = {r: ends(*checked(answer, r, changed).interval[:2]) for r in [*_below(total), total]}
    kept = {}
    if budget is not None:
        factor = checked(noise_factor, budget, total, changed)
        kept = {"rounds": 0 if math.isinf(result.interval.upper) else checked(most_rounds, budget, changed)}
        kept["noise_factor"] = factor if math.isfinite(factor) else None
    if as_json:
        lower, upper, witness = result.interval
        values: dict[str, Any] = {
            "claimed": result.claimed,
            "delta": result.delta,
            "rounds": total,
            "entry": result.entry,
        }
        values |= {"lower": _finite(lower), "upper": _finite(upper), "witness": witness or None}
        values |= {"also": [dict(zip(("name", "when", "witness"), one, strict=True)) for one in result.special]}
        values |= {key: more for key, more in (("budget", kept), ("by_round", table)) if more}
        print(json.dumps(values, indent=1))
        return
    _print(mechanism, result, total, table, budget, kept)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _below(total: int) -> list[int]:
    return [mark for mark in _MARKS if mark < total]


def _changed(mechanism: Mechanism, settings: tuple[str, ...]) -> dict[str, float]:
    known = [*mechanism.settings, "epsilon", "delta", "local", "rate", "silos"]
    changed = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in known:
            raise ConfigError(f"command line: --set: {setting!r}: must be NAME=NUMBER, NAME one of {', '.join(known)}")
        try:
            changed[key] = float(text)
        except ValueError:
            raise ConfigError(f"command line: --set: {setting!r}: {text!r} must be a number") from None
    return changed


def _print(
    mechanism: Mechanism, result: Answer, total: int, table: dict[int, str], budget: float | None, kept: dict
) -> None:
    claim, about = mechanism.claim, mechanism.about
    rows: list[tuple[str, str, str]] = []
    if about is not None:
        rows.append(("system", about.title, about.version))
    said = "no number" if result.claimed is None else outward(result.claimed, up=True)
    rows.append(("claimed ε", said, f"for a {claim.scope}" + (f": “{about.words}”" if about else "")))
    about_ends = f"over {total} rounds, for {VIEWS[mechanism.view]}"
    rows.append(("true ε", ends(*result.interval[:2]), about_ends))
    unit = {"replace": "replaced", "add_remove": "added or removed"}[claim.adjacency]
    rows.append(("neighbours", f"one {claim.unit}", f"{unit}; δ = {result.delta:g}"))
    rows.append(("rests on", result.entry, "the entry that gives away most"))
    if result.interval.witness:
        rows.append(("witness of ∞", result.interval.witness, WITNESSES[result.interval.witness].words))
    for name, when, witness in result.special:
        rows.append((f"∞ where {when}", name, WITNESSES[witness].words if witness else "leaves with noise"))
    rows += [(f"by round {r}", text, "") for r, text in table.items()]
    if budget is not None:
        rows.append((f"rounds for ε = {budget:g}", str(kept["rounds"]), "the most whose upper end keeps it"))
        factor = kept["noise_factor"]
        more = "none" if factor is None else f"× {outward(factor, up=True)}"
        rows.append((f"noise for ε = {budget:g}", more, f"what all noise is multiplied by, for {total} rounds"))
    print(tabulate(rows, tablefmt="plain", disable_numparse=True))
