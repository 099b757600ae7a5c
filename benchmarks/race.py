"""What a race over the grid saves and what it loses, played again on the whole grids of a finished run.

    make reproduce RUN=tuning
    python benchmarks/race.py config/tuning.yaml --output benchmarks/RACE.md

Experiments of the run that were raced are left out. A cell is one ε of one algorithm in one setting. Its whole grid's
choice is the point with the smallest training loss, mean over all trials of the run; the race sees one trial of most
points, and of the best a few. Regret is how much larger the mean over all trials is at the point that the race ends
with. Cost counts trained runs, each as one.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from marked import RACE, write_between
from silodp.algorithms import traits
from silodp.config.experiment import Race
from silodp.experiments.race import finalists, play
from silodp.experiments.selection import scores
from silodp.experiments.task import POINT
from silodp.experiments.validation import load
from silodp.workflow.job_digest import RunPlan

HEADINGS = [
    "experiment", "setting", "algorithm", "cells", "same choice", "regret, training loss", "largest",
    "regret, test error", "runs, race", "runs, whole grid", "share",
]  # fmt: skip


def cells(race: Race, grid: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """One row for each ε: whether the race's choice is the whole grid's, and what it costs where it is not."""
    trials = trials.assign(score=scores(trials))
    order = grid.assign(order=range(len(grid)))
    means = trials.groupby(POINT, dropna=False, as_index=False)[["score", "test_error"]].mean().merge(order, on=POINT)

    def train(some: pd.DataFrame) -> pd.DataFrame:
        return some.merge(trials[[*POINT, "trial", "train_loss"]], on=[*POINT, "trial"])

    done = play(race, grid, train)
    raced = finalists(done).assign(score=lambda found: scores(found))
    ends = raced.groupby(POINT, dropna=False, as_index=False)["score"].mean().merge(order, on=POINT)
    best = {"whole": means, "race": ends}
    chosen = {
        name: frame.sort_values(["score", "order"], kind="stable")
        .drop_duplicates("epsilon")[POINT]
        .merge(means, on=POINT)
        for name, frame in best.items()
    }
    both = chosen["whole"].merge(chosen["race"], on="epsilon", suffixes=("", "_race"))
    return both.assign(
        same=both["order"] == both["order_race"],
        loss=both["score_race"] / both["score"] - 1,
        error=both["test_error_race"] - both["test_error"],
        raced=len(done),
        whole=len(trials),
    )


def rows(plan: RunPlan) -> list[list[str]]:
    """The table, a line for each algorithm and setting, and one for all."""
    found = []
    whole = {name: config for name, config in plan.experiments.items() if config.tuning == "full"}
    for name, config in whole.items():
        for algorithm in config.algorithms:
            for setting in config.settings:
                files = [f for f in plan.grids(name) if f"/{algorithm}/{setting.name}/default_" in f]
                trials = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
                grid = plan.task(name, algorithm, setting.name, "default").grid()
                own = cells(config.race, grid, trials)
                found.append((name, setting.name, algorithm, own))
    lines = [
        [
            name,
            setting.replace("_", ", ").replace("M", "M = ").replace("R", "R = "),
            traits(algorithm).label,
            *_said(own),
        ]
        for name, setting, algorithm, own in found
    ]
    whole = pd.concat([own.assign(raced=own["raced"] / len(own), whole=own["whole"] / len(own)) for *_, own in found])
    whole = whole.assign(raced=whole["raced"].sum(), whole=whole["whole"].sum())
    return [*lines, ["all", "", "", *_said(whole)]]


def _said(own: pd.DataFrame) -> list[str]:
    raced, whole = round(own["raced"].iloc[0]), round(own["whole"].iloc[0])
    return [
        f"{len(own)}",
        f"{own['same'].mean():.0%}",
        f"{own['loss'].mean():+.2%}",
        f"{own['loss'].max():+.2%}",
        f"{own['error'].mean():+.4f}",
        f"{raced:,}",
        f"{whole:,}",
        f"{raced / whole:.1%}",
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it into a page; returns 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("run_file", type=Path, help="of a finished run with whole grids")
    parser.add_argument("--output", type=Path, help="page that has the table's marks")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    table = [HEADINGS, ["---"] * len(HEADINGS), *rows(RunPlan(load(options.run_file)))]
    text = "\n".join(f"| {' | '.join(row)} |" for row in table)
    if options.output:
        write_between(options.output, *RACE, text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
