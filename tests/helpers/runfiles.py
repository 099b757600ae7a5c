"""A project of small experiments, and run files that override them."""

from pathlib import Path

import pytest
import yaml
from small import experiment

from silodp.config.errors import ConfigError
from silodp.config.loading import read_run
from silodp.experiments.validation import load
from silodp.extending import plugins

# The project's run files, and their parts by the names that stand for them.
FILES = sorted((Path(__file__).parents[2] / "config").glob("*.yaml"))
RUNS = [
    path for file in FILES for path in (file, *(file.with_stem(f"{file.stem}-{part}") for part in read_run(file).parts))
]


def project(tmp_path: Path) -> Path:
    """A project with three experiments of its own, valid as they stand."""
    folder = tmp_path / "config" / "experiments"
    folder.mkdir(parents=True)
    base = experiment().model_dump(mode="json", exclude_none=True)
    pairs = {"dataset": "digits", "label": "parity", "silos": {"scheme": "digit_pairs"}}
    pairs |= {"model": {"name": "logistic"}, "settings": [{"M": 25, "R": 3}]}
    patients = {"dataset": "diabetes", "label": "target", "silos": {"scheme": "sorted_target", "count": 5}}
    patients |= {"model": {"name": "linear"}, "settings": [{"M": 5, "R": 3}]}
    for name, changes in {"cancer": {}, "pairs": pairs, "patients": patients}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(base | changes))
    return tmp_path


def write(root: Path, content) -> Path:
    """The run file of a project."""
    path = root / "config" / "run.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return path


def overriding(name="cancer", **overrides) -> dict:
    """A run of one experiment with keys of its own."""
    return {"run": "r", "experiments": {name: overrides}}


def message(root: Path, content) -> str:
    """What is wrong with a run file."""
    with pytest.raises(ConfigError) as caught:
        load(write(root, content), root)
    text = str(caught.value)
    assert "\n" not in text
    return text


def deactivate_plugins() -> None:
    for registry, name in plugins._ACTIVE:
        plugins._entries(registry).pop(name)
    plugins._ACTIVE.clear()
