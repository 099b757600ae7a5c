"""The process that `silodp rebuild` forks its jobs from: what they need is imported here, once."""

# ruff: noqa: F401

import fcntl
import gc
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

# What is not here is imported by the job that needs it.
import dp_accounting.pld
import jinja2
import matplotlib.pyplot
import pyarrow.parquet
import rocrate.rocrate
import scipy.integrate
import scipy.optimize
import scipy.stats
import sklearn.datasets
import sklearn.decomposition
import sklearn.preprocessing

import silodp.experiments.training
import silodp.workflow.plan
from silodp.cli import main, warm
from silodp.workflow.engine import JOB_VARIABLE, end_with_parent


def serve(listening: socket.socket, wanted: object, parent: int) -> None:
    """Run every job in a fork of this process, if what it read when it started is as `wanted`, until killed.

    `parent` started this process, and may have been killed while it imported all this.
    """
    end_with_parent(parent=parent)
    own = str(os.getpid())
    # An interrupt from a terminal goes to all processes; jobs end when the command that waits for them does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    while True:
        connection, _ = listening.accept()
        with connection, suppress(OSError, ValueError):
            head, files, _, _ = socket.recv_fds(connection, 8, 3)
            request = json.loads(_exactly(connection, int.from_bytes(head, "big")))
            if request["same"] != wanted:
                connection.sendall(b"null\n")
            elif os.fork() == 0:
                listening.close()
                _run(connection, files, request, own)
            for file in files:
                os.close(file)


def _exactly(connection: socket.socket, number: int) -> bytes:
    found = bytearray()
    while len(found) < number:
        found += connection.recv(number - len(found)) or b" " * number
    return bytes(found)


def _run(connection: socket.socket, files: Sequence[int], request: dict, parent: str) -> None:
    """Be the job: its files, folder, environment and words; the answer is its exit code. It ends with `parent`."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # The command that waits is what Snakemake stops: when it goes, this signal ends the job at once.
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    code: int | str | None = 1
    try:
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        del os.environ[warm.VARIABLE]
        os.environ[JOB_VARIABLE] = parent
        sys.argv = ["silodp", *request["words"]]
        code = main(request["words"])
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        with suppress(OSError):
            connection.sendall(b"%d\n" % (code if isinstance(code, int) else code is not None))
        os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]), int(sys.argv[3]))
