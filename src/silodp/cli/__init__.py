"""Arguments come in; files and one line for each error go out. The workflow's rules call the same commands.

A command's module is imported when the command runs. Read `options.py` first, then `train.py`.
"""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from silodp import __version__
from silodp.cli.options import COMMON
from silodp.workflow.engine import JOB_VARIABLE, end_with_parent

# Section of the help → command → its function and what it does.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "For you": {
        "init": ("init:init", "write a first run file for your own CSV or Parquet file"),
        "rebuild": ("run:rebuild", "run the workflow of a run file"),
        "silo": ("silo:silo", "make a silo's key, check a federated run, take part in one, or raise its budget"),
        "federate": ("federate:federate", "coordinate a run of silos that keep their records and promises"),
        "ledger": ("ledger:ledger", "show what was released of a folder's records, set its budget, or mend it"),
        "predict": ("predict:predict", "predict records of a file by a released model"),
        "replicate": ("replicate:replicate", "train and draw one figure of a paper"),
        "list": ("listing:listing", "list experiments, algorithms, data sets and the papers' figures"),
        "epsilon": ("practitioner:epsilon", "bound the true epsilon of a federated run"),
        "noise": ("practitioner:noise", "compute the noise for a wanted epsilon"),
        "amplification": ("practitioner:amplification", "bound the central epsilon of shuffled or sampled reports"),
        "audit": ("audit:audit", "test whether the trainer's messages are made as its plan says"),
        "compare": ("compare:compare", "compare two algorithms trial by trial"),
        "decided": ("decided:decided", "decide pairs of algorithms by fresh trials of what tuning may choose"),
        "theory": ("theory:theory", "list the papers' theorems, or describe one"),
        "claims": ("compare:claims", "judge the papers' claims by a finished run"),
        "verify": ("records:verify", "check that a finished run is complete and unchanged"),
        "doctor": ("doctor:doctor", "show what works on this machine"),
        "clean": ("records:clean", "remove files that a run's configuration no longer names, or a whole run"),
        "cost": ("run:cost", "estimate jobs, time, memory and disk of a rebuild"),
        "config": ("reference:config", "check a run file, or print the schema or the reference of all keys"),
        "contract": ("contract:contract", "test your own algorithm or data set against the registry's contract"),
        "publish": ("records:publish", "copy tables, figures and provenance of finished runs to a folder"),
        "redraw": ("figures:redraw", "draw the figures of a table again"),
    },
    "For the workflow, one job each": {
        "fetch": ("data:fetch", "download the files of a data set"),
        "partition": ("data:partition", "divide an experiment's records among silos"),
        "train": ("train:train", "train one algorithm over its grid"),
        "fresh": ("train:fresh", "train an experiment's algorithms at the chosen points"),
        "race": ("train:race", "train one rung of a race over the grid"),
        "select": ("select:select", "choose points by training loss"),
        "privacy": ("privacy:privacy", "bound the true epsilon of every chosen private point"),
        "table": ("tables:table", "aggregate trials into the experiment's table"),
        "formulas": ("checkins:formulas", "bound the true epsilon of the papers' noise formulas"),
        "merge": ("tables:merge", "merge the experiments' tables of privacy, by_round and audit"),
        "figure": ("figures:figure", "draw figures of an experiment's table"),
        "leaderboard": ("leaderboard:leaderboard", "compare algorithms at equal true epsilon over data sets"),
        "study": ("study:study", "judge the models of an experiment on your own file"),
        "comparisons": ("compare:comparisons", "compute the paired comparisons of the page's first figure"),
        "check": ("bounds:check", "compare a bound of the papers with runs"),
        "checkins-figure-2": ("checkins:figure_2", "compute Figure 2 of the check-ins paper"),
        "checkins": ("checkins:checkins", "compare random check-ins with other amplification"),
        "provenance": ("records:provenance", "record what a run was made from"),
        "crate": ("records:crate", "write the manifest of a finished run, an RO-Crate"),
        "report": ("report:report", "build the report page of a run"),
    },
}
_PLACES = {name: place for section in COMMANDS.values() for name, (place, _) in section.items()}


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"silodp.cli.{module}"), name)


class _Group(click.Group):
    """All commands; each is imported when it is needed."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return _load(_PLACES[name]) if name in _PLACES else None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in COMMANDS.items():
            with formatter.section(section):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])


@click.version_option(__version__, message="silodp %(version)s")
@click.group(
    cls=_Group,
    params=[*COMMON],
    context_settings={"max_content_width": 100},
    commands={name: click.Command(name) for name in _PLACES},
)
def silodp() -> None:
    """Differentially private federated learning, replicated; `silodp COMMAND --help` explains a command."""


def main(words: Sequence[str] | None = None) -> int:
    """Run `silodp`; returns the exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    if parent := os.environ.get(JOB_VARIABLE):
        end_with_parent(int(parent))
    words = sys.argv[1:] if words is None else list(words)
    for stream in (sys.stdout, sys.stderr):
        # A character that the locale lacks, as in LC_ALL=C, or an undecodable name is escaped.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return silodp.main(words, "silodp", standalone_mode=False, obj={"words": words, "load": _load}) or 0
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
