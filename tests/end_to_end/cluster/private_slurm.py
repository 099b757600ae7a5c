"""A Slurm of its own on this machine: munge, a controller and two nodes, whose files lie in one folder.

It needs no systemd, no cgroups and no accounting database. All daemons are child processes in the foreground, so that
leaving the context stops them, also after a failure; they die with this process, however that dies.
"""

import contextlib
import ctypes
import getpass
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scancel", "scontrol")
# The executor plugin drops SLURM_CONF before its inner srun, which then looks here.
SYSTEM_CONF = Path("/etc/slurm/slurm.conf")
LIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"}
# One job at a time on each node, so that a run of four training jobs has a middle.
CPUS, MEMORY_MB = 1, 16_000
# What all waiting times are multiplied by, on a machine that has other things to do.
PATIENCE = float(os.environ.get("SILODP_TEST_PATIENCE", "1"))
_SBIN = f"/usr/sbin{os.pathsep}/sbin"


class Unavailable(RuntimeError):
    """Slurm cannot be started here; the text is one line that says what is missing."""


def install() -> None:
    """Install Debian's Slurm and munge where they are missing; their own services are not started."""
    missing = [name for name in PROGRAMS if not _find(name)]
    if not missing:
        return
    # Another apt-get may be at work: wait for its end.
    waiting = "-o DPkg::Lock::Timeout=300"
    command = f"apt-get {waiting} install -y --no-install-recommends {' '.join(PACKAGES)}"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise Unavailable(
            f"Slurm: {', '.join(missing)} missing: run as root on Debian: apt-get install {' '.join(PACKAGES)}"
        )
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for step in (f"apt-get {waiting} update", command):
        done = subprocess.run(step.split(), env=environment, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise Unavailable(f"Slurm: `{step}` failed: {' '.join(last)}")


def _find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}{os.pathsep}{_SBIN}")


def slurm_conf(folder: Path, host: str, user: str, controller: int, nodes: dict[str, int]) -> str:
    """The text of slurm.conf.

    Args:
        folder: where state, spool, logs and the munge socket lie.
        host: the machine's short name.
        user: who runs the daemons.
        controller: port of the controller.
        nodes: name → port of each node.
    """
    lines = [
        "ClusterName=silodp",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={controller}",
        f"SlurmUser={user}",
        f"SlurmdUser={user}",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/munge.socket,cred_expire=10",
        "CredType=cred/munge",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        f"SlurmctldLogFile={folder}/slurmctld.log",
        f"SlurmdLogFile={folder}/slurmd-%n.log",
        # No cgroups, no accounting, no MPI.
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "AccountingStorageType=accounting_storage/none",
        "MpiDefault=none",
        "SwitchType=switch/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU_Memory",
        "SchedulerParameters=bf_interval=5,sched_interval=5,batch_sched_delay=0",
        "EnforcePartLimits=ALL",
        # Daemons and jobs of a busy machine are slow, and not lost.
        "MessageTimeout=60",
        "OverTimeLimit=UNLIMITED",
        # squeue still tells of a job this many seconds after its end.
        "MinJobAge=600",
        # A node that is silent for so long is down, and its jobs are started again elsewhere.
        "SlurmdTimeout=20",
        "ReturnToService=2",
        "KillWait=5",
        "JobRequeue=1",
        # Nodes may have more memory than the machine: nothing enforces it.
        "SlurmdParameters=config_overrides",
        *(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            f"CPUs={CPUS} RealMemory={MEMORY_MB} State=UNKNOWN"
            for name, port in nodes.items()
        ),
        f"PartitionName=all Nodes={','.join(nodes)} Default=YES MaxTime=INFINITE State=UP",
    ]
    return "\n".join(lines) + "\n"


@dataclass
class Job:
    """A line of squeue; `asks` is what it is for: rule and wildcards."""

    id: str
    state: str
    asks: str
    node: str
    memory: str


