"""Ends of ε of published rows, held against today's code: what moves, and whether the claim's word changes.

    python benchmarks/corrected_ends.py results/published* > benchmarks/corrected_ends.csv
    python benchmarks/corrected_ends.py --apply benchmarks/corrected_ends.csv results

A row's ends were once the worst silo's, at that silo's own δ, beside the largest δ. They are the largest at that δ.
Nothing is trained: plans follow from the published config and the sizes of the silos of trial 0.
"""

import csv
import functools
import io
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from silodp.config.experiment import Experiment
from silodp.config.loading import Resolved
from silodp.config.run_keys import Run
from silodp.datasets.own.rules import own_sizes
from silodp.experiments.task import Task, rounded_down, task_at
from silodp.experiments.validation import load
from silodp.partition.experiment_data import dataset_of, number_of_silos
from silodp.partition.partition import partition
from silodp.partition.trial_data import load_dataset
from silodp.privacy.plan import PrivacyPlan, at_largest_delta
from silodp.privacy.standing import standing
from silodp.privacy.true_epsilon import ends, refuting_epsilon
from silodp.streams import Streams
from silodp.workflow.contents import MANIFEST
from silodp.workflow.digests import checksum

COLUMNS = ["publication", "experiment", "algorithm", "reading", "M", "R", "epsilon", "delta", "silos"]
COLUMNS += ["old_lower", "new_lower", "old_upper", "new_upper", "old_claim", "new_claim", "note"]
Ends = tuple[float, float]

_delivered, _reached = functools.cache(lambda plan: ends([plan])), functools.cache(refuting_epsilon)


def training_sizes(name: str, config: Experiment, run: Run, resample: bool, split: str) -> list[int]:
    """Training records of each silo of trial 0, as the partition job cuts them."""
    sizes = own_sizes(config, dataset_of(config))
    if sizes is not None:
        return sizes
    data, plan = load_dataset(config, run), config.silos
    part = partition(
        data.y,
        scheme=plan.scheme,
        silos=number_of_silos(config),
        train_share=plan.train_share,
        mixed=plan.mixed,
        per_class=plan.per_class,
        resample=resample,
        split=split,
        official_test=data.official_test if plan.official_test else None,
        assigned=data.silo if len(data.silo) else None,
        person=data.person,
        generator=Streams(run.seed).generator(name, 0, "partition"),
    )
    return [len(records) for records in part.train]


def row_ends(
    task: Task, epsilon: float, phase: int, sizes: list[int], everyone: bool
) -> tuple[Ends, PrivacyPlan, int]:  # fmt: skip
    """(lower, upper) end of a row at its largest δ, the silo's plan behind the upper one, how many silos were asked.

    Silos are asked from the smallest on: its δ is the row's, and a larger silo's ε at that δ is less. The search ends
    where a silo's upper end lies below the lower end so far.
    """
    lower, asked, worst = -math.inf, 0, None
    for n in sizes:
        (plan,) = at_largest_delta(task.plans(epsilon, phase, [sizes[0], n]))[-1:]
        found = _delivered(plan)
        asked += 1
        if worst is None or np.nan_to_num(found.upper, nan=math.inf) > np.nan_to_num(
            _delivered(worst).upper, nan=math.inf
        ):
            worst = plan
        lower = float(np.maximum(lower, _reached(plan, found, everyone)))
        if found.upper < (_delivered(worst).lower if math.isnan(lower) else lower):
            break
    assert worst is not None
    return (lower, _delivered(worst).upper), worst, asked


def moved_rows(publication: Path) -> Iterator[dict]:
    """Rows of a publication's privacy.csv with silos of unlike δ, and their ends now."""
    resolved = load(publication / "config.json")
    rows = pd.read_csv(publication / "privacy.csv")
    rows["reading"] = rows["reading"].astype(object).fillna("")
    sizes = functools.cache(functools.partial(_sizes_of, resolved))
    for row in rows.to_dict("records"):
        name, config = row["experiment"], resolved.experiments[row["experiment"]]
        task = task_at(name, config, row)
        if task.readings.resample or task.readings.clip_rule != "grid" or task.readings.records == "equal":
            continue
        records = sizes(name, task.readings.split)
        # One silo of each plan, from the smallest on.
        counted = _counted(task)
        unlike = sorted({counted(n): n for n in sorted(records, reverse=True)}.values())
        if len({config.delta_of(counted(n)) for n in unlike}) == 1:
            continue
        phase = published_phase(task, row, unlike)
        if phase is None:
            yield _line(publication, row, (math.nan, math.nan), 0, "no phase length gives the published noise")
            continue
        new, worst, asked = row_ends(task, row["epsilon"], phase, unlike, row["M"] == len(records))
        other = "" if worst.sampling == row["sampling"] else f"now the silo with {worst.sampling}"
        yield _line(publication, row, new, asked, other)


