"""What a job asks of a cluster, in the form that Snakemake's rules take."""

from collections.abc import Callable
from typing import Any


def growing(first: int) -> Callable[[object, int], int]:
    """A resource that is `first` at a job's first attempt, twice that at the second, and so on.

    For memory in MB and time in minutes: a job that was killed for want of one asks for more when it is tried again.

    Returns:
        function of a job's wildcards and the number of the attempt, from 1.
    """

    # Snakemake passes the attempt to a parameter of that name.
    def asked(wildcards: object, attempt: int) -> int:
        return first * attempt

    return asked


# The names by which Slurm's and Kubernetes', Google Batch's and AWS Batch's plugins read the GPUs of a job.
GPUS = ("gpu", "nvidia_gpu", "_gpus")


def gpus(asked: Any) -> dict[str, Any]:
    """A job's request for GPUs under every name by which an engine may read it.

    Args:
        asked: a number, None for no request, or a function of the job's wildcards that gives either.
    """
    return dict.fromkeys(GPUS, asked)
