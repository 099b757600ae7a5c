"""The command line: every rule of the workflow calls one of these subcommands, and so can a person.

What is slow to load, as PyTorch, SciPy and matplotlib are, a subcommand imports when it runs; all else at the top.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from silodp import __version__
from silodp.cli import warm
from silodp.cli.parser import Parser, adder, grouped
from silodp.datasets.addresses import without_credentials
from silodp.experiments import plugins
from silodp.workflow.engine import JOB_VARIABLE, end_with_parent, set_environment

log = logging.getLogger("silodp")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `silodp`; returns the exit code: 0 done, 1 failed, 2 bad input."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        # Also in the second that libraries take to load.
        print("silodp: interrupted", file=sys.stderr)
        return 130


def _main(arguments: Sequence[str] | None) -> int:
    if parent := os.environ.get(JOB_VARIABLE):
        end_with_parent(parent=int(parent))
        if arguments is None and (place := os.environ.get(warm.VARIABLE)):
            code = warm.handed_over(place, sys.argv[1:])
            if code is not None:
                return code
    parser = make_parser()
    words = list(sys.argv[1:] if arguments is None else arguments)
    # What follows -- is for the program that a subcommand calls; argparse would take it for this one's own.
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    options.words = words
    if words[end + 1 :]:
        if not hasattr(options, "arguments"):
            parser.error(f"{options.command} takes nothing after --: {' '.join(words[end + 1 :])}")
        options.arguments = words[end + 1 :]
    # Other libraries speak from warnings on only; some report every glyph they draw.
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    log.setLevel(logging.WARNING if options.quiet else logging.INFO)
    try:
        set_environment()
        if options.plugin:
            plugins.named(options.plugin)
        plugins.use()
        done = options.function(options) or 0
        sys.stdout.flush()
        return done
    except BrokenPipeError:
        # Whoever read the output has left, as `head` does: the rest goes nowhere, and at exit Python must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ValueError as error:
        if options.verbose:
            raise
        # Bad input is one line without a traceback; anything else is a fault of the program and shows where.
        return _refuse(options.command, str(error))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        # Errors of the parquet reader name the file in their text only.
        what = f"{error.filename}: {error.strerror}" if error.filename else " ".join(str(error).split())
        print(f"silodp {options.command}: {what}: must be a readable file", file=sys.stderr)
        return 2
    except OSError as error:
        # The machine's fault and not the input's: a full disk, a folder that cannot be written.
        if options.verbose:
            raise
        what = f"{error.filename}: {error.strerror}" if error.filename else " ".join(str(error).split())
        print(f"silodp {options.command}: {what}", file=sys.stderr)
        return 1


def _refuse(command: str, text: str) -> int:
    """Say in one line what is wrong with an input, without the credentials that an address in it may hold."""
    print(f"silodp {command}: {' '.join(without_credentials(text).split())}", file=sys.stderr)
    return 2


def make_parser() -> Parser:
    """The parser of all subcommands."""
    # A job is computed by its own subcommand: at the top all of them would be reached with this package.
    from silodp.cli import (
        audit,
        bounds,
        checkins,
        claims,
        contract,
        data,
        doctor,
        figures,
        folders,
        listing,
        own,
        practitioner,
        replicate,
        report,
        run,
        tables,
        theory,
        train,
    )

    parser = Parser(
        prog="silodp",
        description="Differentially private federated learning, replicated.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"silodp {__version__}")
    # Options that make sense for every subcommand, so that `silodp train -q …` works as well as `silodp -q train …`.
    quiet = "say nothing but warnings and errors"
    parser.add_argument("-q", "--quiet", action="store_true", help=quiet)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="store_true", help="show where an error came from")
    common.add_argument(
        "--plugin", action="append", metavar="FILE", help="a file with algorithms or data sets of one's own; repeatable"
    )
    common.add_argument("-q", "--quiet", action="store_true", default=argparse.SUPPRESS, help=quiet)
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="command", help="see below", parser_class=Parser
    )
    texts: dict[str, str] = {}
    add = adder(subparsers, common, texts)
    for group in (
        *(data, train, tables, figures, report, run, folders, bounds, checkins, claims, theory, practitioner),
        *(listing, own, replicate, audit, contract, doctor),
    ):
        group.register(add)
    parser.commands = subparsers.choices
    parser.epilog = grouped(texts)
    return parser
