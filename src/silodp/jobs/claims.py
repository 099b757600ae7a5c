"""Judge every claim of config/claims by the tables of a run."""

from pathlib import Path

from silodp.files import write_csv
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.deciding import decide


def claims(folder: Path, output: Path) -> None:
    write_csv(decide(load_claims(), RunFolder(folder)), output)
