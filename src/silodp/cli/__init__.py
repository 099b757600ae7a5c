"""Arguments come in; files and one line for each error go out.

A command's module is imported when the command runs. Read `options.py` first, then `run.py`.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from silodp import __version__
from silodp.cli.options import COMMON
from silodp.workflow.engine import prepare_streams

# In the order of need: command → its function and what it does, in a line of 80 characters.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init:init", "write a first run file for your own CSV or Parquet file"),
    "rebuild": ("run:rebuild", "run the workflow of a run file"),
    "replicate": ("replicate:replicate", "train and draw one figure of a paper"),
    "list": ("listing:listing", "list experiments, algorithms, data sets and papers' figures"),
    "epsilon": ("practitioner:epsilon", "bound the true epsilon of a federated run"),
    "noise": ("practitioner:noise", "compute the noise for a wanted epsilon"),
    "audit": ("audit:audit", "test whether the trainer's messages are made as planned"),
    "claims": ("claims:claims", "judge the papers' claims, or two algorithms, by a finished run"),
    "theory": ("theory:theory", "list the papers' theorems, or describe one"),
    "verify": ("records:verify", "check that a finished run is complete and unchanged"),
    "publish": ("records:publish", "copy what is small of finished runs to a folder"),
    "fetch": ("data:fetch", "download the files of a data set"),
    "predict": ("predict:predict", "predict records of a file by a released model"),
    "cost": ("run:cost", "estimate jobs, time, memory and disk of a rebuild"),
    "config": ("reference:config", "check a run file or a plug-in, or print all keys"),
    "doctor": ("doctor:doctor", "show what works on this machine"),
    "clean": ("records:clean", "remove files that a run no longer names, or a whole run"),
    "silo": ("silo:silo", "take part in a federated run: key, check, training, budget"),
    "federate": ("federate:federate", "coordinate a run of silos that keep their records"),
    "ledger": ("ledger:ledger", "show what was released of a folder's records; mend it"),
    "decided": ("decided:decided", "decide pairs of algorithms by fresh trials"),
}


class _Group(click.Group):
    """All commands; each is imported when it is needed."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, function = COMMANDS[name][0].partition(":")
        return getattr(import_module(f"silodp.cli.{module}"), function)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.version_option(__version__, message="silodp %(version)s")
@click.group(
    cls=_Group,
    params=[*COMMON],
    context_settings={"max_content_width": 100},
    commands={name: click.Command(name) for name in COMMANDS},
)
def silodp() -> None:
    """Differentially private federated learning, replicated; `silodp COMMAND --help` explains a command."""


def main(words: Sequence[str] | None = None) -> int:
    """Run `silodp`; returns the exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    words = sys.argv[1:] if words is None else list(words)
    prepare_streams()
    try:
        return silodp.main(words, "silodp", standalone_mode=False, obj={"words": words}) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.message, file=sys.stderr)
        return 2
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "silodp"
        print(f"{command}: {' '.join(error.format_message().split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is left in the buffer cannot be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"silodp: standard output: {error.strerror}: must be writable", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, click.Abort):
        print("silodp: interrupted", file=sys.stderr)
        return 130
