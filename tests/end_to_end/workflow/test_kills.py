"""Killing a rebuild at random moments and starting it again ends in the tables of an undisturbed rebuild."""

import os
import random

import pandas as pd
import pytest
from storm import Storm

SEED = int(os.environ.get("SILODP_SEED", random.SystemRandom().randrange(10**6)))
KILLS = int(os.environ.get("SILODP_KILLS", "200"))
# Kills before a rebuild runs to its end and its results are compared.
ROUND = 10


@pytest.mark.slow
def test_random_kills_of_a_rebuild_end_in_the_same_tables(tmp_path):
    """`SILODP_KILLS` kills (200) of parent, Snakemake, group or a job, at moments from `SILODP_SEED`."""
    print(f"seed {SEED}")
    storm, done, survived = Storm(tmp_path, SEED, "tables"), 0, 0
    while done < KILLS:
        storm.wipe()
        before = storm.kills.total()
        while storm.kills.total() < min(before + ROUND, KILLS):
            if storm.kill() is None:
                storm.wipe()
            # A killed job leaves no file that looks finished.
            for path in storm.results.rglob("[!.]*.parquet"):
                assert len(pd.read_parquet(path))
        storm.finish()
        number = storm.kills.total() - before
        done += number
        survived += number * storm.equal()
        print(f"{done} kills, {survived} in rounds that ended equal", flush=True)
    storm.finish("all")
    assert storm.verified()
    print(dict(storm.kills))
    assert storm.left == []
    assert survived == done
