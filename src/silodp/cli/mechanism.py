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
    marks = [*(mark for mark in _MARKS if mark < total), total] if by_round else []
    table = {mark: ends(*checked(answer, mark, changed).interval[:2]) for mark in marks}
    kept: tuple[int, float] | None = None
    if budget is not None:
        fits = 0 if math.isinf(result.interval.upper) else checked(most_rounds, budget, changed)
        kept = fits, checked(noise_factor, budget, total, changed)
    if as_json:
        lower, upper, witness = result.interval
        values: dict[str, Any] = {"claimed": result.claimed, "delta": result.delta, "entry": result.entry}
        values |= {"rounds": total, "lower": lower, "upper": upper, "witness": witness or None}
        values |= {"also": result.special, "by_round": table, "rounds_and_noise_for_budget": kept}
        # JSON knows no ∞.
        print(json.dumps(json.loads(json.dumps(values), parse_constant=lambda name: None), indent=1))
        return
    rows = _rows(mechanism, result, total) + [(f"by round {mark}", text, "") for mark, text in table.items()]
    if kept is not None:
        more = f"× {outward(kept[1], up=True)}" if math.isfinite(kept[1]) else "none"
        rows.append((f"rounds for ε = {budget:g}", str(kept[0]), "the most whose upper end keeps it"))
        rows.append((f"noise for ε = {budget:g}", more, f"what all noise is multiplied by, for {total} rounds"))
    print(tabulate(rows, tablefmt="plain", disable_numparse=True))


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


def _rows(mechanism: Mechanism, result: Answer, total: int) -> list[tuple[str, str, str]]:
    claim, about, witness = mechanism.claim, mechanism.about, result.interval.witness
    said = "no number" if result.claimed is None else outward(result.claimed, up=True)
    unit = {"replace": "replaced", "add_remove": "added or removed"}[claim.adjacency]
    rows = [("system", about.title, about.version)] if about else []
    rows += [
        ("claimed ε", said, f"for a {claim.scope}" + (f": “{about.words}”" if about else "")),
        ("true ε", ends(*result.interval[:2]), f"over {total} rounds, for {VIEWS[mechanism.view]}"),
        ("neighbours", f"one {claim.unit}", f"{unit}; δ = {result.delta:g}"),
        ("rests on", result.entry, "the entry that gives away most"),
    ]
    rows += [("witness of ∞", witness, WITNESSES[witness].words)] if witness else []
    return rows + [(f"∞ where {when}", name, WITNESSES[why].words) for name, when, why in result.special if why]
