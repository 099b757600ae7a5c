"""Rebuilds through Slurm that tests disturb, with a ledger of every job that was started and of how it ended."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from private_slurm import PATIENCE, PrivateSlurm, wait_for
from runs import environment

PROFILE = "workflow/profiles/slurm"
# A private Slurm answers at once, and files are on one disk.
QUICK = ("--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10")
# Stands for silodp on the path of jobs: tells when it starts, in which Slurm job and where, and how it ends.
LEDGER = """\
#!/bin/sh
job="${{SLURM_JOB_ID:--}} ${{SLURMD_NODENAME:--}} $*"
echo "start $(date +%s) $job" >> {ledger}
{silodp} "$@"
code=$?
echo "end-$code $(date +%s) $job" >> {ledger}
exit $code
"""


@dataclass(frozen=True)
class Entry:
    """A line of the ledger; `job` is the subcommand and its output file, which stays when a job is tried again."""

    event: str
    time: int
    slurm_id: str
    node: str
    job: str


class Rebuild:
    """A rebuild in a folder of its own.

    Args:
        folder: a checkout of the workflow.
        slurm: the Slurm that runs its jobs.
        arguments: run file, targets and options of Snakemake.
    """

    def __init__(self, folder: Path, slurm: PrivateSlurm, *arguments: str):
        self.folder, self.slurm, self.arguments = folder, slurm, arguments
        self.said = folder / "snakemake.out"
        self.ledger = folder / "ledger"
        self.ledger.touch()
        stand_in = folder / "bin" / "silodp"
        stand_in.parent.mkdir()
        stand_in.write_text(LEDGER.format(ledger=self.ledger, silodp=Path(sys.executable).parent / "silodp"))
        stand_in.chmod(0o755)
        self.process: subprocess.Popen | None = None

    def _command(self, *more: str) -> dict:
        path = f"{self.folder / 'bin'}{os.pathsep}{environment()['PATH']}{os.pathsep}/usr/sbin"
        return {
            "args": [sys.executable, "-m", "snakemake", "--profile", PROFILE, *QUICK, *self.arguments, *more],
            "cwd": self.folder,
            "env": self.slurm.environment() | {"PATH": path, "OMP_NUM_THREADS": "1"},
        }

    def start(self) -> None:
        """Start Snakemake."""
        with open(self.said, "ab") as out:
            self.process = subprocess.Popen(**self._command(), stdout=out, stderr=out, start_new_session=True)

    def finish(self, seconds: float = 300.0) -> None:
        """Wait for Snakemake's end, which must be a good one."""
        assert self.process is not None
        code = self.process.wait(seconds * PATIENCE)
        assert code == 0, self.said.read_text()[-3000:]

    def unlock(self) -> None:
        """What a killed Snakemake asks for."""
        subprocess.run(**self._command("--unlock"), check=True, capture_output=True, timeout=120 * PATIENCE)

    def kill(self) -> None:
        """SIGKILL Snakemake; jobs that Slurm has go on."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def __enter__(self) -> "Rebuild":
        self.start()
        return self

    def __exit__(self, *what: object) -> None:
        self.kill()

    def entries(self) -> list[Entry]:
        """The ledger so far."""
        found = []
        for line in self.ledger.read_text().splitlines():
            event, moment, slurm_id, node, *words = line.split()
            job = f"{words[0]} {words[words.index('--output') + 1]}"
            found.append(Entry(event, int(moment), slurm_id, node, job))
        return found

    def started(self) -> Counter[str]:
        """How often each job was started."""
        return Counter(one.job for one in self.entries() if one.event == "start")

    def ended(self) -> set[str]:
        """Jobs that ended well."""
        return {one.job for one in self.entries() if one.event == "end-0"}

    def redone(self) -> set[str]:
        """Jobs that were started more than once."""
        return {job for job, times in self.started().items() if times > 1}

    def at_work(self, command: str, seconds: float = 0.0) -> list[Entry]:
        """Jobs of a subcommand that were started at least `seconds` ago and have not ended."""
        over = {(one.slurm_id, one.job) for one in self.entries() if one.event != "start"}
        now = time.time()
        return [
            one
            for one in self.entries()
            if one.event == "start"
            and one.job.startswith(f"{command} ")
            and (one.slurm_id, one.job) not in over
            and now - one.time >= seconds
        ]

    def in_mid_run(self, seconds: float = 180.0) -> Entry:
        """Wait until every node has ended a training job well and another has begun; gives one that has."""

        def ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.said.read_text()[-3000:]
            ended = [job for job in self.ended() if job.startswith("train ")]
            return len(ended) >= len(self.slurm.nodes) and bool(self.at_work("train", 2))

        wait_for(ready, seconds, "a training job in mid-run")
        return self.at_work("train", 2)[0]

    def finished_files(self) -> dict[Path, int]:
        """Output files of the jobs that ended well, with their inodes: a file that is written again has another.

        Times do not tell: Snakemake touches a job's files once it hears that the job is done.
        """
        return {path: path.stat().st_ino for path in (self.folder / job.split()[1] for job in self.ended())}
