"""The workflow as a person meets it: dry runs, bad input, a rebuild, and a rebuild of what is there already."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from runfiles import RUNS
from runs import ROOT, TINY, VOLATILE_COLUMNS, checkout, contents, environment, rebuild, rebuild_in, run

from silodp.config.loading import file_and_part
from silodp.experiments.validation import load
from silodp.verdicts.checks import CHECKS
from silodp.workflow.cost import estimate
from silodp.workflow.job_digest import RunPlan

pytestmark = pytest.mark.slow


def output(result):
    """What a run that must succeed printed."""
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """A folder with a finished tiny run, four trials in jobs of 2."""
    folder = checkout(tmp_path_factory.mktemp("rebuilt"))
    (folder / "config" / "tiny.yaml").write_text(TINY.format(trials_per_job=2))
    output(rebuild_in(folder))
    return folder


@pytest.mark.parametrize("name", [path.stem for path in RUNS])
def test_every_run_plans(tmp_path, name):
    file, part = file_and_part(ROOT / "config" / f"{name}.yaml")
    words = ["--config", f"part={part}"] if part else []
    output(run(checkout(tmp_path), "--configfile", f"config/{file.name}", *words, "--dry-run", "--quiet", "all"))


def test_the_bounds_are_a_job_for_each_check_and_no_part_of_all(tmp_path):
    folder = checkout(tmp_path)
    planned = output(run(folder, "bounds", "--configfile", "config/smoke.yaml", "--dry-run"))
    assert all(f"results/smoke/bounds/{check}.csv" in planned for check in CHECKS)
    assert "train" not in planned.split("Job stats:")[1].split("total")[0]
    assert not [file for file in RunPlan(load(folder / "config" / "smoke.yaml")).deliverables() if "/bounds/" in file]


def test_every_file_that_a_run_makes_is_asked_for_by_name(tmp_path):
    """So whatever is removed is made again; without a configuration file the run is the default one."""
    lines = [line.strip() for line in output(run(checkout(tmp_path), "--dry-run")).splitlines()]
    asked = set(lines[lines.index("rule all:") + 1].removeprefix("input: ").split(", "))
    made = {file for line in lines if line.startswith("output: ") for file in line[len("output: ") :].split(", ")}
    # Claims name the figures that are there as evidence, so all must be there first.
    decided = lines[lines.index("rule claims:") + 1]
    assert {file for file in made if "/figures/" in file} <= set(decided.removeprefix("input: ").split(", "))
    plan = RunPlan(load(ROOT / "config" / "default.yaml"))
    counted = next(int(line.split()[1]) for line in lines if re.fullmatch(r"total +\d+", line))
    assert estimate(plan, 1, 1e9).jobs == counted
    wanted = plan.deliverables()
    assert asked == made == {*wanted}
    below = {Path(file).relative_to("results/default").as_posix() for file in wanted}
    kinds = {"tables", "figures", "trials", "selection", "silos", "reported", "privacy", "audit"}
    assert kinds <= {name.split("/")[0] for name in below}
    assert {"claims.csv", "privacy.csv", "audit.csv", "report.html", "provenance.json", "config.json"} <= below


def test_whatever_is_removed_is_made_again(rebuilt):
    """One dry run for all: a file of every kind is away, each the only one that its job makes or one of several."""
    results = rebuilt / "results" / "tiny"
    gone = ["tables/*.csv", "figures/*_claimed.png", "trials/*/*/*/*_fresh*.parquet", "claims.csv", "report.html"]
    gone += ["privacy.csv", "audit/*.csv", "provenance.json", "silos/*/*/labels.csv", "*-metadata.json"]
    files = [sorted(results.glob(pattern))[0] for pattern in gone]
    for file in files:
        file.rename(file.with_name(file.name + ".away"))
    try:
        result = run(rebuilt, "--configfile", "config/tiny.yaml", "--dry-run")
    finally:
        for file in files:
            file.with_name(file.name + ".away").rename(file)
    lines = (result.stdout + result.stderr).splitlines()
    missing = " ".join(line for line in lines if "Missing output files:" in line)
    for file in files:
        assert str(file.relative_to(rebuilt)) in missing


def test_paths_are_words_and_no_commands_or_wildcards_and_a_module_in_the_folder_is_none_of_pythons(tmp_path):
    folder = tmp_path / "a { x } {y}"
    folder.mkdir()
    path = checkout(folder) / "config" / "a b `touch X` $(touch Y); touch Z 'q' {w}.yaml"
    path.write_text(TINY.format(trials_per_job=2))
    (folder / "random.py").write_text("raise SystemExit(9)")
    command = [sys.executable, "-P", "-m", "silodp", "rebuild", os.path.relpath(path, folder), "--cores", "1"]
    target = "results/tiny/silos/wbcd_mlp/default/indices.parquet"
    output(subprocess.run([*command, "--", target], cwd=folder, env=environment(), capture_output=True, text=True))
    assert (folder / target).is_file()
    assert not [name for name in ("X", "Y", "Z") if list(folder.rglob(name))]


def test_a_job_refuses_when_the_code_is_not_what_was_planned(rebuilt):
    silos = "results/tiny/silos/wbcd_mlp/default"
    job = ["train", "run_file=config/tiny.yaml", "experiment=wbcd_mlp", "algorithm=minibatch_sgd", "setting=M2_R5"]
    job += [f"silos={silos}", "output=results/other.parquet", f"digest={'0' * 64}"]
    command = [sys.executable, "-m", "silodp.jobs", *job]
    done = subprocess.run(command, cwd=rebuilt, env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert "have changed since the rebuild was planned: start the rebuild again" in done.stderr.strip().splitlines()[-1]
    assert not (rebuilt / "results/other.parquet").exists()


def test_jobs_read_the_frozen_run_file(rebuilt):
    """An edit of the run file in mid-run concerns no job of that run."""
    text = output(run(rebuilt, "--configfile", "config/tiny.yaml", "--dry-run", "--forceall", "--printshellcmds"))
    commands = [line for line in text.splitlines() if "silodp.jobs " in line and "digest=" in line]
    assert len(commands) > 10
    assert not [line for line in commands if "config/tiny.yaml" in line]
    assert {Path(word).name for line in commands for word in line.split() if ".snakemake/silodp/" in word} == {
        "run.json"
    }


def test_an_edited_claim_is_decided_by_the_next_rebuild(rebuilt, tmp_path, monkeypatch):
    for name in ("src", "config"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    planned = [output(run(rebuilt, "--configfile", "config/tiny.yaml", "--dry-run"))]
    claims = tmp_path / "config" / "claims" / "convex.yaml"
    claims.write_text(claims.read_text().replace("statement: ", "statement: Edited. ", 1))
    planned.append(output(run(rebuilt, "--configfile", "config/tiny.yaml", "--dry-run")))
    assert ["rule claims:" in text for text in planned] == [False, True]
    assert "rule train:" not in planned[1]


def test_a_training_made_again_is_followed_whatever_its_files_times(rebuilt, tmp_path, monkeypatch):
    """As on a machine whose clock is behind: neither its edit nor its files are newer than the selection."""
    folder = shutil.copytree(rebuilt, tmp_path / "rebuilt", symlinks=True)
    for name in ("src", "config"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    code = tmp_path / "src" / "silodp" / "algorithms" / "fed_spider.py"
    code.write_text(code.read_text() + "\nMORE = 1\n")
    trained = [f"results/tiny/trials/wbcd_mlp/fed_spider/M2_R5/default_{cut}.parquet" for cut in ("0-1", "2-3")]
    output(run(folder, *trained, "--configfile", "config/tiny.yaml"))
    for file in trained:
        os.utime(folder / file, (978307200, 978307200))
    planned = output(run(folder, "--configfile", "config/tiny.yaml", "--dry-run"))
    assert "rule train:" not in planned
    assert all(f"rule {job}:" in planned for job in ("select", "privacy", "table", "claims", "report"))


def test_snakemake_alone_makes_the_same_files(rebuilt, tmp_path):
    """The tables' part of a rebuild, without a profile on the command line."""
    folder = checkout(tmp_path)
    shutil.copy(rebuilt / "config" / "tiny.yaml", folder / "config")
    command = ["snakemake", "tables", "--cores", "2", "--configfile", "config/tiny.yaml"]
    output(subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=900))
    ours, theirs = contents(folder / "results/tiny"), contents(rebuilt / "results/tiny")
    assert {name: theirs[name] for name in ours} == ours
    assert "tables/wbcd_mlp.csv" in ours


