"""The subcommand `silodp claims`: what a run says about the papers' claims."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from silodp.config import ConfigError, project_root

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add this subcommand with `add(name, function, help)`."""
    sub = add("claims", claims, "verdicts on the papers' claims, from a finished run")
    sub.add_argument("run", help="results folder, run file or run's name, as in results/default")
    sub.add_argument("--claims", type=Path, help="folder of the claims' files (default: config/claims)")
    sub.add_argument("--output", type=Path, help="CSV file; default: print")
    sub.add_argument("--markdown", action="store_true", help="print the claims themselves as a Markdown table")


def claims(options: argparse.Namespace) -> None:
    """Decide every claim of config/claims by a run's tables: confirmed, refuted, inconclusive, or not testable here."""
    from silodp.claims import decide
    from silodp.claims.base import VERDICTS, RunFolder
    from silodp.claims.loading import load_claims
    from silodp.results import write_csv

    known = load_claims(options.claims)
    table = decide(known, RunFolder(_folder(options.run)))
    if options.output:
        write_csv(table, options.output)
    if options.markdown or not options.output:
        from silodp.claims.pages import markdown, text

        print(markdown(table) if options.markdown else text(table))
    whole = table[~table["claim"].str.contains(": ")]["verdict"]
    log.info("%d claims: %s", len(whole), ", ".join(f"{(whole == one).sum()} {one}" for one in VERDICTS))


def _folder(run: str) -> Path:
    """The results folder of a folder, a run file or a run's name."""
    path = Path(run)
    if path.is_dir():
        return path
    if path.suffix in (".yaml", ".json") and path.is_file():
        from silodp.config import load

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
