"""An algorithm of one's own, in a folder of its own, through the whole workflow to its page."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import runs

RUN = """\
run: toy
plugins: [../own/toy_sign.py]
experiments:
  wbcd_mlp:
    trials: 2
    epsilons: [3]
    stepsizes: {low: -3, high: 0, points: 2, spacing: exponential}
    clips: [1]
    phase_lengths: [1]
    settings: [{M: 2, R: 5}]
    algorithms: {fedprox_spider: null, fed_spider: null, local_sgd: null, toy_sign: {options: {damping: 0.25}}}
"""


def again(folder: Path) -> str:
    """What a dry run would do."""
    result = runs.run(folder, "--configfile", "config/toy.yaml", "--dry-run")
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout + result.stderr


@pytest.mark.slow
def test_a_toy_goes_from_its_file_to_figure_and_page(tmp_path):
    folder = runs.checkout(tmp_path)
    (folder / "own").mkdir()
    toy = Path(shutil.copy(Path(runs.__file__).parent / "toy_sign.py", folder / "own"))
    (folder / "config" / "toy.yaml").write_text(RUN)
    result = runs.run(folder, "--configfile", "config/toy.yaml")
    assert result.returncode == 0, result.stderr[-3000:]
    results = folder / "results" / "toy"
    table = pd.read_csv(results / "tables" / "wbcd_mlp.csv")
    assert set(table["algorithm"]) == {"minibatch_sgd", "toy_sign"}
    assert set(pd.read_csv(results / "audit" / "wbcd_mlp.csv")["algorithm"]) == {"minibatch_sgd", "toy_sign"}
    assert "ISRL-DP Toy sign SGD" in (results / "figures" / "wbcd_mlp_M2_R5.svg").read_text()
    assert "Toy sign SGD" in (results / "report.html").read_text()
    # The folder is read without the plug-in's own place.
    assert (results / "source" / "plugins" / "toy_sign.py").read_text() == toy.read_text()
    assert json.loads((results / "config.json").read_text())["plugins"] == ["source/plugins/toy_sign.py"]
    assert "Nothing to be done" in again(folder)
    text = toy.read_text()
    toy.write_text(text.replace("SCALE =", "# A comment.\nSCALE ="))
    assert "rule train" not in again(folder)
    toy.write_text(text.replace("SCALE = 0.5", "SCALE = 0.75"))
    told = again(folder)
    assert "trials/wbcd_mlp/toy_sign/" in told
    assert told.split("Job stats:")[1].count("train ") == 1
    toy.unlink()
    assert runs.run(folder, "--configfile", "config/toy.yaml", "--dry-run").returncode == 2
    command = [runs.sys.executable, "-m", "silodp", "verify", str(results)]
    verified = runs.subprocess.run(command, cwd=folder, env=runs.environment(), check=False)
    assert verified.returncode == 0