def test_a_second_rebuild_does_nothing_and_says_so_also_where_the_checkout_is_moved(rebuilt, tmp_path):
    for folder in (rebuilt, shutil.copytree(rebuilt, tmp_path / "elsewhere")):
        before = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*")}
        assert "Nothing to be done" in output(run(folder, "--configfile", "config/tiny.yaml"))
        assert {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*")} == before


def test_a_dry_run_says_that_it_leaves_out_what_was_edited(rebuilt):
    table = rebuilt / "results/tiny/tables/wbcd_mlp.csv"
    text = table.read_text()
    table.write_text(text + "\n")
    try:
        told = output(run(rebuilt, "--configfile", "config/tiny.yaml", "--dry-run"))
    finally:
        table.write_text(text)
    assert "wbcd_mlp.csv: is not what its job wrote: a rebuild makes it again, which this dry run leaves out" in told
    assert "it is made again" not in told
    # What follows from the table is listed, the table is not.
    assert "rule figures_wbcd_mlp:" in told
    assert "rule table:" not in told


def test_finished_jobs_go_on_in_another_checkout(rebuilt, tmp_path):
    """Silos and all trials but one file, without Snakemake's own records: touched, that file alone is trained."""
    folder, name = checkout(tmp_path), "trials/wbcd_mlp/fed_spider/M2_R5/default_0-1.parquet"
    shutil.copy(rebuilt / "config" / "tiny.yaml", folder / "config" / "tiny.yaml")
    for part in ("data", "silos", "trials"):
        if (rebuilt / "results/tiny" / part).exists():
            shutil.copytree(rebuilt / "results/tiny" / part, folder / "results/tiny" / part)
    (folder / "results/tiny" / name).unlink()
    command = [*rebuild(), "--", "--touch"]
    output(subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True))
    planned = output(run(folder, "--configfile", "config/tiny.yaml", "--dry-run"))
    assert planned.count("rule train:") == 1
    assert name in planned
    assert "rule partition:" not in planned


