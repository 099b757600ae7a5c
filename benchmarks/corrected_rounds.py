"""ε by round of published rows whose silos have unlike δ: each silo's was at its own δ, and is at the row's.

    python benchmarks/corrected_rounds.py results/published > benchmarks/corrected_rounds.csv
    python benchmarks/corrected_rounds.py --apply results/published > benchmarks/corrected_rounds.csv

Nothing is trained. `--apply` writes the cells too, after which a second list is empty; `make report`
makes figures, page and the rest of the manifest again.
"""

import csv
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from corrected_ends import _counted, _sizes_of, note_changed, published_phase
from silodp.config.experiment import Experiment
from silodp.experiments.privacy_table import _distinct_plans, _largest_by_round, by_round_rows
from silodp.experiments.task import task_at
from silodp.experiments.validation import load

COLUMNS = ["epsilon_first_round", "epsilon_half_rounds"]
KEYS = ["experiment", "algorithm", "M", "R", "phase_length", "round"]


def moved(publication: Path) -> Iterator[tuple[str, int, str, float, float]]:
    """(file, line from 0, column, old, new) of every cell that moves."""
    resolved = load(publication / "config.json")
    sizes = functools.cache(functools.partial(_sizes_of, resolved))
    rows = pd.read_csv(publication / "privacy.csv")
    rows["reading"] = rows["reading"].astype(object).fillna("")
    unlike: dict[str, list[int]] = {}
    for line, row in enumerate(rows.to_dict("records")):
        name = row["experiment"]
        config = resolved.experiments[name]
        task = task_at(name, config, row)
        if pd.isna(row["epsilon_half_rounds"]) or task.readings.records == "equal":
            continue
        counted = _counted(task)
        distinct = sorted({counted(n): n for n in sorted(sizes(name, task.readings.split), reverse=True)}.values())
        if len({config.delta_of(counted(n)) for n in distinct}) == 1:
            continue
        unlike[name] = list(sizes(name, task.readings.split))
        phase = published_phase(task, row, distinct)
        assert phase is not None, row
        algorithm = task.make(phase, row["epsilon"], min(distinct))
        plans = _distinct_plans(task, row["epsilon"], phase, distinct)
        new = _largest_by_round(algorithm, plans, (1, max(algorithm.rounds // 2, 1)))
        yield from (("privacy.csv", line, *cell) for cell in zip(COLUMNS, [row[c] for c in COLUMNS], new, strict=True))
    table = pd.read_csv(publication / "by_round.csv")
    for name, records in unlike.items():
        config: Experiment = resolved.experiments[name]
        new = by_round_rows(name, config, records)
        old = table[table["experiment"] == name]
        assert old[KEYS].values.tolist() == new[KEYS].values.tolist()
        yield from (
            ("by_round.csv", int(line), "epsilon", before, after)
            for line, before, after in zip(old.index, old["epsilon"], new["epsilon"], strict=True)
        )


def main() -> None:
    publication = Path(sys.argv[-1])
    cells = pd.DataFrame(moved(publication), columns=["file", "line", "column", "old", "new"])
    cells = cells[cells["old"] != cells["new"]]
    cells.to_csv(sys.stdout, index=False)
    if sys.argv[1] == "--apply":
        for name, of in cells.groupby("file"):
            with (publication / str(name)).open(newline="", encoding="utf-8") as text:
                header, *lines = csv.reader(text)
            for cell in of.to_dict("records"):
                lines[cell["line"]][header.index(cell["column"])] = repr(float(cell["new"]))
            with (publication / str(name)).open("w", newline="", encoding="utf-8") as text:
                csv.writer(text, lineterminator="\n").writerows([header, *lines])
        note_changed(publication, set(cells["file"]))


if __name__ == "__main__":
    main()
