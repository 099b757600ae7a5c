"""Jobs of a local rebuild as copies of one process that has imported everything: a start in place of three seconds.

`silodp rebuild` starts that process (forks.py) and names its socket in the environment; the command of a rule hands its
words over and waits. What a job computes is the same: `main` of these words in this folder and environment.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "SILODP_WARM"
# Read by libraries when they are imported: a job that wants others starts by itself.
_READ_ONCE = re.compile(r"(PYTHON|NUMBA_|MKL_|KMP_|LD_).*|.*_NUM_THREADS")
# What Snakemake sets for a job of one thread.
ONE_THREAD = dict.fromkeys((f"{one}_NUM_THREADS" for one in ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")), "1")


@contextmanager
def jobs_from_one(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment for a Snakemake on this machine whose jobs come from one process, which ends with the block."""
    folder = tempfile.mkdtemp(prefix="silodp-")
    with socket.socket(socket.AF_UNIX) as listening:
        # Jobs that come before everything is imported wait here.
        listening.bind(place := os.path.join(folder, "jobs"))
        listening.listen(256)
        own = {**environment, **ONE_THREAD}
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "silodp.cli.forks",
                str(listening.fileno()),
                json.dumps(same(own)),
                str(os.getpid()),
            ],
            env=own,
            pass_fds=(listening.fileno(),),
        )
    try:
        yield {**environment, VARIABLE: place}
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def handed_over(place: str, words: Sequence[str]) -> int | None:
    """Exit code of a job that ran elsewhere with this process's files and environment; None to run it here."""
    request = {"words": list(words), "folder": os.getcwd(), "environment": dict(os.environ), "same": same(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(place)
            payload = json.dumps(request).encode()
            socket.send_fds(connection, [len(payload).to_bytes(8, "big")], [0, 1, 2])
            connection.sendall(payload)
            answer = connection.makefile("rb").readline()
        except OSError:
            return None
    if not answer:
        print("silodp: the process of this job was killed", file=sys.stderr)
        return 137
    return json.loads(answer)


def same(environment: Mapping[str, str]) -> list[str]:
    """What has to be equal for a fork to be the process that would have been started."""
    read = [f"{key}={value}" for key, value in sorted(environment.items()) if _READ_ONCE.fullmatch(key)]
    return [sys.prefix, str(Path(__file__).resolve()), *read]