def test_the_cut_into_jobs_does_not_change_the_tables(rebuilt, tmp_path):
    folder = checkout(tmp_path)
    (folder / "config" / "tiny.yaml").write_text(TINY.format(trials_per_job=1))
    output(rebuild_in(folder))
    ours, theirs = contents(folder / "results" / "tiny"), contents(rebuilt / "results" / "tiny")
    cut_free = ("tables", "privacy.csv", "selection", "figures", "silos")
    shared = {name for name in theirs if name.split("/")[0] in cut_free}
    assert shared
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


def test_nor_does_the_cut_of_the_final_trainings_of_a_race(tmp_path):
    """One job for all four trials, or one a trial."""
    table, tables = "results/tiny/tables/wbcd_mlp.csv", []
    for size, jobs in ((4, 1), (1, 4)):
        (folder := tmp_path / str(size)).mkdir()
        text = TINY.format(trials_per_job=size).replace(", {selection: per_trial, evaluation: same}", "")
        (checkout(folder) / "config" / "tiny.yaml").write_text(text + "    tuning: race\n")
        output(run(folder, table, "--configfile", "config/tiny.yaml"))
        fresh = list((folder / "results/tiny/trials/wbcd_mlp").glob("*/M2_R5/default_fresh*.parquet"))
        assert len(fresh) == jobs * len(list((folder / "results/tiny/trials/wbcd_mlp").iterdir()))
        tables.append(pd.read_csv(folder / table).drop(columns=VOLATILE_COLUMNS))
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_a_cosmetic_change_redraws_and_trains_nothing(rebuilt):
    config = rebuilt / "config" / "tiny.yaml"
    text = config.read_text()
    config.write_text(text + "    title: Another title\n")
    try:
        result = run(rebuilt, "--configfile", "config/tiny.yaml", "--dry-run")
    finally:
        config.write_text(text)
    planned = result.stdout + result.stderr
    assert "rule figures_wbcd_mlp:" in planned
    assert "rule train:" not in planned
    assert "rule table:" not in planned
