"""A rebuild that is killed again and again at random moments, and what must hold after each kill and at the end."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
from runs import checkout, contents, environment, rebuild

# All rules, few jobs.
RUN = """\
run: tiny
seed: 7
experiments:
  wbcd_mlp:
    trials: 2
    trials_per_job: 1
    epsilons: [3]
    stepsizes: {low: -3, high: 0, points: 2, spacing: exponential}
    clips: [1]
    phase_lengths: [2]
    settings: [{M: 2, R: 5}]
    algorithms: {local_sgd: ~, fedprox_spider: ~}
"""
VICTIMS = ("parent", "child", "group", "worker")


class Storm:
    """A folder with a tiny run that faults are let loose on.

    Args:
        folder: an empty one.
        seed: of the faults.
        targets: what is rebuilt; default: everything.

    Attributes:
        kills: victim → kills that hit a rebuild at work.
        left: processes that outlived the rebuild that they belonged to.
    """

    def __init__(self, folder: Path, seed: int, *targets: str):
        self.folder, self.rng, self.targets = checkout(folder), random.Random(seed), targets
        self.results = folder / "results" / "tiny"
        (folder / "config" / "tiny.yaml").write_text(RUN)
        self.kills: Counter[str] = Counter()
        self.left: list[str] = []
        begun = time.monotonic()
        self.finish()
        self.span = time.monotonic() - begun
        self.undisturbed = contents(self.results)

    def _start(self) -> subprocess.Popen:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(
            [*rebuild(), "--", *self.targets], cwd=self.folder, env=environment(), start_new_session=True, **quiet
        )

    def processes(self) -> list[psutil.Process]:
        """Whatever works in the folder."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == self.folder:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def kill(self) -> str | None:
        """Start a rebuild and kill a part of it at a random moment; returns what, None where it had ended before."""
        victim = self.rng.choice(VICTIMS)
        delay = self.rng.random() ** 2 * self.span
        number = self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]) if victim == "parent" else 9
        parent = self._start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            parent.wait(timeout=delay)
        hit = self._hit(parent, victim, number)
        self._wait(parent)
        if hit:
            self.kills[victim] += 1
        return victim if hit else None

    def _hit(self, parent: subprocess.Popen, victim: str, number: int) -> bool:
        """Send the signal as soon as there is such a process; False where the rebuild ends first."""
        while parent.poll() is None:
            try:
                children = psutil.Process(parent.pid).children()
                workers = [job for child in children for job in child.children(recursive=True)]
                if victim == "parent":
                    parent.send_signal(number)
                    return True
                if victim == "group":
                    os.killpg(parent.pid, signal.SIGKILL)
                    return True
                if found := children if victim == "child" else workers:
                    self.rng.choice(found).kill()
                    return True
            except psutil.NoSuchProcess:
                pass
            time.sleep(0.02)
        return False

    def _wait(self, parent: subprocess.Popen) -> None:
        """Until the rebuild is over; nothing of it may run on then."""
        parent.wait(timeout=600)
        ends = time.monotonic() + 30
        while (alive := self.processes()) and time.monotonic() < ends:
            time.sleep(0.05)
        for process in alive:
            self.left.append(" ".join(process.cmdline())[:200])
            process.kill()

    def finish(self, *targets: str) -> None:
        """Rebuild to the end."""
        command = [*rebuild(), "--", *(targets or self.targets)]
        done = subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    def verified(self) -> bool:
        """Whether `silodp verify` finds nothing wrong."""
        command = [sys.executable, "-m", "silodp", "-q", "verify", "tiny"]
        return subprocess.run(command, cwd=self.folder, env=environment(), check=False).returncode == 0

    def equal(self) -> bool:
        """Whether the results are those of an undisturbed rebuild."""
        return contents(self.results) == self.undisturbed

    def wipe(self) -> None:
        """Back to a folder without results."""
        shutil.rmtree(self.results, ignore_errors=True)
