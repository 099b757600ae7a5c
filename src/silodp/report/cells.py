"""The cells in which pictures and sentences compare two algorithms: decided by fresh trials, else published trials.

A cell is one (M, R) and ε of an experiment. `decided.csv` compares algorithms with their tuning; `comparisons.csv`
leaves the luck of tuning out, and what comes from it is called `PUBLISHED`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from silodp.algorithms import ALGORITHMS
from silodp.config.board import on_board
from silodp.files import read_table, with_reading
from silodp.verdicts.claims.base import data_set, holm
from silodp.verdicts.claims.claim_files import read_protocol
from silodp.verdicts.comparisons import AHEAD, BEHIND, CELL, SAME
from silodp.verdicts.decided import OPEN, WITHIN, outcomes

PUBLISHED = "published trials, without the luck of tuning"
# Of a cell in which both sides do no better than the best constant.
USELESS = "neither beats a constant"
COMPARED = [*CELL, "first", "second", "trials", "difference", "low", "high", "outcome"]
DECIDED = [*COMPARED, "useless", "same_mechanism"]
_KEY = [*CELL, "first", "second"]


def margin_of(experiment: str) -> float:
    """Δ, the difference in test error that counts as none; 0 for data that no decided table is about."""
    return float(read_protocol()["data_sets"].get(data_set(experiment), {}).get("margin", 0.0))


def in_forests(experiments: Iterable[str]) -> list[str]:
    """The experiments whose cells stand in pictures of pairs: those of the decided tables.

    Of a run with none of these, or with one's own algorithms, all but what the leaderboard ranks by.
    """
    named = [name for name in experiments if not on_board(name)]
    families = {name for family in read_protocol()["families"].values() for name in family["experiments"]}
    papers = [] if ALGORITHMS.own else [name for name in named if name in families]
    return papers or named


def read_cells(comparisons: Path) -> pd.DataFrame:
    """The cells of a table as comparisons.csv, decided where decided.csv beside it does."""
    decided = comparisons.with_name("decided.csv")
    return cells_of(read_table(comparisons, COMPARED), read_table(decided, DECIDED) if decided.is_file() else None)


def cells_of(comparisons: pd.DataFrame, decided: pd.DataFrame | None = None) -> pd.DataFrame:
    """The rows of comparisons.csv with difference, interval, trials and outcome of decided.csv where that has the cell.

    Adds `margin` (Δ), `decided`, and `p` of "no difference", both sides tested by Student's t. `outcome` is ahead,
    behind, the same within Δ, open, `SAME` or `USELESS`: of both tables by the one rule of decided tables.
    """
    rows = with_reading(comparisons)
    rows = rows.assign(margin=rows["experiment"].map(margin_of), decided=False)
    se = _standard_errors(rows)
    words = [
        SAME if row.outcome == SAME else str(outcomes(row.difference, error, row.trials, row.margin))
        for row, error in zip(rows.itertuples(), se, strict=True)
    ]
    rows = rows.assign(outcome=words).astype({"outcome": object})
    if decided is not None:
        found = with_reading(decided[decided["trials"] > 0])
        apart = np.select([found["useless"], found["same_mechanism"]], [USELESS, SAME], found["outcome"])
        found = found.assign(outcome=apart, decided=True).set_index(_KEY, verify_integrity=True)
        rows = rows.set_index(_KEY)
        columns = ["trials", "difference", "low", "high", "outcome", "decided"]
        both = rows.index.intersection(found.index)
        rows.loc[both, columns] = found.loc[both, columns]
        rows = rows.reset_index().astype({"trials": int, "decided": bool})
    se = _standard_errors(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A table without a row has no kind of numbers.
        p = 2 * stats.t.sf((rows["difference"].astype(float) / se).abs(), rows["trials"].astype(float) - 1)
    return rows.assign(p=np.where(np.isnan(p), 1.0, p))


def _standard_errors(rows: pd.DataFrame) -> np.ndarray:
    """Half of each 95 % interval by Student's t over its quantile."""
    half = (rows["high"] - rows["low"]).to_numpy(float) / 2
    return half / stats.t.ppf(0.975, np.maximum(rows["trials"].to_numpy(float) - 1, 1))


@dataclass(frozen=True)
class Counts:
    """How many cells are ahead, behind, the same and open, and how many are left out, which none of these counts.

    Of those ahead and behind Holm's method keeps `ahead_kept` and `behind_kept`, over all counted cells.
    """

    ahead: int
    behind: int
    same: int
    open: int
    ahead_kept: int
    behind_kept: int
    useless: int
    same_algorithm: int

    @property
    def cells(self) -> int:
        return self.ahead + self.behind + self.same + self.open


def counts_of_cells(cells: pd.DataFrame) -> Counts:
    """`cells` is what `cells_of` gives, of one pair."""
    words = cells["outcome"]
    ours = cells[~words.isin([SAME, USELESS])]
    # One side of each p, as `holm` has half the level.
    kept = pd.Series(holm((ours["p"] / 2).tolist()), ours.index, dtype=bool)
    of = {word: int((words == word).sum()) for word in (AHEAD, BEHIND, WITHIN, OPEN, USELESS, SAME)}
    held = {word: int((kept & (ours["outcome"] == word)).sum()) for word in (AHEAD, BEHIND)}
    return Counts(of[AHEAD], of[BEHIND], of[WITHIN], of[OPEN], held[AHEAD], held[BEHIND], of[USELESS], of[SAME])
