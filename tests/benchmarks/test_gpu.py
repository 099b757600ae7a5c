"""The GPU benchmark: a row for each piece of work, and a device held against itself loses nothing."""

import gpu


def test_a_device_against_itself_gives_the_same_losses(capsys):
    assert gpu.main(["--quick", "--repeats", "1", "--devices", "cpu", "cpu"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| wbcd_mlp")]
    assert [row[2] for row in rows] == ["`minibatch_sgd`", "`local_sgd`"]
    for row in rows:
        assert row[6:] == ["1", "0", "0", row[3], "yes |"]
