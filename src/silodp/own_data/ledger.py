"""The ledger of a data file: a line for every model that was released of it, composed by the accountant.

`ledger.csv` lies beside the data. A line belongs to a file by its name, its digest or its columns, so that a corrected
or renamed file goes on in the same ledger. A record counts in the silo of its name in every release.
"""

import dataclasses
import fcntl
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from dp_accounting import ComposedDpEvent

from silodp.config.errors import ConfigError
from silodp.files import write_csv
from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.person import composed_epsilon
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.privacy.selection import selected_epsilon
from silodp.privacy.true_epsilon import epsilon_bounds

COLUMNS = ["time", "file", "sha256", "columns", "run", "algorithm", "M", "R", "epsilon", "delta", "unit", "outcome"]
COLUMNS += ["total_epsilon", "total_delta", "not_private", "mechanism"]
# Key of the plan in a line whose silos were cut at random and have one plan.
ANY = "any silo"

# Name of a silo → its plan.
Plans = Mapping[str, PrivacyPlan]


@contextmanager
def held(data_file: Path) -> Iterator[Path]:
    """The ledger's path, while no other release of these data runs; ConfigError where one does."""
    path = data_file.resolve().parent / "ledger.csv"
    with (path.parent / ".ledger.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"{path}: another release of data in this folder is running: must end first") from None
        yield path


def identity(data_file: Path, columns: Sequence[str]) -> dict[str, str]:
    """What a file is known by: its name, digest and columns."""
    named = hashlib.sha256("\x1f".join(columns).encode()).hexdigest()
    digest = hashlib.sha256(data_file.read_bytes()).hexdigest()
    return {"file": data_file.resolve().name, "sha256": digest, "columns": named}


def read(path: Path) -> pd.DataFrame:
    """All lines; ConfigError for a damaged ledger, without which nothing can be composed."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    try:
        lines = pd.read_csv(path, dtype=str, keep_default_na=False)
        lines["mechanism"].map(plans_of)
    except (ValueError, KeyError, TypeError, OSError) as error:
        allowed = "must be as silodp wrote it: restore it from a copy, as totals need every line"
        raise ConfigError(f"{path}: damaged ({type(error).__name__}): {allowed}") from None
    return lines


def of_file(lines: pd.DataFrame, about: Mapping[str, str]) -> list[Plans]:
    keys = ["file", "sha256", "columns"]
    same = (lines[keys] == [about[key] for key in keys]).any(axis=1)
    return [plans_of(text) for text in lines.loc[same, "mechanism"]]


def append(path: Path, lines: pd.DataFrame, line: Mapping[str, Any]) -> None:
    write_csv(pd.concat([lines, pd.DataFrame([line]).astype(str)])[COLUMNS], path)


def mechanism_of(plans: Plans) -> str:
    distinct = list(dict.fromkeys(plans.values()))
    stored = [dataclasses.asdict(plan) for plan in distinct]
    return json.dumps({"plans": stored, "silos": {name: distinct.index(plan) for name, plan in plans.items()}})


def plans_of(text: str) -> Plans:
    cell, plans = json.loads(text), []
    for keys in cell["plans"]:
        # JSON has no tuples.
        stored: list[dict[str, Any]] = [
            {key: tuple(value) if isinstance(value, list) else value for key, value in release.items()}
            for release in keys["releases"]
        ]
        releases = tuple(Release(**release) for release in stored)
        plans.append(PrivacyPlan(**keys | {"budget": Budget(**keys["budget"]), "releases": releases}))
    return {name: plans[number] for name, number in cell["silos"].items()}


def total(releases: Sequence[Plans], silos: int = 1, records: int = 1) -> tuple[float, float]:
    """(ε, δ) of all releases together, for a person with at most `records` records in each of `silos` silos.

    For one record each silo's releases compose by the accountant, and the worst silo counts. A person's silos compose
    as releases where they are alike, else by basic composition at δ/s (as `persons_epsilon`).
    """
    names = dict.fromkeys(name for plans in releases for name in plans)
    histories = [
        tuple(plan for plans in releases if (plan := plans.get(name, plans.get(ANY))) is not None) for name in names
    ]
    distinct = list(dict.fromkeys(histories))
    deltas = [max(plan.budget.delta for plan in history) for history in distinct]
    parts = silos if len(distinct) > 1 else 1

    def epsilon(history: Sequence[PrivacyPlan], delta: float) -> float:
        if (silos, records) == (1, 1):
            return composed_upper(history, delta)
        if parts > 1 and any(plan.trusted_sum is not None for plan in history):
            return math.inf  # silos behind a trusted sum share one noise, so their transcripts do not compose
        return parts * composed_epsilon(history, delta / parts, silos // parts, records)

    def with_selections(history: Sequence[PrivacyPlan], delta: float) -> float:
        """Rényi divergences add up; so do ε of each selection and of all else, at equal shares of δ."""
        selected, rest = ([plan for plan in history if (plan.tries > 1) == kind] for kind in (True, False))
        if not selected or parts > 1:
            # What is chosen among runs of all silos does not compose silo by silo.
            return math.inf if selected else epsilon(history, delta)
        share = delta / (len(selected) + bool(rest))
        each = [selected_epsilon([plan], share, silos, records) for plan in selected]
        apart = sum(each) + (epsilon(rest, share) if rest else 0.0)
        return min(selected_epsilon(history, delta, silos, records), apart)

    return max(map(with_selections, distinct, deltas), default=0.0), max(deltas, default=0.0)


def composed_upper(history: Sequence[PrivacyPlan], delta: float) -> float:
    """Upper ε at δ of replacing one record of a silo that releases by all these plans."""
    if len(history) == 1:
        return epsilon_bounds(history[0]).upper
    return delivered_epsilon(ComposedDpEvent([plan.as_seen_by_adversary.event for plan in history]), delta).upper
