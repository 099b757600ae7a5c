"""The files of config/claims read and checked against the registries: one clear line for what is wrong."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from silodp.algorithms import ALGORITHMS, families
from silodp.config.errors import ConfigError, project_root, show_value
from silodp.config.loading import explain, in_file, known_experiments
from silodp.config.yaml_file import read_yaml
from silodp.theory import THEOREMS
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.claims.claim_file import Claim, Claims


def load_claims(folder: Path | str | None = None) -> list[Claim]:
    """All claims by file name, from config/claims of the checkout by default; ConfigError names file, key and value."""
    return _load(folder)[0]


def read_protocol() -> dict[str, Any]:
    """`config/claims/decided.yaml`: seed, data_sets and families."""
    return read_yaml(project_root() / "config" / "claims" / "decided.yaml")


def coverage(folder: Path | str | None = None) -> dict[str, str]:
    """Theorem → "decided by" and claims, or "no check: " and why; empty for a theorem that no file names."""
    claims, reasons = _load(folder)
    found = {key: f"no check: {reason}" for key, reason in reasons.items()}
    for claim in claims:
        rows = getattr(claim.statistic, "rows", [])
        of_rows = {getattr(row, name, "") for row in rows for name in ("theorem", "formula", "over")}
        for key in sorted({claim.id.removeprefix("T-"), *claim.theorems, *of_rows} & set(THEOREMS)):
            found[key] = f"{found[key]}, {claim.id}" if key in found else f"decided by {claim.id}"
    return found


def _load(folder: Path | str | None) -> tuple[list[Claim], dict[str, str]]:
    folder = Path(folder) if folder is not None else project_root() / "config" / "claims"
    paths = sorted(path for path in folder.glob("*.yaml") if path.stem != "decided")
    if not paths:
        raise ConfigError(f"{folder}: files: none: must be a folder with claims in *.yaml")
    names = {"algorithms": [*ALGORITHMS, *families(ALGORITHMS)], "checks": list(CHECKS)}
    known = names | {"experiments": sorted(known_experiments())}
    claims: list[Claim] = []
    reasons: dict[str, str] = {}
    files: dict[str, Path] = {}
    for path in paths:
        try:
            content = Claims.model_validate(read_yaml(path), context=known)
        except ValidationError as error:
            raise explain(error, in_file(path)) from None
        reasons |= content.no_check
        for place, claim in enumerate(content.claims):
            if claim.id in files:
                where = f"{path}: claims[{place}].id: {show_value(claim.id)}"
                raise ConfigError(f"{where}: must be given once, is in {files[claim.id]}")
            files[claim.id] = path
            claims.append(claim)
    return claims, reasons
