"""What a job asks of a cluster, in the form that Snakemake's rules take."""

from collections.abc import Callable


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
