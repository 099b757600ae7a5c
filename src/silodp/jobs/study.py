"""Judge the models of an experiment on your own file."""

import json
from collections.abc import Sequence
from pathlib import Path

from silodp.experiments.columns import TABLE_COLUMNS
from silodp.experiments.planned_rows import CHOSEN
from silodp.experiments.validation import experiment_of
from silodp.files import read_parquet, read_table, with_reading, write_text
from silodp.models.threads import use_threads
from silodp.own_data.study import study as judge
from silodp.partition.trial_data import load_dataset, stored_trials
from silodp.report.figures import save
from silodp.report.figures.own_study_picture import study_figure


def study(
    run_file: Path, experiment: str, chosen: Path, silos: Path, table: Path, formats: Sequence[str], output: Path
) -> None:
    """Judge the chosen models by silo and class, beside plain baselines; a figure is drawn beside `output`."""
    run, config = experiment_of(run_file, experiment)
    use_threads(run.threads)
    rows, points = with_reading(read_table(table, TABLE_COLUMNS)), read_parquet(chosen, CHOSEN)
    prepared = stored_trials(silos, config, config.readings, run)
    found = judge(experiment, config, run, load_dataset(config, run), rows, points, prepared)
    ylabel = "typical error, as a share of guessing's" if found["task"] == "regression" else "share of wrong answers"
    save(study_figure(found["models"], config.title, ylabel), output.with_suffix(""), formats)
    write_text(json.dumps(found, indent=1, ensure_ascii=False), output)
