"""Silos and coordinator killed by `kill -9` at random moments: no slot gets two noises, no total is too small."""

import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest
import yaml
from runs import ROOT

from silodp.silos.federation_file import read_federation
from silodp.silos.run_plan import work_out
from silodp.silos.wire import HEAD

KILLS = int(os.environ.get("SILODP_KILLS", "3"))
SEED = int(os.environ.get("SILODP_SEED", "1"))
NAMES = ("north", "east", "west")


def write_all(folder, port):
    """`make federation`'s files, with rounds that take a few seconds in all."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import federation

    federation.write_files(folder, port)
    path = folder / "federation.yaml"
    path.write_text(
        yaml.safe_dump(yaml.safe_load(path.read_text()) | {"rounds": 60, "reply_after": 0.5, "at_least": 2, "wait": 30})
    )
    for name in NAMES:
        silo = folder / name / "silo.yaml"
        silo.write_text(yaml.safe_dump(yaml.safe_load(silo.read_text()) | {"budget": 500.0, "answer_within": 400.0}))
    return read_federation(path)


def start(folder, name, *words):
    own = ["silo", "join", "silo.yaml"] if name in NAMES else ["federate", "federation.yaml", "--output", "out"]
    home = folder / name if name in NAMES else folder
    with (folder / f"{name}.log").open("a") as log:
        return subprocess.Popen([sys.executable, "-m", "silodp", *own, *words], cwd=home, stdout=log, stderr=log)


def collect(folder, size, seen):
    """Note every reply that is stored at a silo or at the coordinator, by (run, slot)."""
    for place in (*folder.glob("*/ledger/runs/*/replies"), *folder.glob("out*/transcript/*-*")):
        whole = place.read_bytes()
        step = 40 + 8 * size + 32
        if place.name == "replies":
            parts = [whole[i : i + step] for i in range(0, len(whole) - step + 1, step)]
            # A torn write has no whole digest behind it, and is never sent.
            replies = [part[:-32] for part in parts if hashlib.sha256(part[:-32]).digest() == part[-32:]]
        else:
            replies = [whole[32:]]
        for reply in replies:
            if len(reply) == 40 + 8 * size and any(reply):
                run, slot = HEAD.unpack_from(reply)
                seen.setdefault((run, slot), set()).add(reply)


def answered(folder):
    """Slots that silos have opened, over all runs."""
    lines = (path.read_bytes() for path in folder.glob("*/ledger/runs/*/asked"))
    return sum(any(whole[place : place + 64]) for whole in lines for place in range(0, len(whole), 64))


@pytest.mark.slow
def test_kills_at_any_moment_give_no_slot_two_noises_and_no_total_too_small(tmp_path):
    """`SILODP_KILLS` kills (3) of a silo, the coordinator or all; a run ends with its model or with a line."""
    pytest.importorskip("grpc", reason="grpcio: requirements/federate.lock")
    draw, seen, outcomes = random.Random(SEED), {}, []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path / "run"
    folder.mkdir()
    agreed = write_all(folder, port)
    plan = work_out(agreed, "federation.yaml")
    kills = runs = 0
    while kills < KILLS:
        # A run from its first start to its end; silos begin another with --again.
        runs += 1
        out = folder / "out"
        if out.exists():
            out.rename(folder / f"out{runs}")
        running = {}
        ended = ""
        while not ended:
            for name in (*NAMES, "coordinator"):
                if name not in running or running[name].poll() is not None:
                    begun = len(list((folder / name / "ledger/runs").glob("*/run.json")))
                    again = ["--again"] if name in NAMES and 0 < begun < runs else []
                    running[name] = start(folder, name, *again)
            # Most kills come while slots are answered, the others while processes start.
            moment = draw.uniform(0.0, 0.4)
            if kills >= KILLS or draw.random() < 0.8:
                before, end = answered(folder), time.monotonic() + 300
                while running["coordinator"].poll() is None and time.monotonic() < end:
                    if kills < KILLS and answered(folder) > before:
                        break
                    time.sleep(0.02)
            else:
                moment *= 10
            time.sleep(moment)
            if (code := running["coordinator"].poll()) is not None:
                ended = "model" if code == 0 else "line"
                break
            assert kills < KILLS, "the run does not end"
            victim = draw.choice((*NAMES, "coordinator", "all"))
            for name in running if victim == "all" else [victim]:
                running[name].send_signal(signal.SIGKILL)
                running[name].wait()
            kills += 1
            collect(folder, plan.size, seen)
        outcomes.append(ended)
        for child in running.values():
            if ended != "model":
                child.terminate()
            child.wait(60)
        collect(folder, plan.size, seen)
        told = (folder / "coordinator.log").read_text()
        assert "Traceback" not in told
        assert ended == "model" or "start all again" in told.splitlines()[-1]
    assert {key: len(replies) for key, replies in seen.items() if len(replies) > 1} == {}
    for name in NAMES:
        assert "Traceback" not in (folder / f"{name}.log").read_text()
        ledger = (folder / name / "ledger" / "ledger.jsonl").read_text()
        assert ledger.count('"kind": "charge"') == len(list((folder / name / "ledger/runs").iterdir()))
    print(f"{kills} kills, {runs} runs: {outcomes}; {len(seen)} slots with a reply, each with one")
