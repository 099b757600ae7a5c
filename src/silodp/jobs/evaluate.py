"""Train an experiment's algorithms at the chosen points."""

from pathlib import Path

from silodp.experiments.validation import experiment_of
from silodp.experiments.variants import partitioned_as, trained_tasks
from silodp.jobs.train import train


def evaluate(
    run_file: Path,
    experiment: str,
    chosen: Path,
    silos: Path,
    folder: Path,
    trials: str = "all",
    threads: int | None = None,
) -> None:
    """Train all algorithms of an experiment at the chosen points, with fresh noise.

    `silos` holds the experiment's partitions; `folder` gets <algorithm>/<setting>/<reading>_fresh<trials>.parquet.
    """
    _, config = experiment_of(run_file, experiment)
    name = f"fresh{trials.removeprefix('all')}.parquet"
    for algorithm, setting, reading in trained_tasks(config):
        parts, output = silos / partitioned_as(config, reading), folder / algorithm / setting / f"{reading}_{name}"
        train(run_file, experiment, algorithm, setting, parts, output, reading, trials, threads, chosen)
