"""Provenance: what a run was made with, in which invocations, and nothing that names a person or a machine."""

import json
import os
import platform
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import ROOT

from silodp.experiments.validation import load
from silodp.files import write_parquet
from silodp.workflow import provenance
from silodp.workflow.digests import digest

CONFIG = {"run": "smoke", "device": "cpu", "seed": 1}


@pytest.fixture
def root(tmp_path):
    """A folder that stands for a checkout, without git."""
    (tmp_path / "requirements.lock").write_text("numpy==1\n")
    return tmp_path


def collected(root, **more):
    return provenance.collect(provenance.recordable(CONFIG | more, root), {"a": "1"}, root / "results", root)


def git(root, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, env=environment)


def job(folder, name, when):
    """The log of a job that ended at `when`."""
    path = folder / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    os.utime(path, (when.timestamp(), when.timestamp()))


def test_digest_is_that_of_sorted_json_without_spaces():
    # printf '{"a":[1,2.5,"inf"],"b":null}' | sha256sum
    expected = "9361cbad619427bd72ff2418bc1d7e8e85f14905103a8c399f5d2932dd95e491"
    assert digest({"b": None, "a": (1, 2.5, np.inf)}) == expected


@settings(deadline=None, max_examples=25)
@given(st.dictionaries(st.text(max_size=5), st.integers() | st.floats() | st.text(max_size=5), max_size=6))
def test_digest_does_not_depend_on_the_order_of_keys(record):
    turned = dict(reversed(list(record.items())))
    assert digest(turned) == digest(record)
    assert digest({**record, "one more key": 0}) != digest(record)


@pytest.mark.parametrize("record", [{"a": {1, 2}}, {1: "a"}, {"a": [object()]}])
def test_digest_refuses_values_without_a_json_form(record):
    with pytest.raises(ValueError, match=r"no JSON form|not a string"):
        digest(record)


def test_record_says_what_the_run_was_made_with(root):
    record = collected(root, clip=[1.0, float("inf")])
    assert record["config"] == CONFIG | {"clip": [1.0, "inf"]}
    assert record["config_sha256"] == digest(record["config"])
    # printf 'numpy==1\n' | sha256sum
    lock = "b8a122d596af27fd3b6e2386e5c39db9e980b18a74e1e70faf4a8e1eb5817674"
    assert record["requirements_lock_sha256"] == lock
    assert record["packages"]["numpy"] == np.__version__
    assert {"torch", "dp-accounting", "snakemake"} <= set(record["packages"])
    assert "pytest" not in record["packages"]
    assert (record["python"], record["torch"]) == (platform.python_version(), {"device": "cpu"})
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["memory_gib"] > 0
    on_gpu = {"device": "cuda", "cards": [{"name": "a card"}]}
    rows = pd.DataFrame({"trial": [0]})
    rows.attrs = {"card": on_gpu["cards"][0]}
    write_parquet(rows, root / "results" / "trials" / "e" / "t.parquet")
    assert collected(root, device="cuda")["torch"] == on_gpu
    for name, each in (("1.json", record), ("2.json", dict(reversed(record.items())))):
        provenance.write(root / name, each)
    assert (root / "1.json").read_bytes() == (root / "2.json").read_bytes()


def test_killed_invocations_count_and_repeated_jobs_count_once(root, monkeypatch):
    folder, now = root / "results", datetime.now(UTC)
    monkeypatch.setenv(provenance.COMMAND_VARIABLE, "make paper")
    job(folder, "fetch/mnist.log", now - timedelta(days=1))  # before any start was noted
    provenance.note_start(folder, root)
    for name in ("train/a.log", "train/b.log", "table/a.log", "claims.log"):
        job(folder, name, datetime.now(UTC))
    monkeypatch.delenv(provenance.COMMAND_VARIABLE)
    monkeypatch.setattr("sys.argv", ["/x/bin/snakemake", "--configfile", "config/my run.yaml"])
    provenance.note_start(folder, root)  # the first invocation was killed
    later = datetime.now(UTC) + timedelta(seconds=100)
    job(folder, "table/a.log", later)
    made_in = [{"command": "make paper", "jobs": {"claims": 1, "train": 2}}]
    made_in += [{"command": "snakemake --configfile 'config/my run.yaml'", "jobs": {"table": 1}}]
    provenance.note_start(folder, root)  # a third one finds nothing to do
    record = collected(root)
    assert [{key: each[key] for key in ("command", "jobs")} for each in record["invocations"]] == made_in
    first, second = record["invocations"]
    assert first["seconds"] < 50
    assert 99 < second["seconds"] < 101
    assert (record["command"], record["started"]) == (second["command"], first["started"])
    assert record["finished"] == second["finished"] == later.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert record["seconds"] == pytest.approx(first["seconds"] + second["seconds"])
    shutil.rmtree(folder)
    assert {collected(root)[key] for key in ("command", "started", "finished", "seconds")} == {None}


