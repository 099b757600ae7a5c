import json
import os
import platform
import shutil
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.workflow import provenance

START = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def root(tmp_path):
    """A folder that stands for a checkout, without git."""
    (tmp_path / "requirements.lock").write_text("numpy==1\n")
    return tmp_path


def collected(root, config=None, **more):
    lock, hashes = root / "requirements.lock", {"b": "2", "a": "1"}
    return provenance.collect("smoke", config or {"seed": 1}, root=root, data_hashes=hashes, lock=lock, **more)


def git(root, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, env=environment)


def test_a_digest_is_that_of_sorted_json_without_spaces():
    # printf '{"a":[1,2.5,"inf"],"b":null}' | sha256sum
    expected = "9361cbad619427bd72ff2418bc1d7e8e85f14905103a8c399f5d2932dd95e491"
    assert provenance.digest({"b": None, "a": (1, 2.5, np.inf)}) == expected


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(max_size=5), st.integers() | st.floats() | st.text(max_size=5), max_size=6))
def test_a_digest_does_not_depend_on_the_order_of_keys(record):
    turned = dict(reversed(list(record.items())))
    assert provenance.digest(turned) == provenance.digest(record)
    assert provenance.digest({**record, "one more key": 0}) != provenance.digest(record)


@pytest.mark.parametrize("record", [{"a": {1, 2}}, {1: "a"}, {"a": [object()]}])
def test_what_has_no_json_form_is_refused(record):
    with pytest.raises(ValueError, match=r"no JSON form|not a string"):
        provenance.digest(record)


def invocation(days, seconds, command="make paper", **more):
    """One invocation, as `invocations.done` gives it."""
    started = START + timedelta(days=days)
    times = {"started": started, "finished": started + timedelta(seconds=seconds)}
    return {"command": command, "commit": "a", "dirty": False, "completed": True, "jobs": {"train": 1}} | times | more


def test_a_run_made_in_several_invocations_tells_of_each(root):
    record = collected(
        root, invocations=[invocation(0, 61.04, completed=None), invocation(1, 30, "make x", commit="b")]
    )
    assert (record["command"], record["seconds"]) == ("make x", 91.0)
    assert (record["started"], record["finished"]) == ("2025-01-02T03:04:05Z", "2025-01-03T03:04:35Z")
    assert [one["commit"] for one in record["invocations"]] == ["a", "b"]
    assert record["invocations"][0] == {
        "command": "make paper",
        "started": "2025-01-02T03:04:05Z",
        "finished": "2025-01-02T03:05:06Z",
        "seconds": 61.0,
        "commit": "a",
        "dirty": False,
        "completed": None,
        "jobs": {"train": 1},
    }
    nothing_known = collected(root)
    assert {nothing_known[key] for key in ("command", "started", "finished", "seconds")} == {None}


def test_the_same_record_is_the_same_bytes(root):
    record = collected(root, invocations=[invocation(0, 1)])
    paths = [root / "1.json", root / "2.json"]
    for path, one in zip(paths, (record, dict(reversed(record.items()))), strict=True):
        provenance.write(path, one)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    keys = list(json.loads(paths[0].read_text()))
    assert keys == sorted(keys)


def test_the_record_says_what_the_run_was_made_with(root):
    record = collected(root, {"clip": [1.0, float("inf")], "where": Path("a/b")})
    assert record["config"] == {"clip": [1.0, "inf"], "where": "a/b"}
    assert record["config_sha256"] == provenance.digest(record["config"])
    assert list(record["data_sha256"]) == ["a", "b"]
    # printf 'numpy==1\n' | sha256sum
    lock = "b8a122d596af27fd3b6e2386e5c39db9e980b18a74e1e70faf4a8e1eb5817674"
    assert record["requirements_lock_sha256"] == lock
    assert record["packages"]["numpy"] == np.__version__
    assert record["python"] == platform.python_version()
    assert record["torch"] == {"device": "cpu"}
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["memory_gib"] > 0
    json.dumps(record, allow_nan=False)


def test_the_record_names_no_user_home_host_or_credential(root, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "lab-machine-7")
    monkeypatch.setattr(socket, "gethostname", lambda: "lab-machine-7")
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-built-at-lab-machine-7")
    monkeypatch.setenv("USER", "dave")
    monkeypatch.setenv("HOSTNAME", "lab-machine-7")
    monkeypatch.setattr(Path, "home", lambda: Path("/srv/people/carol"))
    config = {
        "cache": "/home/alice/.cache/silodp",
        "other": "/Users/bob/data",
        "mine": "/srv/people/carol/x",
        "inside": str(root / "results"),
        "mirror": "https://carol:secret@mirror.example:8080/sets/?token=secret#secret",
        "plain": "/data/sets and /homes/x",
    }
    command = f"silodp rebuild /root/run.yaml {root}/b"
    record = collected(root, config, invocations=[invocation(0, 1, command)])
    assert record["config"] == {
        "cache": "~/.cache/silodp",
        "other": "~/data",
        "mine": "~/x",
        "inside": "./results",
        "mirror": "https://mirror.example:8080/sets/",
        "plain": "/data/sets and /homes/x",
    }
    assert record["command"] == record["invocations"][0]["command"] == "silodp rebuild ~/run.yaml ./b"
    text = json.dumps(record)
    for secret in ("alice", "bob", "carol", "dave", "secret", "lab-machine", str(root)):
        assert secret not in text


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_of_this_checkout_and_dirty_when_changed(root, monkeypatch):
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
    assert provenance.git_state(root / "inner") == {"commit": None, "dirty": None}  # somebody else's repository


def test_nothing_fails_without_git_or_lock(root, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (root / "requirements.lock").unlink()
    record = collected(root)
    assert record["git"] == {"commit": None, "dirty": None}
    assert record["requirements_lock_sha256"] is None
