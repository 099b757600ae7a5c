"""The subcommand `silodp claims`: what a run says about the papers' claims."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from silodp.config.errors import ConfigError, project_root
from silodp.experiments.validation import load
from silodp.files import write_csv
from silodp.verdicts.claims import decide
from silodp.verdicts.words import Verdict

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add this subcommand with `add(name, function, help)`."""
    sub = add("claims", claims, "verdicts on the papers' claims, from a finished run")
    sub.add_argument("run", help="results folder, run file or run's name, as in results/default")
    sub.add_argument("--experiments", nargs="+", help="no others are read (default: those of config.json)")
    sub.add_argument("--claims", type=Path, help="folder of the claims' files (default: config/claims)")
    sub.add_argument("--output", type=Path, help="CSV file; default: print")
    sub.add_argument("--json", action="store_true", help="print all rows as JSON")
    sub.add_argument("--markdown", action="store_true", help="print the claims themselves as a Markdown table")


def claims(options: argparse.Namespace) -> None:
    """Decide every claim of config/claims by a run's tables, in the words of silodp.verdicts.words."""
    from silodp.verdicts.claims.base import RunFolder
    from silodp.verdicts.claims.loading import load_claims
    from silodp.verdicts.claims.pages import markdown, text

    known = load_claims(options.claims)
    table = decide(known, RunFolder(_folder(options.run), options.experiments))
    if options.output:
        write_csv(table, options.output)
    if options.json:
        print(table.to_json(orient="records", indent=1, force_ascii=False, double_precision=15))
    elif options.markdown or not options.output:
        print(markdown(table) if options.markdown else text(table))
    whole = table[~table["claim"].str.contains(": ")]["verdict"]
    log.info("%d claims: %s", len(whole), ", ".join(f"{(whole == one).sum()} {one}" for one in Verdict))


def _folder(run: str) -> Path:
    """The results folder of a folder, a run file or a run's name."""
    path = Path(run)
    if path.is_dir():
        return path
    if path.suffix in (".yaml", ".json") and path.is_file():
        path = Path("results") / load(path).run.run
    else:
        path = Path("results") / run
    if not path.is_dir():
        near = Path("results") if Path("results").is_dir() else project_root() / "results"
        known = sorted(str(one) for one in near.glob("*") if one.is_dir())
        raise ConfigError(
            f"command line: run: {run!r}: must be a results folder, a run file or a run's name"
            + (f", as in {', '.join(known)}" if known else "")
        )
    return path
