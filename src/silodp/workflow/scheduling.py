"""Snakemake as `silodp rebuild` starts it: `python -m silodp.workflow.scheduling` with the words of `snakemake`.

Its default limit of jobs started in a second is off. Under any such limit Snakemake 9.27 looks over all ready jobs once
a timespan, and once more in each for every job that has finished: over 454 jobs close to a quarter of a core, which
training needs (docs/performance.md). A limit of one's own, in a profile or behind `--`, stays.
"""

import argparse
import sys
from collections.abc import Sequence

from snakemake.cli import args_to_api, parse_args
from snakemake.exceptions import print_exception
from snakemake.settings.types import MaxJobsPerTimespan


def parsed(words: Sequence[str] | None = None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Snakemake's parser and its options from `words` (default: the command line), without the default limit."""
    parser, options = parse_args(words)
    limit, default = options.max_jobs_per_timespan, parser.get_default("max_jobs_per_timespan")
    if limit is not None and vars(limit) == vars(MaxJobsPerTimespan.parse_choice(default)):
        options.max_jobs_per_timespan = None
    return parser, options


def main() -> int:
    """Run Snakemake; its exit code."""
    sys.argv[0] = "snakemake"  # whose messages these are
    try:
        parser, options = parsed()
        return 0 if args_to_api(options, parser) else 1
    except Exception as error:  # as Snakemake's own main does
        print_exception(error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
