"""A Slurm on this machine for tests: munge, a controller and two nodes, whose files lie in one folder.

It needs no systemd, no cgroups and no accounting database. All daemons are child processes in the foreground; leaving
the context stops them, and they die with this process.
"""

import contextlib
import ctypes
import getpass
import os
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

# The executor plugin drops SLURM_CONF before its inner srun, which then looks here.
SYSTEM_CONF = Path("/etc/slurm/slurm.conf")
LIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"}
# All waiting times are multiplied by this factor, on a busy machine.
PATIENCE = float(os.environ.get("SILODP_TEST_PATIENCE", "1"))
PATH = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/sbin"
# A node has one processor, so that a run of four training jobs has a middle.
CONF = """\
ClusterName=silodp
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=bf_interval=5,sched_interval=5,batch_sched_delay=0
EnforcePartLimits=ALL
MessageTimeout=60
OverTimeLimit=UNLIMITED
MinJobAge=600
SlurmdTimeout=20
ReturnToService=2
KillWait=5
JobRequeue=1
SlurmdParameters=config_overrides
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=16000 State=UNKNOWN\n"
PARTITION = "PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP\n"


@dataclass
class Job:
    """A line of squeue; `comment` holds rule and wildcards."""

    id: str
    state: str
    comment: str
    memory: str


@dataclass
class PrivateSlurm:
    """A running Slurm, whose files lie in `folder`; `nodes`: name → port."""

    folder: Path
    nodes: dict[str, int]
    daemons: dict[str, subprocess.Popen] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """The environment of a process that speaks to this Slurm."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        return kept | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PATH}

    def output(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def jobs(self) -> list[Job]:
        """All jobs that the controller remembers, finished ones too."""
        lines = self.output("squeue", "--noheader", "--states=all", "--format=%i|%T|%k|%m").splitlines()
        return [Job(*line.split("|")) for line in lines]

    def live(self) -> list[Job]:
        """Jobs that wait or run."""
        return [job for job in self.jobs() if job.state in LIVE]

    def start_daemon(self, name: str, *command: str) -> None:
        program = shutil.which(command[0], path=PATH)
        assert program, f"{command[0]} is not installed (Debian: apt-get install slurmctld slurmd slurm-client munge)"
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
        self.start_daemon(name, "slurmd", "-D", "-N", name, "-f", str(self.folder / "slurm.conf"))

    def kill_node(self, name: str) -> None:
        """Kill daemon, steps and jobs of a node at once, as a power cut does."""
        self.daemons[name].kill()
        _kill_processes_of(name)
        self.daemons[name].wait()

    def wait_idle(self) -> None:
        idle = {f"{name} idle" for name in self.nodes}

        def ready() -> bool:
            with contextlib.suppress(subprocess.CalledProcessError):
                states = self.output("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
                return set(states) == idle and not self.live()
            return False

        wait_for(ready, 60, "all nodes to be idle")

    def start(self) -> None:
        # munged wants everyone to enter the folder of its socket and nobody else to write there.
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
        text = CONF.format(host=host, port=_free_port(), user=getpass.getuser(), folder=self.folder)
        text += "".join(NODE.format(name=name, host=host, port=port) for name, port in self.nodes.items())
        (self.folder / "slurm.conf").write_text(text + PARTITION.format(nodes=",".join(self.nodes)))
        self.start_daemon("slurmctld", "slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        for name in self.nodes:
            self.start_node(name)
        self.wait_idle()

    def stop(self) -> None:
        """Cancel all jobs and stop all daemons, whatever state they are in."""
        with contextlib.suppress(Exception):
            self.output("scancel", "--full", "--user", getpass.getuser())
            wait_for(lambda: not self.live(), 15, "jobs to end")
        for name in reversed(self.daemons):
            self.daemons[name].kill()
            self.daemons[name].wait()
        for name in self.nodes:
            _kill_processes_of(name)


def wait_for(ready: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until `ready()`; raises TimeoutError naming `what` after `seconds`, times `PATIENCE`."""
    deadline = time.monotonic() + seconds * PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.2)


def _die_with_parent() -> None:
    """Have Linux send SIGTERM to this process when its parent dies."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGTERM)


def _kill_processes_of(node: str) -> None:
    """Kill the processes of a node's jobs, and before them the step daemons above them."""
    jobs, steps = [], []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("SLURMD_NODENAME") == node:
                jobs.append(process)
                steps += [parent for parent in process.parents() if parent.name().startswith("slurmstepd")]
    for process in [*steps, *jobs]:
        with contextlib.suppress(psutil.Error):
            process.kill()


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@contextlib.contextmanager
def private_slurm() -> Iterator[PrivateSlurm]:
    """Run a Slurm, and stop and remove it afterwards; the configuration of another cluster is never replaced."""
    folder = Path(tempfile.mkdtemp(prefix="silodp-slurm-"))
    # No other cluster has these names, so that processes of this Slurm's jobs can be told from all others.
    slurm = PrivateSlurm(folder, {f"silodp{os.getpid()}n{number}": _free_port() for number in (1, 2)})
    if SYSTEM_CONF.is_symlink() and SYSTEM_CONF.readlink().parent.name.startswith("silodp-slurm-"):
        SYSTEM_CONF.unlink()
    assert not os.path.lexists(SYSTEM_CONF), f"{SYSTEM_CONF} belongs to a cluster: the test must not replace it"
    SYSTEM_CONF.parent.mkdir(parents=True, exist_ok=True)
    SYSTEM_CONF.symlink_to(folder / "slurm.conf")
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        SYSTEM_CONF.unlink()
        shutil.rmtree(folder, ignore_errors=True)