def published_phase(task: Task, row: dict, sizes: list[int]) -> int | None:
    """The phase length behind a published row, by the noise multiplier of the silo that it names."""
    grid = task.grid()
    phases = sorted({int(phase) for phase in grid.loc[grid["epsilon"] == row["epsilon"], "phase_length"]})
    for phase, n in itertools.product(phases, sizes):
        if f" of {_counted(task)(n)} " not in f"{row['sampling']} ":
            continue
        plan = task.plans(row["epsilon"], phase, [sizes[0], n])[-1]
        # A calibrated noise is found to 1e-4.
        if math.isclose(plan.as_seen_by_adversary.noise_multiplier, row["noise_multiplier"], rel_tol=3e-4):
            return phase
    return None


def _counted(task: Task) -> Callable[[int], int]:
    return rounded_down if task.readings.records == "rounded" else int


def _sizes_of(resolved: Resolved, name: str, split: str) -> tuple[int, ...]:
    return tuple(training_sizes(name, resolved.experiments[name], resolved.run, False, split))


def _line(publication: Path, row: dict, new: Ends, asked: int, note: str) -> dict:
    line = {name: row[name] for name in COLUMNS[1:8]} | {"publication": publication.name, "silos": asked, "note": note}
    line |= {"old_lower": row["delivered_lower"], "new_lower": new[0]}
    line |= {"old_upper": row["delivered_epsilon"], "new_upper": new[1]}
    return line | {"old_claim": row["claim"], "new_claim": str(standing(row["epsilon"], *new))}


def apply(listed: Path, publications: Path) -> None:
    """Write the listed ends into privacy.csv, tables and their digests in the manifest; no other cell changes.

    `make report` and `silodp crate` then make page, figures and the rest of the manifest again.
    """
    moves = pd.read_csv(listed, dtype=str, keep_default_na=False)
    for place, rows in moves.groupby("publication"):
        folder, changed = publications / str(place), set()
        for file in (folder / "privacy.csv", *(folder / f"tables/{name}.csv" for name in rows["experiment"].unique())):
            own = rows if file.name == "privacy.csv" else rows[rows["experiment"] == file.stem]
            _apply_to(file, own.to_dict("records"))
            changed.add(file.relative_to(folder).as_posix())
        note_changed(folder, changed)


def note_changed(folder: Path, changed: set[str]) -> None:
    """Write the digests of changed files into a publication's manifest."""
    record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    for entry in record["@graph"]:
        if entry["@id"] in changed:
            file = folder / entry["@id"]
            entry |= {"sha256": checksum(file), "contentSize": str(file.stat().st_size)}
    (folder / MANIFEST).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _apply_to(file: Path, moves: list[dict[str, str]]) -> None:
    with file.open(newline="", encoding="utf-8") as text:
        header, *cells = csv.reader(text)
    at = {name: header.index(name) for name in header}
    keys = [name for name in ("experiment", "algorithm", "reading", "M", "R", "epsilon") if name in at]
    wanted = {(*(move[name] for name in keys), move["old_upper"]): move for move in moves}
    for row in cells:
        move = wanted.get((*(row[at[name]] for name in keys), row[at["delivered_epsilon"]]))
        if move:
            row[at["delivered_epsilon"]] = move["new_upper"]
            row[at["delivered_lower"]] = move["new_lower"] if row[at["delivered_lower"]] else ""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([header, *cells])
    file.write_text(lines.getvalue(), encoding="utf-8")


def main() -> None:
    if sys.argv[1] == "--apply":
        apply(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for folder in sys.argv[1:]:
        for line in moved_rows(Path(folder)):
            writer.writerow(line)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
