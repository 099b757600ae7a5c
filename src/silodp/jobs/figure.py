"""Draw figures of an experiment's table."""

from collections.abc import Sequence
from pathlib import Path

from silodp.config.experiment import Experiment
from silodp.experiments.columns import REPORTED_COLUMNS, TABLE_COLUMNS
from silodp.experiments.validation import experiment_of
from silodp.experiments.variants import figure_names
from silodp.files import read_table, with_reading
from silodp.report.figures import FIGURES, save
from silodp.report.figures.reader_words import setting_words, short_title, variant_words
from silodp.report.figures.slices import with_intervals


def figure(
    run_file: Path,
    experiment: str,
    names: Sequence[str],
    table: Path,
    reported: Path,
    folder: Path,
    formats: Sequence[str],
) -> None:
    """Draw figures, called as in wbcd_mlp_M2_R25; where trials are few, intervals are of the trials `reported`."""
    _, config = experiment_of(run_file, experiment)
    known = figure_names(experiment, config)
    rows = with_intervals(with_reading(read_table(table, TABLE_COLUMNS)), read_table(reported, REPORTED_COLUMNS))
    for name in names:
        shows = known[name]
        # Calibrated noise is shown beside the paper's.
        readings = {shows["reading"]} | ({""} if shows["kind"] == "both_noises" else set())
        chosen = rows[(rows["M"] == shows["M"]) & (rows["R"] == shows["R"]) & rows["reading"].isin(readings)]
        words = {"title": _title(experiment, config, shows)}
        if shows["kind"] != "delivered_vs_claimed":
            words["ylabel"] = "test error"
            if config.label == "target":
                words |= {"ylabel": "relative test RMSE", "note": "1: as good as the mean of the training targets."}
        save(FIGURES[shows["kind"]](chosen, **words), folder / name, formats)


def _title(experiment: str, config: Experiment, shows: dict) -> str:
    reading = f", {variant_words(shows['reading'])}" if shows["reading"] else ""
    title = f"{short_title(experiment, config.short, config.title)}\n{setting_words(shows['M'], shows['R'])}{reading}"
    readings = config.variants().get(shows["reading"], config.readings)
    unproven = readings.noise == "paper" and (readings.clipping != "record" or readings.clip_rule != "grid")
    return title + (" – not private as claimed" if unproven else "")
