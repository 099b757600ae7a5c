"""Snakemake as `silodp rebuild` starts it: after Ctrl-C it ends its jobs without a word, as the rebuild has one."""

import os
import signal
import sys
from types import FrameType


def fall_silent(number: int, frame: FrameType | None) -> None:
    """End as by any KeyboardInterrupt, whose tracebacks nobody sees."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, fall_silent)
    from snakemake.cli import main  # takes a second, in which a signal may come

    sys.exit(main())
