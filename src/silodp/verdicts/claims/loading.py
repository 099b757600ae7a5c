"""The files of config/claims read and checked against the registries: one clear line for what is wrong."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from silodp.algorithms import ALGORITHMS, families
from silodp.config.errors import ConfigError, project_root, shown
from silodp.config.loading import explain, read_yaml
from silodp.files import NON_PRIVATE
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.claims.models import (
    BoundsVerdicts,
    Claim,
    Claims,
    DeliveredEpsilon,
    PairedDifference,
    PriceOfPrivacy,
    RelativeImprovement,
)


def load_claims(folder: Path | str | None = None) -> list[Claim]:
    """All claims, file by file in the order of their names.

    Args:
        folder: with the YAML files; default: config/claims of the checkout.

    Raises:
        ConfigError: one line naming file, key, value and what is allowed.
    """
    folder = Path(folder) if folder is not None else project_root() / "config" / "claims"
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise ConfigError(f"{folder}: files: none: must be a folder with claims in *.yaml")
    found: dict[str, Path] = {}
    claims = []
    for path in paths:
        content = read_yaml(path)
        try:
            file = Claims.model_validate(content)
        except ValidationError as error:
            raise explain(error, path) from None
        for place, claim in enumerate(file.claims):
            if claim.id in found:
                raise ConfigError(
                    f"{path}: claims[{place}].id: {shown(claim.id)}: must be given once, is in {found[claim.id]}"
                )
            found[claim.id] = path
            _check(f"{path}: claims[{place}]", claim)
            claims.append(claim)
    return claims


def _check(place: str, claim: Claim) -> None:
    """Names that a claim uses must be known."""
    known = sorted(file.stem for file in (project_root() / "config" / "experiments").glob("*.yaml"))
    for key in ("experiments", "surrogates"):
        for name in getattr(claim, key):
            _known(f"{place}.{key}", name, known)
    if claim.certified is not None:
        for name, names in claim.certified.experiments.items():
            _known(f"{place}.certified.experiments", name, claim.experiments)
            for one in names:
                _known(f"{place}.certified.experiments.{name}", one, known)
    for key, name, allowed in _names(claim):
        _known(f"{place}.statistic.{key}", name, allowed)


def _names(claim: Claim) -> Iterator[tuple[str, str, list[str]]]:
    """(key, name, what it may be) of every name in a statistic."""
    algorithms, one = [*ALGORITHMS, *families(ALGORITHMS)], claim.statistic
    if isinstance(one, PairedDifference):
        for pair in one.pairs:
            yield "pairs.first", pair.first.removesuffix(NON_PRIVATE), algorithms
            yield "pairs.second", pair.second.removesuffix(NON_PRIVATE), algorithms
    elif isinstance(one, RelativeImprovement):
        yield "target", one.target, algorithms
        for name in one.stated:
            yield "stated", name, algorithms
    elif isinstance(one, PriceOfPrivacy | DeliveredEpsilon):
        for name in one.algorithms:
            yield "algorithms", name, algorithms
    elif isinstance(one, BoundsVerdicts):
        for rows in one.rows:
            yield "rows.check", rows.check, list(CHECKS)


def _known(place: str, name: str, allowed: list[str]) -> None:
    if name not in allowed:
        raise ConfigError(f"{place}: {shown(name)}: must be one of {', '.join(allowed)}")