def test_record_names_no_user_home_host_or_credential(root, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "lab-machine-7")
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-built-at-lab-machine-7")
    monkeypatch.setenv("USER", "dave")
    monkeypatch.setattr(Path, "home", lambda: Path("/srv/people/carol"))
    monkeypatch.setenv(provenance.COMMAND_VARIABLE, f"silodp rebuild /root/run.yaml {root}/b")
    provenance.note_start(root / "results", root)
    job(root / "results", "claims.log", datetime.now(UTC) + timedelta(seconds=1))
    paths = {
        "cache": ("/home/alice/.cache/silodp", "~/.cache/silodp"),
        "other": ("/Users/bob/data", "~/data"),
        "mine": ("/srv/people/carol/x", "~/x"),
        "inside": (str(root / "results"), "./results"),
        "mirror": (
            "https://carol:secret@mirror.example:80/sets/?token=secret#secret",
            "https://mirror.example:80/sets/",
        ),
        "plain": ("/data/sets and /homes/x", "/data/sets and /homes/x"),
    }
    record = collected(root, paths={key: full for key, (full, _) in paths.items()})
    assert record["config"]["paths"] == {key: short for key, (_, short) in paths.items()}
    assert record["command"] == "silodp rebuild ~/run.yaml ./b"
    for text in (json.dumps(record), (root / "results/logs/invocations.json").read_text()):
        for secret in ("alice", "bob", "carol", "dave", "secret", "lab-machine", str(root)):
            assert secret not in text


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_commit_is_that_of_this_checkout_and_dirty_when_changed(root, monkeypatch):
    assert provenance.git_state(root) == {"commit": None, "dirty": None}
    git(root, "init", "-q")
    assert provenance.git_state(root) == {"commit": None, "dirty": None}  # no commit yet
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    state = provenance.git_state(root)
    assert len(state["commit"]) == 40
    assert state["dirty"] is False
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as a hook would set it
    assert provenance.git_state(root) == state
    (root / "new.py").write_text("")  # no part of the code: git does not track it
    assert provenance.git_state(root) == state
    (root / "requirements.lock").write_text("numpy==2\n")
    assert provenance.git_state(root) == {**state, "dirty": True}
    (root / "inner").mkdir()
    assert provenance.git_state(root / "inner") == {"commit": None, "dirty": None}  # of another repository


def test_record_needs_neither_git_nor_lock(root, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (root / "requirements.lock").unlink()
    record = collected(root)
    assert record["git"] == {"commit": None, "dirty": None}
    assert record["requirements_lock_sha256"] is None


def test_a_run_has_its_plug_ins_and_the_checksums_of_its_data_beside_it(root):
    (root / "own.py").write_text("# ε\n", encoding="utf-8")
    (root / "fetched.csv").write_text("dataset,file,checksum\ninsurance,a/b.csv,sha256:1\n")
    resolved, output = replace(load(ROOT / "config/smoke.yaml"), plugins=(root / "own.py",)), root / "r/provenance.json"
    provenance.record(resolved, [root / "fetched.csv"], output)
    assert (root / "r/source/plugins/own.py").read_text(encoding="utf-8") == "# ε\n"
    assert json.loads(output.read_text())["data_sha256"] == {"a/b.csv": "sha256:1"}


def test_a_processor_without_the_file_of_linux_is_as_python_has_it(monkeypatch):
    monkeypatch.setattr(Path, "is_file", lambda path: False)
    for told, cpu in (("arm", "arm"), ("", None)):
        monkeypatch.setattr(platform, "processor", lambda told=told: told)
        assert provenance.machine()["cpu"] == cpu


def test_a_checkout_or_home_at_the_top_hides_no_slash(monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    assert provenance.recordable("cp / . /data", Path("/")) == "cp / . /data"
