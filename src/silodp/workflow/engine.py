"""Snakemake as a child: one at a time in a folder, stopped with all its jobs when the command that started it is."""

import atexit
import ctypes
import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs
import psutil
import yaml

# The process of the Snakemake that started a rule's command, which ends with it, however it ends.
JOB_VARIABLE = "SILODP_JOB"
_STATE = Path(".snakemake")
_LOCK, _HOLDER = _STATE / "silodp-rebuild.lock", _STATE / "silodp-holder.json"
# Seconds that jobs have to end in after a signal, before they are killed.
_GRACE = 10.0
_PR_SET_PDEATHSIG = 1


def set_environment() -> None:
    """Make variables that are none of a run's business harmless; ValueError for one that would change its results."""
    # matplotlib stops at once where this names no backend; figures are drawn without one.
    os.environ["MPLBACKEND"] = "agg"
    if (said := os.environ.get("NUMBA_DISABLE_JIT", "0")) != "0":
        raise ValueError(
            f"environment: NUMBA_DISABLE_JIT: {said!r}: must be 0 or not set: without the compiler results are others"
        )
    _give_caches()


def _give_caches() -> None:
    """Where the user's cache folder cannot be made, as with a HOME that is not there, caches go to one of this process.

    Snakemake, the compiler of kernels and the drawing of figures would stop, or say so at length. Data are no cache:
    where theirs is stays as it was, so that a fetch says in one line that it cannot be written.
    """
    folder = Path(platformdirs.user_cache_dir())
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return
    from silodp.datasets.cache import cache_folder  # loads pandas, for which every command would wait

    os.environ["SILODP_DATA_CACHE"] = str(cache_folder())
    # Nobody else's: what lies in it is run.
    made = tempfile.mkdtemp(prefix="silodp-caches-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    os.environ["XDG_CACHE_HOME"] = os.environ["MPLCONFIGDIR"] = made


class BusyError(ValueError):
    """Another rebuild or Snakemake works in this folder; the text is one line."""


def end_with_parent(number: signal.Signals = signal.SIGKILL, parent: int | None = None) -> None:
    """From now on this process gets a signal when its parent dies; only Linux can do that.

    Args:
        number: the signal.
        parent: the process that started this one, perhaps through another, and may have died since; default: whatever
            is its parent now.
    """
    if sys.platform == "linux":
        wanted = os.getppid() if parent is None else parent
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != wanted and (parent is None or not _lives(parent)):  # it died before this was said
            os.kill(os.getpid(), number)


def _lives(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def note_holder() -> None:
    """Leave word which process has Snakemake's lock, so that one that was killed is told from one that works."""
    here = psutil.Process()
    _HOLDER.write_text(json.dumps({"host": platform.node(), "pid": here.pid, "began": here.create_time()}))


@contextmanager
def only_one() -> Iterator[int]:
    """A lock on this folder's state, as an open file; children that inherit the file keep the lock when we are gone.

    What a killed Snakemake left locked is released. Raises BusyError where another one is at work.
    """
    _STATE.mkdir(exist_ok=True)
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                "command line: folder: another rebuild is running in this folder: wait for its end"
            ) from None
        _release()
        yield lock
    finally:
        os.close(lock)


def _release() -> None:
    """Remove Snakemake's own locks where their holder is gone."""
    locks = _STATE / "locks"
    if not locks.is_dir() or not any(locks.iterdir()):
        return
    host, number, began = platform.node(), 0, 0.0
    with suppress(OSError, ValueError, TypeError, KeyError):
        holder = json.loads(_HOLDER.read_text())
        host, number, began = str(holder["host"]), int(holder["pid"]), float(holder["began"])
    if host != platform.node():
        raise BusyError(
            f"command line: folder: locked by Snakemake on {host}, process {number}: "
            "wait for its end, or where it is gone run `snakemake --unlock`"
        )
    with suppress(psutil.Error):
        process = psutil.Process(number)
        # A process that is dead and that nobody has asked about stays in the list as a zombie.
        if process.create_time() == began and process.status() != psutil.STATUS_ZOMBIE:
            raise BusyError(
                f"command line: folder: Snakemake is running in this folder, process {number}: wait for its end"
            )
    shutil.rmtree(locks)


def run(command: Sequence[str], environment: dict[str, str], lock: int, profile: Path) -> int:
    """Run Snakemake to its end; a signal to this process ends it with its jobs. Returns the exit code.

    Args:
        command: Snakemake's command line.
        environment: its environment.
        lock: the open file of `only_one`, which it keeps open.
        profile: folder of its profile. Where that hands jobs to a cluster, a killed parent lets them end.
    """
    farewell = signal.SIGTERM if on_cluster(profile) else signal.SIGKILL
    received: list[int] = []
    own = os.getpid()
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, lambda number, frame: received.append(number)) for number in wanted}
    try:
        child = subprocess.Popen(
            command, env=environment, pass_fds=(lock,), preexec_fn=lambda: end_with_parent(farewell, own)
        )
        while not received:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(timeout=0.2)
        # From a terminal the signal went to all processes; who sent it to this one alone finds the others at work.
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=3 if received[0] == signal.SIGINT else 0)
        _stop(child)
        return 128 + received[0]
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _stop(child: subprocess.Popen) -> None:
    """End Snakemake and everything it started: asked first, then killed."""
    with suppress(psutil.Error):
        engine = psutil.Process(child.pid)
        family = [*engine.children(recursive=True), engine]
        child.send_signal(signal.SIGINT)
        for job in family[:-1]:
            with suppress(psutil.Error):
                job.terminate()
        _, alive = psutil.wait_procs(family, timeout=_GRACE)
        for process in alive:
            with suppress(psutil.Error):
                process.kill()
    child.wait()


def on_cluster(profile: Path) -> bool:
    """Whether a profile names an executor other than this machine."""
    for file in (profile / "config.yaml", *sorted(profile.glob("config.v*.yaml"))):
        with suppress(OSError, yaml.YAMLError, AttributeError):
            if yaml.safe_load(file.read_text(encoding="utf-8")).get("executor", "local") != "local":
                return True
    return False
