"""Names in paths of what belongs to an experiment: variants, partitions, figures. Planning needs no more than this."""

from silodp.algorithms import ALGORITHMS
from silodp.config.experiment import Experiment
from silodp.config.readings import OF_SOME
from silodp.files import figure_name


def slug(label: str) -> str:
    """A reading's label as part of a file name; the default reading is `default`."""
    return label.replace("=", "-").replace(";", "+").replace("/", "") or "default"


def readings_of(config: Experiment) -> dict[str, str]:
    """Name in paths → label, for every reading of an experiment."""
    return {slug(label): label for label in config.variants()}


# Keys of a reading that decide its silos and records.
CUTTING = {"resample", "split", "standardise"}


def partitioned_as(config: Experiment, reading: str) -> str:
    """The reading whose partition `reading` trains on, as in paths: the default, unless its silos differ."""
    other = config.variants()[readings_of(config)[reading]]
    same = all(getattr(other, key) == getattr(config.readings, key) for key in CUTTING)
    return "default" if same else reading


def figure_names(name: str, config: Experiment) -> dict[str, dict]:
    """Figure of an experiment → what it shows: kind, M, R, reading. That of both noises stands for either's errors."""
    found = {}
    for label in config.variants():
        kinds = ["error_vs_epsilon", "delivered_vs_claimed", *([] if label else ["error_vs_delivered"])]
        if "noise=calibrated" in config.variants():
            kinds = {"": kinds[1:2], "noise=calibrated": ["both_noises", kinds[1]]}.get(label, kinds[:1])
        for setting in config.settings:
            for kind in kinds:
                shows = {"experiment": name, "M": setting.M, "R": setting.R, "reading": label, "kind": kind}
                found[figure_name(name, setting.M, setting.R, label, kind)] = shows
    return found


def trained_tasks(config: Experiment) -> list[tuple[str, str, str]]:
    """(algorithm, setting, reading) of all tasks that are trained, by their names in paths."""
    return [
        (algorithm, setting.name, reading)
        for algorithm in config.algorithms
        for setting in config.settings
        for reading, label in readings_of(config).items()
        if trained_as(config, algorithm, label) == label
    ]


def trained_as(config: Experiment, algorithm: str, label: str) -> str | None:
    """Label of the variant whose runs stand for `label`: the default's where it does not apply to `algorithm`.

    None where the algorithm is not run under that variant.
    """
    if not label:
        return ""
    keys, only = config.changes()[label]
    if only is not None and algorithm not in only:
        return None
    return label if keys - OF_SOME or keys & ALGORITHMS[algorithm].variants else ""
