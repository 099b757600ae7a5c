"""The GPU benchmark: a row for each piece of work, and a device held against itself loses nothing."""

import pytest
import torch

import gpu
from gpu_forms import TARGETS, measure_forms, targets_table


def test_a_device_against_itself_gives_the_same_losses(capsys):
    assert gpu.main(["--quick", "--repeats", "1", "--devices", "cpu", "cpu"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| wbcd_mlp")]
    assert [row[2] for row in rows] == ["`minibatch_sgd`", "`local_sgd`"]
    for row in rows:
        assert row[6:] == ["1", "0", "0", row[3], "yes |"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_nothing_stands_as_measured(capsys):
    assert gpu.main([]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("|")][2:]
    assert [row[1].strip() for row in rows] == list(TARGETS)
    assert all(row[4].strip() == row[5].strip() == "" for row in rows)
    assert sum(row[6].strip() != "" for row in rows) == 6


def test_a_target_is_met_on_its_own_side():
    found = {name: 7.0 for name in TARGETS}
    met = [row.split("|")[5].strip() for row in targets_table(found)[2:]]
    assert met == ["", "no", "no", "", "no", "", "no", "no", "no", "yes", "yes"]


def test_a_rebuild_on_a_gpu_is_expected_to_take_minutes_and_a_small_problem_stays_on_the_cpu():
    assert 1 < gpu.auto_cost(16) < 60
    assert [gpu.is_faster(piece.task.config) for piece in gpu.pieces(gpu.FULL[:1])] == [False, False]


def test_the_forms_run_at_a_small_size_on_a_cpu():
    found = measure_forms(torch.device("cpu"), shrink=64)
    assert set(found) >= {name for name in list(TARGETS)[:6] if "perceptron local" not in name}
    assert all(value > 0 for value in found.values())
