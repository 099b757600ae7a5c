"""How a command or a job starts and ends: logging, plug-ins, and errors as one line with an exit code."""

import logging
import sys
from collections.abc import Callable, Sequence

from silodp.datasets.own.schema import TableError
from silodp.datasets.sources import without_credentials
from silodp.extending import plugins
from silodp.workflow.engine import set_environment

log = logging.getLogger("silodp")


def start(quiet: bool = False, plugin_files: Sequence[str] = (), enters: bool = True) -> None:
    """Set logging, environment and plug-ins, which run as they are entered; ValueError where one of them is wrong."""
    # Other libraries report warnings only.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", force=True)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    set_environment()
    if plugin_files:
        plugins.set_command_line(plugin_files)
    if enters:
        plugins.activate()


def exit_code_of(name: str, work: Callable[[], int | None], verbose: bool = False) -> int:
    """Do `work` as `name`; returns its exit code: 2 for bad input, 1 for a fault of the machine, both in one line.

    Any other exception is a fault of the program and keeps its traceback; with `verbose` each does.
    """
    try:
        code = work() or 0
        if sys.stdout:  # None where it is closed
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        raise
    except (MemoryError, RuntimeError) as error:
        # PyTorch says so in words alone.
        if verbose or not (isinstance(error, MemoryError) or "allocate memory" in str(error)):
            raise
        print(f"{name}: memory: too little is free: must be more, or a smaller run", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        if verbose:
            raise
        unreadable = isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError))
        text = without_credentials(str(error))
        # Errors of the parquet reader name the file in their text only.
        if isinstance(error, OSError) and error.filename:
            text = f"{error.filename}: {error.strerror}"
        # A table may have several faults, each a line.
        for line in text.split("\n") if isinstance(error, TableError) else [text]:
            words = " ".join(line.split()) + (": must be a readable file" if unreadable else "")
            print(f"{name}: {words}", file=sys.stderr)
        return 2 if unreadable or isinstance(error, ValueError) else 1
