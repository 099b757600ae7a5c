"""A rebuild through Slurm that a test disturbs, with a ledger of every job that started and of how it ended."""

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
# Stands for Python on the path of jobs: notes when it starts, in which Slurm job and where, and how it ends.
LEDGER = """\
#!/bin/sh
job="${{SLURM_JOB_ID:--}} ${{SLURMD_NODENAME:--}} $*"
echo "start $(date +%s) $job" >> {ledger}
{python} "$@"
code=$?
echo "end-$code $(date +%s) $job" >> {ledger}
exit $code
"""


@dataclass(frozen=True)
class Entry:
    """A line of the ledger; `job` is the output file of a training job, which stays when a job is tried again."""

    event: str
    time: int
    slurm_id: str
    node: str
    job: str


class Rebuild:
    """A rebuild in a checkout of its own, whose jobs `slurm` runs; `arguments`: run file, targets and options."""

    def __init__(self, folder: Path, slurm: PrivateSlurm, *arguments: str):
        self.folder, self.slurm, self.arguments = folder, slurm, arguments
        self.output = folder / "snakemake.out"
        self.ledger = folder / "ledger"
        self.ledger.touch()
        stand_in = folder / "bin" / "python"
        stand_in.parent.mkdir()
        stand_in.write_text(LEDGER.format(ledger=self.ledger, python=sys.executable))
        stand_in.chmod(0o755)

    def __enter__(self) -> "Rebuild":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        path = f"{self.folder / 'bin'}{os.pathsep}{environment()['PATH']}{os.pathsep}/usr/sbin"
        with open(self.output, "ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "snakemake", "--profile", PROFILE, *QUICK, *self.arguments],
                cwd=self.folder,
                env=self.slurm.environment() | {"PATH": path, "OMP_NUM_THREADS": "1"},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def finish(self) -> None:
        """Wait until Snakemake ends, which must succeed."""
        assert self.process.wait(300 * PATIENCE) == 0, self.output.read_text()[-3000:]

    def kill(self) -> None:
        """SIGKILL Snakemake; jobs that Slurm has go on."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def entries(self) -> list[Entry]:
        """Training jobs of the ledger so far."""
        entries = []
        for line in self.ledger.read_text().splitlines():
            event, moment, slurm_id, node, *words = line.split()
            if words[:3] == ["-m", "silodp.jobs", "train"]:
                (output,) = (word.removeprefix("output=") for word in words if word.startswith("output="))
                entries.append(Entry(event, int(moment), slurm_id, node, output))
        return entries

    def ended(self) -> set[str]:
        return {entry.job for entry in self.entries() if entry.event == "end-0"}

    def redone(self) -> set[str]:
        """Jobs that started more than once."""
        started = Counter(entry.job for entry in self.entries() if entry.event == "start")
        return {job for job, times in started.items() if times > 1}

    def at_work(self, seconds: float = 0.0) -> list[Entry]:
        """Jobs that started at least `seconds` ago and have not ended."""
        over = {(entry.slurm_id, entry.job) for entry in self.entries() if entry.event != "start"}
        before = time.time() - seconds
        return [entry for entry in self.entries() if (entry.slurm_id, entry.job) not in over and entry.time <= before]

    def in_mid_run(self) -> Entry:
        """Wait until every node has ended a job well and another job has begun; gives that job."""

        def ready() -> bool:
            assert self.process.poll() is None, self.output.read_text()[-3000:]
            return len(self.ended()) >= len(self.slurm.nodes) and bool(self.at_work(2))

        wait_for(ready, 180, "a training job in mid-run")
        return self.at_work(2)[0]

    def finished_files(self) -> dict[Path, int]:
        """Output files of the jobs that ended well, with their inodes: a file that is written again has another.

        Times do not tell: Snakemake touches a job's files once it hears that the job is done.
        """
        return {path: path.stat().st_ino for path in (self.folder / job for job in self.ended())}
