"""Bad input through Snakemake: one line, exit code 2, and nothing is started."""

import pytest
from runs import checkout, run


@pytest.mark.parametrize(
    ("overrides", "options", "line"),
    [
        ("{epsilons: [-1]}", (), "config/bad.yaml: experiments.wbcd_mlp.epsilons[0]: -1"),
        ("{}", ("--config", "seed=3"), "--config: must be one run file"),
        ("{}", ("--configfile", "config/smoke.yaml"), "--configfile, --config: must be"),
    ],
)
def test_bad_input_stops_before_any_job_with_one_line_and_exit_code_2(tmp_path, overrides, options, line):
    """The checks of run files have their tests without Snakemake."""
    folder = checkout(tmp_path)
    (folder / "config" / "bad.yaml").write_text(f"run: x\nexperiments: {{wbcd_mlp: {overrides}}}")
    result = run(folder, "--configfile", "config/bad.yaml", *options)
    assert result.returncode == 2
    assert len([printed for printed in result.stderr.splitlines() if line in printed]) == 1
    assert "Traceback" not in result.stderr
    assert not (folder / "results").exists()
