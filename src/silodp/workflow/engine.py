"""Snakemake as a child: one rebuild at a time in a folder, stopped with all its jobs when its command is stopped."""

import atexit
import ctypes
import fcntl
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import platformdirs
import psutil

# The process of the Snakemake that started a rule's command, which ends with it, however it ends.
JOB_VARIABLE = "SILODP_JOB"
_LOCK = Path(".snakemake") / "silodp.lock"
# Seconds that Snakemake and its jobs have to end in after a signal, before they are killed.
_GRACE = 10.0
_PR_SET_PDEATHSIG = 1


class BusyError(ValueError):
    """Another command works in this folder; the text is one line."""


def set_environment() -> None:
    """Make variables that are none of a run's business harmless; ValueError for one that would change its results."""
    # matplotlib stops at once where this names no backend; figures are drawn without one.
    os.environ["MPLBACKEND"] = "agg"
    if (value := os.environ.get("NUMBA_DISABLE_JIT", "0")) != "0":
        allowed = "must be 0 or not set: without the compiler results differ"
        raise ValueError(f"environment: NUMBA_DISABLE_JIT: {value!r}: {allowed}")
    _give_caches()


def prepare_streams() -> None:
    """Let output and errors hold whatever a name holds."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the locale lacks, as in LC_ALL=C, or an undecodable name is escaped.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_caches() -> None:
    """Where the user's cache folder cannot be made, caches go to a folder of this process; data stay where they are."""
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


def lock() -> int:
    """Lock this folder until the process ends or closes the returned open file; BusyError where it is locked."""
    _LOCK.parent.mkdir(exist_ok=True)
    return _locked(_LOCK, "folder: another rebuild is running in this folder")


def lock_results(folder: Path | str) -> int:
    """Lock a folder of results, which need not be there, by a file beside it: all that write it, or copy it, do so."""
    place = Path(folder).resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    return _locked(place.with_name(f".{place.name}.lock"), f"{folder}: another command works on this folder")


@contextmanager
def results_locked(*folders: Path) -> Iterator[None]:
    """Folders of results while no rebuild, publish or clean works on them."""
    with ExitStack() as files:
        for folder in sorted({folder.resolve() for folder in folders}):
            if not folder.parent.is_dir():
                continue
            try:
                files.callback(_unlock_results, folder, lock_results(folder))
            except PermissionError:  # nobody writes a folder that lies in a read-only one
                continue
        yield


def _unlock_results(folder: Path, file: int) -> None:
    folder.with_name(f".{folder.name}.lock").unlink(missing_ok=True)
    os.close(file)


def _locked(path: Path, busy: str) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError as error:
        raise ValueError(f"{path.parent}: {error.strerror}: must be where a folder can be made") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise BusyError(f"{busy}: wait for its end") from None
    # Who held it may have removed the file in between.
    if not path.exists() or not os.path.samestat(os.fstat(file), path.stat()):
        os.close(file)
        return _locked(path, busy)
    return file


def end_with_parent(parent: int) -> None:
    """Kill this process when `parent`, which started it, dies or has died; Linux alone can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent and not psutil.pid_exists(parent):
            os.kill(os.getpid(), signal.SIGKILL)


def run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run Snakemake to its end; a signal to this process ends it with its jobs. The exit code, or BusyError."""
    # Snakemake takes the lock itself; a refusal here is one line.
    os.close(lock())
    own, received = os.getpid(), []
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, lambda number, frame: received.append(number)) for number in signals}
    try:
        child = subprocess.Popen(command, env=environment, preexec_fn=lambda: end_with_parent(own))
        while not received:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(timeout=0.2)
        _stop(child)
        print("silodp: interrupted: the same command goes on where it was", file=sys.stderr)
        return 128 + received[0]
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _stop(child: subprocess.Popen) -> None:
    """End Snakemake and everything that it started: asked first, then killed."""
    with suppress(psutil.Error):
        family = [*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)]
        child.send_signal(signal.SIGINT)
        for job in family[:-1]:
            with suppress(psutil.Error):
                job.terminate()
        for process in psutil.wait_procs(family, timeout=_GRACE)[1]:
            with suppress(psutil.Error):
                process.kill()
    child.wait()
