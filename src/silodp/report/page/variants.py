"""The page's part about choices of protocol: which claim comes out otherwise under a variant, all else being equal."""

from pathlib import Path
from typing import Any

from silodp.files import read_table
from silodp.report.figures.words import in_words, variant_words
from silodp.verdicts.claims import COLUMNS
from silodp.verdicts.claims.variants import changes

HEADING = ["claim", "variant", "the paper's protocol, same rows", "under the variant", "why"]


def variants_part(folder: Path) -> dict[str, Any] | None:
    """Claims that a variant decides as well, those that turn first; None where the run trains no variant.

    Args:
        folder: of a run's results or a publication.
    """
    path = folder / "claims.csv"
    found = changes(read_table(path, COLUMNS)) if path.is_file() else []
    if not found:
        return None
    return {
        "heading": HEADING,
        "turned": sum(one.turns for one in found),
        "decided": len(found),
        "rows": [
            {
                "cells": [
                    one.claim,
                    "the default" if one.reading == "default" else variant_words(one.reading),
                    one.protocol.signed,
                    ("turns: " if one.turns else "") + one.variant.signed,
                    in_words(one.why),
                ],
                "classes": "",
            }
            for one in sorted(found, key=lambda one: not one.turns)
        ],
    }
