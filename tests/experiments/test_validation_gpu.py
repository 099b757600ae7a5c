"""Experiments that ask for a GPU: left out where there is none, kept where there is one or the variable says so."""

from pathlib import Path

import pytest
import small

from silodp.config import loading as config
from silodp.config.errors import ConfigError
from silodp.experiments.validation import load

PAPER = small.ROOT / "config" / "paper.yaml"


@pytest.mark.parametrize(
    ("said", "here", "kept"), [("", False, False), ("", True, True), ("1", False, True), ("0", True, False)]
)
def test_an_experiment_on_cuda_is_kept_where_a_device_can_be_had(monkeypatch, said, here, kept):
    monkeypatch.setenv("SILODP_CUDA", said)
    monkeypatch.setattr(config.Path, "exists", lambda path: here)
    found = load(PAPER)
    assert ("cifar10_cnn" in found.experiments) == kept
    assert found.left_out == ([] if kept else ["cifar10_cnn"])
    assert "mnist_mlp" in found.experiments


def test_nothing_left_and_a_variable_of_another_kind_are_refused(monkeypatch, tmp_path):
    path = Path(tmp_path / "run.yaml")
    path.write_text("run: r\nexperiments: {cifar10_cnn: {device: cuda}}\n")
    monkeypatch.setenv("SILODP_CUDA", "0")
    with pytest.raises(ConfigError, match=r"run\.yaml: experiments: cifar10_cnn: must be run where there is a CUDA"):
        load(path)
    monkeypatch.setenv("SILODP_CUDA", "yes")
    with pytest.raises(ConfigError, match="environment: SILODP_CUDA: 'yes': must be 0 or 1"):
        load(path)
