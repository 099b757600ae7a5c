"""The default run through a real Slurm of two nodes: every table of it is that of a rebuild on one machine."""

import pytest
from faults import Fault
from rebuilds import Rebuild
from runs import checkout, contents, rebuild_in

pytestmark = pytest.mark.slurm

# What a rebuild measures or decides; the rest are pictures of it, and records of when and where it ran.
MEASURED = ("trials/", "selection/", "tables/", "reported/", "privacy/", "silos/")
FILES = ("audit.csv", "by_round.csv", "claims.csv", "comparisons.csv", "formulas.csv", "privacy.csv")


def test_its_tables_are_those_of_one_machine(slurm, tmp_path, faults):
    for name in ("local", "cluster"):
        (tmp_path / name).mkdir()
    local, cluster = checkout(tmp_path / "local"), checkout(tmp_path / "cluster")
    done = rebuild_in(local, "default")
    assert done.returncode == 0, done.stderr[-3000:]
    rebuild = Rebuild(cluster, slurm, "--configfile", "config/default.yaml")
    with rebuild:
        rebuild.finish(1800)
    # A line is: event, time, number in Slurm, node, words; "-" for a node is where Snakemake runs.
    ended = [line.split() for line in rebuild.ledger.read_text().splitlines() if line.startswith("end-0 ")]
    assert {node for _, _, _, node, *_ in ended} >= set(slurm.nodes)
    ours, theirs = (contents(folder / "results" / "default") for folder in (cluster, local))
    measured = {name for name in theirs if name.startswith(MEASURED) or name in FILES}
    assert measured >= set(FILES) | {"tables/wbcd_mlp.csv", "tables/digits_mlp.csv"}
    assert {name for name in ours if name.startswith(MEASURED) or name in FILES} == measured
    different = {name for name in measured if ours[name] != theirs[name]}
    through = sum(node != "-" for _, _, _, node, *_ in ended)
    happened = f"the default run: {len(ended)} jobs, {through} through Slurm; {len(measured)} tables and trials"
    faults.append(Fault("none, `config/default.yaml`", happened, "nothing", not different))
    assert different == set()
