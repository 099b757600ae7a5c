"""The parser: subcommands in groups with an example each, and what a mistyped word may have meant."""

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

# Group → its subcommands; one that stands in none belongs to the last.
GROUPS = {
    "for you": (
        *("init", "rebuild", "replicate", "list", "epsilon", "noise", "amplification"),
        *("audit", "compare", "theory", "claims", "verify", "doctor", "clean", "cost", "contract"),
    ),
    "for the workflow, one job each": (),
}
EXAMPLES = {
    "verify": "silodp verify results/published",
    "doctor": "silodp doctor",
    "clean": "silodp clean default --dry-run",
    "cost": "silodp cost config/default.yaml",
    "amplification": "silodp amplification --epsilon0 0.5 1 --reports 10000 --delta 1e-6",
    "audit": "silodp audit minibatch_sgd --epsilon 1",
    "check": "silodp check rates_convex config/smoke.yaml --output rates_convex.csv",
    "checkins": "silodp checkins config/default.yaml digits_logistic --output checkins.csv",
    "checkins-figure-2": "silodp checkins-figure-2 --output figure_2.csv",
    "claims": "silodp claims results/published",
    "compare": "silodp compare results/published/reported/mnist_mlp.csv spider minibatch_sgd",
    "comparisons": "silodp comparisons results/published/reported/*.csv --output comparisons.csv",
    "config": "silodp config check config/default.yaml",
    "contract": "silodp contract my_algorithm.py",
    "crate": "silodp crate results/published",
    "epsilon": "silodp epsilon --rounds 25 --records 1234 --batch 604 --sigma 0.05 --clip 1 --delta 1e-6",
    "fetch": "silodp fetch mnist",
    "figure": "silodp figure results/published/config.json wbcd_mlp wbcd_mlp_M2_R25"
    " --table results/published/tables/wbcd_mlp.csv --folder .",
    "formulas": "silodp formulas --output formulas.csv",
    "list": "silodp list figures",
    "init": "silodp init patients.csv --target readmitted --silo hospital",
    "model": "silodp model config/patients.yaml patients --chosen results/patients/selection/patients.parquet"
    " --silos results/patients/silos/patients/default --privacy results/patients/privacy/patients.csv --folder models",
    "merge": "silodp merge a.csv b.csv --output all.csv",
    "merge-privacy": "silodp merge-privacy results/smoke/privacy/*.csv --output privacy.csv",
    "noise": "silodp noise --rounds 25 --records 1234 --batch 604 --epsilon 1 --delta 1e-6",
    "partition": "silodp partition config/smoke.yaml wbcd_mlp --output silos",
    "privacy": "silodp privacy config/smoke.yaml wbcd_mlp --chosen results/smoke/selection/wbcd_mlp.parquet"
    " --silos results/smoke/silos/wbcd_mlp/default --output privacy.csv",
    "provenance": "silodp provenance config/smoke.yaml --output provenance.json",
    "publish": "silodp publish results/paper",
    "rebuild": "silodp rebuild config/default.yaml --cores 2",
    "race": "silodp race config/race.yaml wbcd_mlp minibatch_sgd M2_R25 --rung 0"
    " --silos results/race/silos/wbcd_mlp/default --output rung0.parquet",
    "redraw": "silodp redraw results/published/formulas.csv --folder .",
    "replicate": "silodp replicate nonconvex-4 --trials 2",
    "report": "silodp report results/published --output report.html",
    "select": "silodp select config/smoke.yaml wbcd_mlp --trials results/smoke/trials/wbcd_mlp/*/*/*_0-0.parquet"
    " --output chosen.parquet",
    "table": "silodp table config/smoke.yaml wbcd_mlp --grid results/smoke/trials/wbcd_mlp/*/*/*.parquet"
    " --chosen chosen.parquet --privacy privacy.csv --output wbcd_mlp.csv",
    "theory": "silodp theory show convex-2.1 --n 1000 --d 10 --M 25 --R 100 --L 1 --D 1 --epsilon 1 --delta 1e-6",
    "train": "silodp train config/smoke.yaml wbcd_mlp minibatch_sgd M2_R5"
    " --silos results/smoke/silos/wbcd_mlp/default --output trials.parquet",
}


def near(word: str, allowed: Iterable[str]) -> str:
    """`; did you mean X?` where one of `allowed` is close to `word`, else nothing."""
    found = difflib.get_close_matches(word, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""


def aligned(rows: Sequence[Mapping[str, object]], heading: bool = True) -> str:
    """Rows as columns of text, each as wide as its widest cell; numbers to the right.

    Args:
        rows: each with the same keys, which are the heading.
        heading: whether to show it.
    """
    names = list(rows[0]) if rows else []
    cells = [[str(row[name]) for name in names] for row in rows]
    right = [all(isinstance(row[name], (int, float)) for row in rows) for name in names]
    lines = [names, *cells] if heading else cells
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the word that may have been meant."""

    commands: Mapping[str, argparse.ArgumentParser]

    def error(self, message: str) -> NoReturn:
        """Print one line and end with exit code 2."""
        commands = getattr(self, "commands", {})
        words = message.split(": ", 1)[-1].split()
        if "invalid choice" in message and commands:
            word = message.split("'")[1]
            message = f"command: {word!r}: unknown{near(word, commands) or ';'} `silodp --help` lists all"
        elif "invalid choice" in message:
            word, *allowed = re.findall(r"'([^']*)'", message)
            message += near(word, allowed)
        elif message.startswith("unrecognized arguments") and words:
            options = {one for sub in commands.values() for one in getattr(sub, "_option_string_actions", {})}
            message += near(words[0].split("=")[0], options)
        self.exit(2, f"{self.prog}: {message}\n")


def grouped(texts: dict[str, str]) -> str:
    """The overview of `--help`: every subcommand in its group with what it does."""
    placed = {name for names in GROUPS.values() for name in names}
    lines = []
    for group, names in GROUPS.items():
        own = [name for name in names if name in texts] or [name for name in texts if name not in placed]
        lines += [f"{group}:", *(f"  {name:<18} {texts[name]}" for name in own), ""]
    return "\n".join([*lines, "silodp <command> --help says more, with an example."])


def adder(
    subparsers: argparse._SubParsersAction, common: argparse.ArgumentParser, texts: dict[str, str]
) -> Callable[[str, Callable, str], argparse.ArgumentParser]:
    """The function by which modules add their subcommands: `add(name, function, help)`."""

    def add(name: str, function: Callable, text: str) -> argparse.ArgumentParser:
        texts[name] = text
        sub = subparsers.add_parser(
            name,
            parents=[common],
            description=(function.__doc__ or text).split("\n\n")[0],
            epilog=f"example:\n  {EXAMPLES[name]}" if name in EXAMPLES else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(function=function)
        return sub

    return add