@dataclass
class PrivateSlurm:
    """A running Slurm.

    Attributes:
        folder: its files.
        nodes: name → port.
    """

    folder: Path
    nodes: dict[str, int]
    daemons: dict[str, subprocess.Popen] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    def environment(self) -> dict[str, str]:
        """What a process needs to speak to this Slurm."""
        path = f"{os.environ.get('PATH', '')}{os.pathsep}{_SBIN}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        return kept | {"SLURM_CONF": str(self.conf), "PATH": path}

    def ask(self, *command: str) -> str:
        """Output of a client program."""
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def jobs(self) -> list[Job]:
        """All jobs that the controller remembers, finished ones too."""
        lines = self.ask("squeue", "--noheader", "--states=all", "--format=%i|%T|%k|%N|%m").splitlines()
        return [Job(*line.split("|")) for line in lines]

    def running(self) -> list[Job]:
        """Jobs that run."""
        return [job for job in self.jobs() if job.state == "RUNNING"]

    def start_daemon(self, name: str, *command: str) -> None:
        program = _find(command[0])
        assert program is not None
        with open(self.folder / f"{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(
                [program, *command[1:]],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                preexec_fn=_die_with_parent,
            )

    def start_node(self, name: str) -> None:
        """Start a node's daemon, for the first time or after `kill_node`."""
        self.start_daemon(name, "slurmd", "-D", "-N", name, "-f", str(self.conf))

    def wait_idle(self, seconds: float = 60.0) -> None:
        """Wait until every node is up and no job runs or waits."""
        idle = {name: "idle" for name in self.nodes}

        def ready() -> bool:
            return self._states() == idle and not {job.state for job in self.jobs()} & LIVE

        wait_for(ready, seconds, "all nodes to be idle")

    def _states(self) -> dict[str, str]:
        with contextlib.suppress(subprocess.CalledProcessError):
            lines = self.ask("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
            return dict(line.split() for line in lines)
        return {}

    def kill_node(self, name: str) -> None:
        """What a power cut does: the daemon, the steps and the jobs of a node die at once."""
        self.daemons[name].kill()
        _kill(_processes_of(name))
        self.daemons[name].wait()

    def kill_process(self, name: str, rng: random.Random) -> None:
        """SIGKILL one process of a node's jobs: a worker, its Snakemake or the shell above them."""
        _, jobs = _steps_and_jobs(name)
        if jobs:
            _kill([rng.choice(jobs)])

    def start(self) -> None:
        """Start all daemons and wait until the nodes are idle."""
        # munged asks that everyone may enter the folder of its socket and nobody else may write there.
        self.folder.chmod(0o711)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        files = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed", "key-file": "key"}
        options = [f"--{option}={self.folder}/munge.{suffix}" for option, suffix in files.items()]
        self.start_daemon("munged", "munged", "--foreground", *options)
        wait_for((self.folder / "munge.socket").exists, 20, "munged")
        host = socket.gethostname().split(".")[0]
        self.conf.write_text(slurm_conf(self.folder, host, getpass.getuser(), _free_port(), self.nodes))
        self.start_daemon("slurmctld", "slurmctld", "-D", "-f", str(self.conf))
        for name in self.nodes:
            self.start_node(name)
        self.wait_idle()

    def stop(self) -> None:
        """Cancel all jobs and stop all daemons, whatever state they are in."""
        with contextlib.suppress(Exception):
            self.ask("scancel", "--full", "--user", getpass.getuser())
            wait_for(lambda: not {job.state for job in self.jobs()} & LIVE, 15, "jobs to end")
        for name in [*self.nodes, "slurmctld", "munged"]:
            if name in self.daemons:
                _end(self.daemons[name])
        for name in self.nodes:
            _kill(_processes_of(name))


def wait_for(ready: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until `ready()`; raises TimeoutError naming `what` after `seconds`, times `PATIENCE`."""
    deadline = time.monotonic() + seconds * PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.2)


def _die_with_parent() -> None:
    """Linux sends SIGTERM to a process that has asked for it when its parent dies."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGTERM)


def _processes_of(node: str) -> list[psutil.Process]:
    """Processes of a node's jobs, and the step daemons above them, which go first."""
    steps, jobs = _steps_and_jobs(node)
    return [*steps, *jobs]


def _steps_and_jobs(node: str) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """Step daemons of a node, and the processes of its jobs."""
    jobs, steps = [], []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("SLURMD_NODENAME") == node:
                jobs.append(process)
                steps += [one for one in process.parents() if one.name().startswith("slurmstepd")]
    return list(dict.fromkeys(steps)), jobs


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _left_behind(folder: Path) -> bool:
    """Whether a folder is that of a private Slurm that was killed."""
    pid = folder / "slurmctld.pid"
    lives = pid.exists() and psutil.pid_exists(int(pid.read_text() or 0))
    return folder.name.startswith("silodp-slurm-") and not lives


@contextlib.contextmanager
def system_conf(conf: Path) -> Iterator[None]:
    """Link /etc/slurm/slurm.conf to `conf` meanwhile; another cluster's file is never touched."""
    place = SYSTEM_CONF
    if place.is_symlink() and _left_behind(place.readlink().parent):
        place.unlink()
    if os.path.lexists(place):
        raise Unavailable(f"Slurm: {place} belongs to a cluster: the test must not replace it")
    made = not place.parent.exists()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(conf)
    except PermissionError:
        raise Unavailable(f"Slurm: {place}: must be writable, as root's is") from None
    try:
        yield
    finally:
        place.unlink()
        if made:
            place.parent.rmdir()


@contextlib.contextmanager
def private_slurm() -> Iterator[PrivateSlurm]:
    """Install Slurm if need be, run one of our own, and stop and remove it afterwards.

    Raises:
        Unavailable: one line, where it cannot be had.
    """
    install()
    # A polite kill ends as Ctrl-C does: everything is stopped first.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="silodp-slurm-"))
    # Names that no other cluster has, so that processes of its jobs can be told from all others.
    nodes = {f"silodp{os.getpid()}n{number}": _free_port() for number in (1, 2)}
    slurm = PrivateSlurm(folder, nodes)
    try:
        with system_conf(slurm.conf):
            try:
                slurm.start()
                yield slurm
            finally:
                slurm.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, before)
