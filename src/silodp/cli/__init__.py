"""The command line: every rule of the workflow calls one of these subcommands, and so can a person."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence

log = logging.getLogger("silodp")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `silodp`; returns the exit code: 0 done, 1 failed, 2 bad input."""
    parser = make_parser()
    words = list(sys.argv[1:] if arguments is None else arguments)
    # What follows -- is for the program that a subcommand calls; argparse would take it for this one's own.
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
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
        print(f"silodp {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        # Errors of the parquet reader name the file in their text only.
        what = f"{error.filename}: {error.strerror}" if error.filename else " ".join(str(error).split())
        print(f"silodp {options.command}: {what}: must be a readable file", file=sys.stderr)
        return 2


def make_parser() -> argparse.ArgumentParser:
    """The parser of all subcommands."""
    from silodp import (
        __version__,
        check_commands,
        checkins_commands,
        claims_commands,
        commands,
        practitioner,
        privacy_commands,
        publishing,
        theory_commands,
    )

    parser = argparse.ArgumentParser(
        prog="silodp", description="Differentially private federated learning, replicated."
    )
    parser.add_argument("--version", action="version", version=f"silodp {__version__}")
    # Options that make sense for every subcommand, so that `silodp train -q …` works as well as `silodp -q train …`.
    quiet = "say nothing but warnings and errors"
    parser.add_argument("-q", "--quiet", action="store_true", help=quiet)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="store_true", help="show where an error came from")
    common.add_argument("-q", "--quiet", action="store_true", default=argparse.SUPPRESS, help=quiet)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="command")

    def add(name: str, function: Callable, text: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(
            name, parents=[common], help=text, description=(function.__doc__ or text).split("\n\n")[0]
        )
        sub.set_defaults(function=function)
        return sub

    commands.register(add)
    check_commands.register(add)
    checkins_commands.register(add)
    claims_commands.register(add)
    theory_commands.register(add)
    practitioner.register(add)
    publishing.register(add)
    privacy_commands.register(add)
    return parser


if __name__ == "__main__":
    sys.exit(main())
